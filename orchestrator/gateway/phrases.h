/*
 * phrases.h - the texts by which servers say that a prompt is too long, as a table.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_PHRASES_H
#define BATON_ORCHESTRATOR_GATEWAY_PHRASES_H

#include <stdbool.h>
#include <stdint.h>

#define PHRASE_NUMBERS 5

enum phrase_when {
	WHEN_REQUEST, /* 400, 413, 422 and in-band */
	WHEN_ANY,     /* the words are the sign, whatever the status */
};

struct phrase {
	const char *row; /* of wire.md: "1.10" or the row's number in section 3 */
	const char *pattern;
	enum phrase_when when;
	bool rate_row; /* a tokens-per-minute row: stands before the veto, needs used > limit */
	signed char retries; /* -1: never; else the same request may succeed: at most so often */
	/* Which numbers (1-based) add up to used, which is the limit, which the excess; 0: none. */
	unsigned char used, used_too, limit, excess;
};

/* The first row of the table that matches, or NULL. Rate rows only are tried if rate_rows. */
const struct phrase *phrase_find(const char *text, bool any_status_only, bool rate_rows,
				 int64_t numbers[PHRASE_NUMBERS]);

#endif
