/*
 * limits.h - what a provider's rate headers say is left (wire.md 1.8, 2.3).
 *
 * Two families: anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,
 * reset} with reset as a time, and x-ratelimit-{limit,remaining,reset}-{requests,tokens} with reset
 * as a duration. Pure: a struct is filled header by header and then read by admission and retry.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_LIMITS_H
#define BATON_ORCHESTRATOR_GATEWAY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum limit_kind {
	LIMIT_REQUESTS,
	LIMIT_TOKENS,
	LIMIT_INPUT,
	LIMIT_OUTPUT,
	LIMIT_UNIFIED,
	LIMIT_KINDS
};

struct limit_bucket {
	int64_t limit, remaining; /* -1: not said */
	int64_t reset_wall;	  /* wall ms by the server's clock, -1: not said */
	int64_t reset_in;	  /* ms from the response, -1: not said */
};

struct limit_news {
	struct limit_bucket buckets[LIMIT_KINDS];
	bool any;
	bool counts_cached; /* the x- family: cached tokens count too, so estimates can be compared
			     */
};

void limits_init(struct limit_news *news);
void limits_take_header(struct limit_news *news, const char *name, const char *value);
/* ms until a bucket is refilled: against the server's Date if known (wall ms, else -1); -1: not
 * said. */
int64_t limits_reset_ms(const struct limit_bucket *b, int64_t server_date, int64_t now_wall);
/* The longest wait among the buckets that are used up, or -1: a hint for a 429 without one. */
int64_t limits_exhausted_ms(const struct limit_news *news, int64_t server_date, int64_t now_wall);

#endif
