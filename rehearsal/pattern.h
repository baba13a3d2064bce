/*
 * pattern.h - regular expressions of scenarios: PCRE2 with named groups and bounded effort.
 *
 * Patterns are multi-line (^ and $ hold at line ends; \A and \z at the text's). A match limit keeps
 * a careless pattern over a megabyte of tool output from stopping the server: it then does not
 * match.
 */
#ifndef BATON_REHEARSAL_PATTERN_H
#define BATON_REHEARSAL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATTERN_MAX_GROUPS 16

struct pattern;

/* Groups of one match. `text` is borrowed from the caller of pattern_match, `of` from the pattern.
 */
struct captures {
	const struct pattern *of; /* NULL: nothing matched yet */
	const char *text;
	size_t start[PATTERN_MAX_GROUPS], end[PATTERN_MAX_GROUPS]; /* start > end: group unset */
	unsigned count;
};

int pattern_compile(const char *source, size_t n, struct pattern **ret, struct err *err);
void pattern_free(struct pattern *pattern); /* NULL allowed */
/* Searches from byte `from` on. caps may be NULL. */
bool pattern_match(const struct pattern *pattern, const char *text, size_t n, size_t from,
		   struct captures *caps);
/* A group by number or name: false if there is no such group or it took no part. */
bool captures_get(const struct captures *caps, const char *name, size_t name_len, const char **ret,
		  size_t *ret_len);

#endif
