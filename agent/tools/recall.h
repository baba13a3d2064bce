/*
 * recall.h - searching the transcripts of one agent (X4).
 *
 * A transcript is read line by line in pieces and never held: what stays in memory is the best hits and
 * the longest line (X14). A line that cannot be read is counted and passed over; so is a torn last one.
 * Only the folders of this agent's generations are opened, by names that are numbers.
 */
#ifndef BATON_AGENT_TOOLS_RECALL_H
#define BATON_AGENT_TOOLS_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/context/shingles.h"
#include "agent/tools/grep.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#define RECALL_WORDS_MAX 12
#define RECALL_HITS_MAX	 500 /* that can be paged through */

struct recall_passage { /* one block of a message, or a summary; all borrowed */
	int64_t generation, round;
	const char *kind;	 /* "text", "tool_call", "tool_result" */
	const char *origin;	 /* "user", "model", "tool", ...: who wrote it */
	const char *tool, *call; /* NULL: none */
	const char *text;
	size_t n;
	bool is_error;
};

/* Non-zero ends the reading and is returned. */
typedef int (*recall_passage_fn)(const struct recall_passage *passage, void *arg);
/* Of a raw line: is it worth to be parsed? Called for each; may end the reading by *ret_stop. */
typedef bool (*recall_want_fn)(const char *line, size_t n, void *arg);

struct recall_source {
	const char *folder; /* of the present generation */
	int64_t own;	    /* its number */
	int64_t generation; /* read this one only; 0: all, oldest first */
	recall_want_fn want;
	recall_passage_fn on_passage;
	void *arg;
	int64_t bad_lines; /* counted by recall_read */
};

/* Reads. What `on_passage` returned, or 0; -1: ERR_NOT_FOUND there is no transcript, ERR_IO. */
int recall_read(struct recall_source *source, struct err *err);

struct recall_query {
	const char *text;
	size_t n;
	bool regex, newest;
	const char *folder; /* of the present generation */
	int64_t own;	    /* its number */
	const char *tool;   /* only its calls and results; NULL: all */
	int64_t generation; /* 0: all */
	size_t offset, limit;
};

struct recall_hit {
	int64_t generation, round;
	char *where;	    /* "result of shell, call c3" */
	char *excerpt;	    /* round the match, cut at characters */
	size_t line, lines; /* of the passage */
	uint64_t score, order;
	size_t alike;	    /* further passages that say nearly the same (H20) */
	struct hashes said; /* of the excerpt */
};

struct recall_hits { /* the wanted ones, in the wanted order */
	struct recall_hit *list;
	size_t n, cap;
	size_t keep;  /* no more than that */
	size_t total; /* alike ones counted once, as far as they were compared */
	size_t seen;
	int64_t bad_lines;
};

/* Finds. `check` is called now and then and ends the search with -1. ERR_INVALID: the query. The caller
 * releases, also after a failure. */
int recall_search(const struct recall_query *query, int (*check)(void *arg, struct err *err),
		  void *arg, struct recall_hits *ret, struct err *err);
void recall_hits_release(struct recall_hits *hits);

#endif
