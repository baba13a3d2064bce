/*
 * test_admission.c - slots, fairness, pauses and learned limits, with time as a number (X9).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "orchestrator/gateway/admission.h"

static struct admission *one_lane(int slots)
{
	return admission_new(&slots, 1);
}

static void queue(struct admission *a, struct ticket *t, const char *agent, int64_t now)
{
	admission_enqueue(a, t, 0, agent, now, now);
}

static void test_slots_are_kept(void **state)
{
	struct admission *a = one_lane(2);
	struct ticket t[3] = {0};
	int64_t wake;
	for (int i = 0; i < 3; i++)
		queue(a, &t[i], "a1", 0);
	assert_ptr_equal(admission_next(a, 0, &wake), &t[0]);
	assert_ptr_equal(admission_next(a, 0, &wake), &t[1]);
	assert_null(admission_next(a, 0, &wake));
	assert_int_equal(wake, -1);
	assert_string_equal(admission_reason(a, &t[2], 0, &wake), "slot");
	admission_done(a, &t[0], true, false, 1);
	assert_ptr_equal(admission_next(a, 1, &wake), &t[2]);
	admission_leave(a, &t[1]);
	admission_leave(a, &t[2]);
	assert_null(admission_next(a, 2, &wake));
	admission_free(a);
}

/* An agent with many calls does not keep one with a single call waiting. */
static void test_agents_share_fairly(void **state)
{
	struct admission *a = one_lane(1);
	struct ticket many[4] = {0}, single = {0};
	int64_t wake;
	for (int i = 0; i < 4; i++)
		queue(a, &many[i], "greedy", 0);
	assert_ptr_equal(admission_next(a, 0, &wake), &many[0]);
	queue(a, &single, "modest", 5);
	admission_done(a, &many[0], true, false, 10);
	assert_ptr_equal(admission_next(a, 10, &wake), &single);
	admission_done(a, &single, true, false, 20);
	assert_ptr_equal(admission_next(a, 20, &wake), &many[1]);
	/* The quick one comes again: now it is the other's turn only after it. */
	queue(a, &single, "modest", 21);
	admission_done(a, &many[1], true, false, 30);
	assert_ptr_equal(admission_next(a, 30, &wake), &single);
	for (int i = 2; i < 4; i++)
		admission_leave(a, &many[i]);
	admission_leave(a, &single);
	admission_free(a);
}

static void test_main_goes_before_background_until_it_has_aged(void **state)
{
	struct admission *a = one_lane(1);
	struct ticket back = {.purpose = CALL_BACKGROUND}, comp = {.purpose = CALL_COMPACT},
		      first = {.purpose = CALL_MAIN};
	int64_t wake;
	queue(a, &back, "a1", 0);
	queue(a, &comp, "a2", 1);
	queue(a, &first, "a3", 2);
	assert_ptr_equal(admission_next(a, 3, &wake), &first);
	admission_done(a, &first, true, false, 4);
	/* Half a minute later the old background call is nobody's second any more. */
	queue(a, &first, "a3", 31000);
	assert_ptr_equal(admission_next(a, 31000, &wake), &back);
	admission_leave(a, &back);
	admission_leave(a, &comp);
	admission_leave(a, &first);
	admission_free(a);
}

static void test_backoff_of_one_holds_the_lane(void **state)
{
	struct admission *a = one_lane(8);
	struct ticket t = {0};
	int64_t wake, until;
	assert_true(admission_pause(a, 0, 500));
	assert_false(admission_pause(a, 0, 400));
	queue(a, &t, "other", 0);
	assert_null(admission_next(a, 499, &wake));
	assert_int_equal(wake, 500);
	assert_string_equal(admission_reason(a, &t, 499, &until), "limit");
	assert_int_equal(until, 500);
	assert_ptr_equal(admission_next(a, 500, &wake), &t);
	admission_leave(a, &t);
	admission_free(a);
}

static void test_ready_at_delays_one_call_only(void **state)
{
	struct admission *a = one_lane(8);
	struct ticket late = {0}, now_ready = {0};
	int64_t wake, until;
	admission_enqueue(a, &late, 0, "a1", 0, 300);
	queue(a, &now_ready, "a2", 1);
	assert_ptr_equal(admission_next(a, 1, &wake), &now_ready);
	assert_null(admission_next(a, 1, &wake));
	assert_int_equal(wake, 300);
	assert_string_equal(admission_reason(a, &late, 1, &until), "retry");
	assert_ptr_equal(admission_next(a, 300, &wake), &late);
	admission_leave(a, &late);
	admission_leave(a, &now_ready);
	admission_free(a);
}

/* Six refusals of one burst are one sign, not six. */
static void test_congestion_halves_once_per_burst_and_recovers(void **state)
{
	struct admission *a = one_lane(16);
	struct ticket t[16] = {0};
	int64_t wake;
	for (int i = 0; i < 16; i++)
		queue(a, &t[i], "a1", 0);
	for (int i = 0; i < 16; i++)
		assert_non_null(admission_next(a, 0, &wake));
	for (int i = 0; i < 6; i++)
		admission_done(a, &t[i], false, true, 10 + i);
	assert_true(admission_limit(a, 0) == 8.0);
	for (int i = 6; i < 16; i++)
		admission_done(a, &t[i], true, false, 20);
	assert_true(admission_limit(a, 0) > 8.9 && admission_limit(a, 0) < 9.5);
	queue(a, &t[0], "a1", 30);
	assert_non_null(admission_next(a, 30, &wake));
	admission_done(a, &t[0], false, true, 31);
	assert_true(admission_limit(a, 0) >= 1.0 && admission_limit(a, 0) < 2.0);
	for (int i = 0; i < 1000; i++) {
		queue(a, &t[0], "a1", 40);
		assert_non_null(admission_next(a, 40, &wake));
		admission_done(a, &t[0], true, false, 41);
	}
	assert_true(admission_limit(a, 0) == 16.0);
	admission_free(a);
}

static void test_learned_request_limit_holds_until_its_reset(void **state)
{
	struct admission *a = one_lane(8);
	struct ticket t[2] = {0};
	struct limit_news news;
	int64_t wake;
	limits_init(&news);
	limits_take_header(&news, "x-ratelimit-remaining-requests", "1");
	limits_take_header(&news, "x-ratelimit-reset-requests", "2s");
	admission_learn(a, 0, &news, -1, 0, 1000, 120000);
	queue(a, &t[0], "a1", 1000);
	queue(a, &t[1], "a2", 1000);
	assert_ptr_equal(admission_next(a, 1000, &wake), &t[0]);
	assert_null(admission_next(a, 1000, &wake));
	assert_int_equal(wake, 3000);
	assert_ptr_equal(admission_next(a, 3000, &wake), &t[1]);
	admission_leave(a, &t[0]);
	admission_leave(a, &t[1]);
	admission_free(a);
}

/* Estimates count cached tokens. OpenAI's limit does too; Anthropic's does not (wire.md 1.7). */
static void test_token_limits_by_family(void **state)
{
	struct admission *a = one_lane(8);
	struct ticket t = {.estimate = 5000};
	struct limit_news news;
	int64_t wake;
	limits_init(&news);
	limits_take_header(&news, "x-ratelimit-limit-tokens", "30000");
	limits_take_header(&news, "x-ratelimit-remaining-tokens", "4000");
	limits_take_header(&news, "x-ratelimit-reset-tokens", "700ms");
	admission_learn(a, 0, &news, -1, 0, 0, 120000);
	queue(a, &t, "a1", 0);
	assert_null(admission_next(a, 0, &wake));
	assert_int_equal(wake, 700);
	limits_init(&news);
	limits_take_header(&news, "anthropic-ratelimit-tokens-remaining", "4000");
	limits_take_header(&news, "anthropic-ratelimit-tokens-reset", "2026-11-30T10:00:12Z");
	admission_learn(a, 0, &news, 1796032800000, 0, 0, 5000);
	assert_ptr_equal(admission_next(a, 0, &wake), &t);
	admission_done(a, &t, true, false, 1);
	limits_take_header(&news, "anthropic-ratelimit-tokens-remaining", "0");
	admission_learn(a, 0, &news, 1796032800000, 0, 10, 5000);
	queue(a, &t, "a1", 10);
	assert_null(admission_next(a, 10, &wake));
	assert_int_equal(wake, 5010); /* 12 s, but no header holds a lane longer than max_wait */
	admission_leave(a, &t);
	admission_free(a);
}

static void test_lanes_are_apart(void **state)
{
	int slots[] = {1, 0};
	struct admission *a = admission_new(slots, 2);
	struct ticket t[2] = {0};
	int64_t wake;
	assert_int_equal(admission_ceiling(a, 1), ADMISSION_DEFAULT_SLOTS);
	admission_pause(a, 0, 1000);
	admission_enqueue(a, &t[0], 0, "a1", 0, 0);
	admission_enqueue(a, &t[1], 1, "a1", 0, 0);
	assert_ptr_equal(admission_next(a, 0, &wake), &t[1]);
	assert_null(admission_next(a, 0, &wake));
	assert_int_equal(wake, 1000);
	admission_leave(a, &t[0]);
	admission_leave(a, &t[1]);
	admission_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_are_kept),
		cmocka_unit_test(test_agents_share_fairly),
		cmocka_unit_test(test_main_goes_before_background_until_it_has_aged),
		cmocka_unit_test(test_backoff_of_one_holds_the_lane),
		cmocka_unit_test(test_ready_at_delays_one_call_only),
		cmocka_unit_test(test_congestion_halves_once_per_burst_and_recovers),
		cmocka_unit_test(test_learned_request_limit_holds_until_its_reset),
		cmocka_unit_test(test_token_limits_by_family),
		cmocka_unit_test(test_lanes_are_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
