/*
 * retry.h - when to ask again: what the server said about it, and our own back-off.
 *
 * Pure: headers and text in, milliseconds out. Hints in order (wire.md 1.8): retry-after-ms,
 * retry-after as seconds with fractions or as a date measured against the server's own Date, then a
 * wait that is only written in the error's text. x-should-retry overrules the status.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_RETRY_H
#define BATON_ORCHESTRATOR_GATEWAY_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct retry_hints {
	int should_retry;    /* x-should-retry: -1 not said, 0 false, 1 true */
	int64_t after_ms;    /* retry-after-ms or seconds; -1: none */
	bool exact;	     /* after_ms came from retry-after-ms, which wins */
	int64_t after_date;  /* retry-after as a date, wall ms; -1: none */
	int64_t server_date; /* Date, wall ms; -1: none */
};
#define RETRY_HINTS_INIT                                                                           \
	{                                                                                          \
		.should_retry = -1, .after_ms = -1, .after_date = -1, .server_date = -1            \
	}

/* Takes one response header; names are compared without case, other names are ignored. */
void retry_take_header(struct retry_hints *h, const char *name, const char *value);

/* The wait that the server asks for, or -1. text is the error's message (may be NULL). A date in
 * the past gives 0 (trap 66). */
int64_t retry_asked_ms(const struct retry_hints *h, const char *text, int64_t now_wall_ms);

/* What to add to a server's wait: never before it, a little after, so that not all come at once. */
int64_t retry_after_jitter(int64_t asked_ms);

/* Exponential with full jitter: even in [0, min(max, base * 2^(attempt - 1))], attempt >= 1. */
int64_t retry_backoff_ms(int attempt, int64_t base_ms, int64_t max_ms);

/* "1m2.5s", "120ms", "6m0s" (Go's durations, rate-limit headers); -1 if it is not one. *ret_end
 * (may be NULL) is set behind it; without it the whole string must be one. */
int64_t retry_parse_duration(const char *s, const char **ret_end);
/* The wait named in a text: "try again in 4.77s", "retry after 20 seconds", "retry in 1m0.36s"; -1.
 */
int64_t retry_parse_text(const char *text);

#endif
