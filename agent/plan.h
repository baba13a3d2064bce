/*
 * plan.h - the agent's plan.md: Markdown with checkboxes, and its items as data (H18, trap 18).
 *
 * The items live outside the transcript, so a compaction cannot turn a finished one into an open one. The
 * file is the data: it is written whole, and read back with the same parser. A line that is a list item
 * with a checkbox is an item; items are numbered from 1 in the order of the file. In a text without any
 * checkbox each list item is an open item. Other lines are kept as they are.
 */
#ifndef BATON_AGENT_PLAN_H
#define BATON_AGENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define PLAN_ENTRIES_MAX 300
#define PLAN_LINE_MAX	 500 /* bytes */

struct plan_entry {
	char *text; /* one line, no white space round it */
	bool item, done;
	unsigned indent; /* of an item: blanks before it */
};

struct plan {
	struct plan_entry *list;
	size_t n, cap;
	size_t items, done;
};

void plan_release(struct plan *plan); /* also of a zeroed struct */

/* Reads Markdown into an empty plan. ERR_TOO_LARGE names the bound and the line. */
int plan_parse(struct plan *plan, const char *text, size_t n, struct err *err);
/* Items that a text names without a checkbox stay done if an item of the same words is done in `before`:
 * a plan that is written anew does not fall back. Says how many. */
size_t plan_keep_done(struct plan *plan, const struct plan *before, const char *text, size_t n);
/* Appends an open item. ERR_TOO_LARGE, ERR_INVALID (blank). */
int plan_add(struct plan *plan, const char *text, size_t n, struct err *err);
/* Items of these numbers become done or open. ERR_NOT_FOUND: none is changed. */
int plan_tick(struct plan *plan, const size_t *numbers, size_t n, bool done, struct err *err);
/* A whole copy. */
void plan_copy(const struct plan *plan, struct plan *ret);

/* plan.md's bytes. */
void plan_write(const struct plan *plan, struct buf *out);
/* The same for the model, with the numbers of the items: "- [x] 3. text". */
void plan_show(const struct plan *plan, struct buf *out);

#endif
