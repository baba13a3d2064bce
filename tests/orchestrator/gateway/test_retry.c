/*
 * test_retry.c - waits that servers ask for, back-off, and rate headers (traps 64, 66, 70, 72).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "orchestrator/gateway/limits.h"
#include "orchestrator/gateway/retry.h"

/* Mon, 30 Nov 2026 10:00:00 GMT */
static const int64_t ten = 1796032800000;

static int64_t asked(const char *const *headers, const char *text, int64_t now)
{
	struct retry_hints h = RETRY_HINTS_INIT;
	for (; headers && *headers; headers += 2)
		retry_take_header(&h, headers[0], headers[1]);
	return retry_asked_ms(&h, text, now);
}
#define ASKED(now, ...) asked((const char *const[]){__VA_ARGS__, NULL}, NULL, (now))

static void test_retry_after_in_seconds_and_milliseconds(void **state)
{
	assert_int_equal(ASKED(ten, "Retry-After", "7"), 7000);
	assert_int_equal(ASKED(ten, "retry-after", "0.25"), 250);
	assert_int_equal(ASKED(ten, "retry-after", " 1 "), 1000);
	assert_int_equal(ASKED(ten, "Retry-After-Ms", "1500.4"), 1500);
	/* The exact form wins in either order (wire.md 1.8). */
	assert_int_equal(ASKED(ten, "retry-after-ms", "100", "retry-after", "9"), 100);
	assert_int_equal(ASKED(ten, "retry-after", "9", "retry-after-ms", "100"), 100);
	assert_int_equal(ASKED(ten, "retry-after", "soon"), -1);
	assert_int_equal(ASKED(ten, "retry-after", "-5"), -1);
	assert_int_equal(ASKED(ten, "x-other", "1"), -1);
	assert_int_equal(ASKED(ten, "retry-after", "86400"), 86400000); /* trap 72 */
	assert_true(ASKED(ten, "retry-after", "99999999999999999999999") > 0);
}

/* Against the server's clock if it gives one: ours may be wrong. */
static void test_trap_64_date_in_the_future(void **state)
{
	const char *date = "Mon, 30 Nov 2026 10:00:00 GMT",
		   *later = "Mon, 30 Nov 2026 10:00:07 GMT";
	assert_int_equal(clock_parse_http_date(date), ten);
	assert_int_equal(ASKED(ten + 3600000, "Date", date, "Retry-After", later), 7000);
	assert_int_equal(ASKED(ten + 3600000, "Retry-After", later, "Date", date), 7000);
	assert_int_equal(ASKED(ten + 2000, "Retry-After", later), 5000);
}

static void test_trap_66_date_in_the_past(void **state)
{
	assert_int_equal(ASKED(ten, "Retry-After", "Mon, 30 Nov 2026 09:59:58 GMT"), 0);
	for (int i = 0; i < 100; i++)
		assert_in_range(retry_after_jitter(0), 0, 1000);
}

static void test_jitter_goes_up_only_a_little(void **state)
{
	for (int i = 0; i < 200; i++) {
		assert_in_range(retry_after_jitter(7000), 0, 700);
		assert_in_range(retry_after_jitter(100000), 0, 1000);
	}
}

static void test_waits_in_texts(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {{"Rate limit reached. Please try again in 4.77s. Visit", 4770},
		    {"please try again in 1m0.36s.", 60360},
		    {"Try again in 120ms", 120},
		    {"Please retry after 20 seconds.", 20000},
		    {"Please retry after 2 minutes", 120000},
		    {"Please retry in 34.074824224s.", 34075},
		    {"[{\"retryDelay\": \"34s\"}]", 34000},
		    {"try again in a while", -1},
		    {"retry 5", -1},
		    {"", -1}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(retry_parse_text(rows[i].text), rows[i].ms);
	/* A header wins over the text. */
	const char *const header[] = {"retry-after", "1", NULL};
	assert_int_equal(asked(header, "try again in 9s", ten), 1000);
	assert_int_equal(asked(NULL, "try again in 9s", ten), 9000);
}

static void test_go_durations(void **state)
{
	assert_int_equal(retry_parse_duration("1m2.5s", NULL), 62500);
	assert_int_equal(retry_parse_duration("120ms", NULL), 120);
	assert_int_equal(retry_parse_duration("6m0s", NULL), 360000);
	assert_int_equal(retry_parse_duration("1h0m1s", NULL), 3601000);
	assert_int_equal(retry_parse_duration("12", NULL), -1);
	assert_int_equal(retry_parse_duration("5s x", NULL), -1);
	assert_int_equal(retry_parse_duration("", NULL), -1);
}

static void test_should_retry_header(void **state)
{
	struct retry_hints h = RETRY_HINTS_INIT;
	assert_int_equal(h.should_retry, -1);
	retry_take_header(&h, "X-Should-Retry", "false");
	assert_int_equal(h.should_retry, 0);
	retry_take_header(&h, "x-should-retry", "true");
	assert_int_equal(h.should_retry, 1);
	retry_take_header(&h, "x-should-retry", "maybe");
	assert_int_equal(h.should_retry, 1);
}

/* Full jitter: even over the whole range, so that a crowd spreads. */
static void test_backoff_doubles_to_a_bound(void **state)
{
	int64_t most[8] = {0};
	for (int i = 0; i < 400; i++) {
		for (int attempt = 1; attempt < 8; attempt++) {
			int64_t ms = retry_backoff_ms(attempt, 500, 4000);
			assert_in_range(ms, 0, MIN(500 << (attempt - 1), 4000));
			most[attempt] = MAX(most[attempt], ms);
		}
	}
	assert_true(most[1] > 350);
	assert_true(most[3] > 1400);
	assert_true(most[7] > 2800);
	assert_in_range(retry_backoff_ms(1000, 500, 4000), 0, 4000);
}

static void take(struct limit_news *news, const char *name, const char *value)
{
	limits_take_header(news, name, value);
}

static void test_anthropic_rate_headers(void **state)
{
	struct limit_news news;
	limits_init(&news);
	take(&news, "anthropic-ratelimit-requests-limit", "50");
	take(&news, "Anthropic-Ratelimit-Requests-Remaining", "0");
	take(&news, "anthropic-ratelimit-requests-reset", "2026-11-30T10:00:12Z");
	take(&news, "anthropic-ratelimit-input-tokens-remaining", "12000");
	take(&news, "anthropic-ratelimit-input-tokens-reset", "2026-11-30T10:01:00Z");
	assert_true(news.any);
	assert_false(news.counts_cached);
	assert_int_equal(news.buckets[LIMIT_REQUESTS].limit, 50);
	assert_int_equal(news.buckets[LIMIT_INPUT].remaining, 12000);
	assert_int_equal(news.buckets[LIMIT_TOKENS].remaining, -1);
	assert_int_equal(limits_exhausted_ms(&news, ten, 0), 12000);
	assert_int_equal(limits_exhausted_ms(&news, -1, ten + 2000), 10000);
}

static void test_subscription_headers(void **state)
{
	struct limit_news news;
	limits_init(&news);
	take(&news, "anthropic-ratelimit-unified-5h-status", "rejected");
	take(&news, "anthropic-ratelimit-unified-5h-reset", "1796032860");
	take(&news, "anthropic-ratelimit-unified-5h-utilization", "1.0");
	assert_int_equal(limits_exhausted_ms(&news, ten, ten), 60000);
}

static void test_openai_rate_headers(void **state)
{
	struct limit_news news;
	limits_init(&news);
	take(&news, "x-ratelimit-limit-requests", "60");
	take(&news, "x-ratelimit-remaining-requests", "59");
	take(&news, "x-ratelimit-remaining-tokens", "0");
	take(&news, "x-ratelimit-reset-tokens", "1m2.5s");
	take(&news, "x-ratelimit-reset-requests", "garbage");
	assert_true(news.counts_cached);
	assert_int_equal(news.buckets[LIMIT_REQUESTS].remaining, 59);
	assert_int_equal(limits_exhausted_ms(&news, -1, ten), 62500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retry_after_in_seconds_and_milliseconds),
		cmocka_unit_test(test_trap_64_date_in_the_future),
		cmocka_unit_test(test_trap_66_date_in_the_past),
		cmocka_unit_test(test_jitter_goes_up_only_a_little),
		cmocka_unit_test(test_waits_in_texts),
		cmocka_unit_test(test_go_durations),
		cmocka_unit_test(test_should_retry_header),
		cmocka_unit_test(test_backoff_doubles_to_a_bound),
		cmocka_unit_test(test_anthropic_rate_headers),
		cmocka_unit_test(test_subscription_headers),
		cmocka_unit_test(test_openai_rate_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
