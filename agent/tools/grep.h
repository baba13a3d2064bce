/*
 * grep.h - one search: the pattern, its limits, and the hits of one file.
 */
#ifndef BATON_AGENT_TOOLS_GREP_H
#define BATON_AGENT_TOOLS_GREP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct matcher; /* a compiled pattern with its JIT code and limits */

struct matcher_opts {
	bool ignore_case, literal, multiline;
};

/* ERR_INVALID with what is wrong in the pattern and where. */
struct matcher *matcher_new(const char *pattern, size_t n, const struct matcher_opts *opts,
			    struct err *err);
void matcher_free(struct matcher *m); /* NULL allowed */

/* One matching line (with multiline, all lines that a match touches): offsets into the text. */
struct hit {
	size_t line;	   /* number of its first line, from 1 */
	size_t start, end; /* of the line or lines, without the last line end */
	size_t match_start, match_end;
};

struct hits {
	struct hit *items; /* the first HITS_KEPT */
	size_t count;	   /* all of them */
	size_t kept, cap;
};
enum { HITS_KEPT = 5000 };

/* Finds all hits in a text, line by line. ERR_TOO_LARGE if a line needs more steps than allowed (a
 * catastrophic pattern). check, if not NULL, is called now and then and stops the search with -1.
 */
int matcher_find(struct matcher *m, const char *text, size_t n, struct hits *hits,
		 int (*check)(void *arg, struct err *err), void *arg, struct err *err);

/* Appends the hits with their context lines: "12:text" and "13-text", blocks parted by "--". At
 * most `most` hits; long lines are cut to what is round the match (trap 91). Returns the number
 * shown. */
size_t hits_print(const struct hits *hits, const char *text, size_t n, size_t before, size_t after,
		  size_t most, struct buf *out);

#endif
