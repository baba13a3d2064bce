/*
 * limits.c - see limits.h.
 *
 * Values that do not parse are as if they were not there: a header that we misread must never hold
 * a run up.
 *
 * A window counts only when both its remaining number and its reset are known, and admission bounds
 * the wait. Reset times are by the server's clock and are measured against its Date where it has
 * one.
 */
#include "orchestrator/gateway/limits.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/gateway/retry.h"

static const struct {
	const char *name;
	enum limit_kind kind;
} kinds[] = {{"requests", LIMIT_REQUESTS},
	     {"tokens", LIMIT_TOKENS},
	     {"input-tokens", LIMIT_INPUT},
	     {"output-tokens", LIMIT_OUTPUT}};

void limits_init(struct limit_news *news)
{
	*news = (struct limit_news){.any = false};
	for (size_t i = 0; i < LIMIT_KINDS; i++)
		news->buckets[i] = (struct limit_bucket){-1, -1, -1, -1};
}

static void take_field(struct limit_bucket *b, const char *field, const char *value)
{
	int64_t n;
	if (strcasecmp(field, "reset") == 0) {
		b->reset_wall = clock_parse_stamp(value);
		if (b->reset_wall < 0)
			b->reset_in = retry_parse_duration(value, NULL);
	} else if (text_parse_i64(value, &n) == 0 && n >= 0) {
		if (strcasecmp(field, "limit") == 0)
			b->limit = n;
		else if (strcasecmp(field, "remaining") == 0)
			b->remaining = n;
	}
}

/* Subscriptions: unified-5h-status: rejected, unified-5h-reset: Unix seconds; also without a span.
 */
static void take_unified(struct limit_bucket *b, const char *rest, const char *value)
{
	int64_t seconds;
	if (text_ends(rest, "status") && strcasecmp(value, "rejected") == 0)
		b->remaining = 0;
	else if (text_ends(rest, "reset") && text_parse_i64(value, &seconds) == 0 && seconds > 0 &&
		 seconds < (1ll << 40) && seconds * 1000 > b->reset_wall)
		b->reset_wall = seconds * 1000;
}

static void take_anthropic(struct limit_news *news, const char *rest, const char *value)
{
	if (strncasecmp(rest, "unified", 7) == 0) {
		take_unified(&news->buckets[LIMIT_UNIFIED], rest, value);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i].name);
		if (strncasecmp(rest, kinds[i].name, len) == 0 && rest[len] == '-')
			take_field(&news->buckets[kinds[i].kind], rest + len + 1, value);
	}
}

static void take_plain(struct limit_news *news, const char *rest, const char *value)
{
	static const char *const fields[] = {"limit", "remaining", "reset"};
	for (size_t f = 0; f < ARRAY_SIZE(fields); f++) {
		size_t len = strlen(fields[f]);
		if (strncasecmp(rest, fields[f], len) != 0 || rest[len] != '-')
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			if (strcasecmp(rest + len + 1, kinds[i].name) == 0)
				take_field(&news->buckets[kinds[i].kind], fields[f], value);
		}
	}
}

void limits_take_header(struct limit_news *news, const char *name, const char *value)
{
	if (strncasecmp(name, "anthropic-ratelimit-", 20) == 0) {
		news->any = true;
		take_anthropic(news, name + 20, value);
	} else if (strncasecmp(name, "x-ratelimit-", 12) == 0) {
		news->any = news->counts_cached = true;
		take_plain(news, name + 12, value);
	}
}

int64_t limits_reset_ms(const struct limit_bucket *b, int64_t server_date, int64_t now_wall)
{
	if (b->reset_in >= 0)
		return b->reset_in;
	if (b->reset_wall < 0)
		return -1;
	return MAX(0, b->reset_wall - (server_date >= 0 ? server_date : now_wall));
}

int64_t limits_exhausted_ms(const struct limit_news *news, int64_t server_date, int64_t now_wall)
{
	int64_t longest = -1;
	for (size_t i = 0; i < LIMIT_KINDS; i++) {
		if (news->buckets[i].remaining != 0)
			continue;
		int64_t ms = limits_reset_ms(&news->buckets[i], server_date, now_wall);
		longest = MAX(longest, ms);
	}
	return longest;
}
