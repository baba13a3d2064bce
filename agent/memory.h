/*
 * memory.h - the working memory of one agent, which its model keeps through the tool `notes` (H18).
 *
 * Lists of short lines by field, and a plan (plan.h). Both are on disk in the generation's folder before the
 * tool's result is given: memory.json (docs/memory.md) and plan.md, each written atomically. They are the
 * model's own words: its field `constraints` is what it understood, and nothing of it ever counts as said
 * by the user (X2).
 *
 * The owner is the agent; the tools reach it through tool_settings. What of it the model has seen is
 * memory_show.h's business.
 */
#ifndef BATON_AGENT_MEMORY_H
#define BATON_AGENT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "agent/plan.h"
#include "base/buf.h"
#include "base/err.h"

#define MEMORY_VERSION	1
#define MEMORY_LINE_MAX 500 /* bytes */

enum memory_field {
	MEMORY_TASK, /* one or a few lines: what is being done now */
	MEMORY_DECISIONS,
	MEMORY_CONSTRAINTS,
	MEMORY_REJECTED, /* approaches that were ruled out, and why */
	MEMORY_FILES,
	MEMORY_PENDING,
	MEMORY_PREFERENCES,
	MEMORY_ERRORS,
	MEMORY_LESSONS, /* what is worth knowing in a later run (H21) */
	MEMORY_FIELDS,
};

struct memory_lines {
	char **list;
	size_t n, cap;
};

struct memory_settings {
	const char *dir_generation;
	int64_t generation;
	int64_t soft, hard; /* tokens (H18); the plan may take `hard` too */
	/* Tokens of a text; NULL: a token has four bytes. */
	int64_t (*estimate)(const void *arg, const char *text, size_t n);
	const void *arg;
};

struct working_memory {
	struct memory_lines fields[MEMORY_FIELDS];
	struct plan plan;
	uint64_t changes, plan_changes; /* so far; 0: nothing was ever noted */
	uint64_t shown, plan_shown;	/* of them, for memory_show.c */
	int64_t shown_epoch;
	char *folder;
	struct memory_settings settings; /* dir_generation is `folder` */
};

const char *memory_field_name(enum memory_field field);		 /* "rejected" */
int memory_field_find(const char *name, enum memory_field *ret); /* -1: none is called so */

/* Reads what is on disk; of a first start in a later generation what the newest earlier one left. A
 * damaged file is moved aside, and `warning` says so. ERR_IO. The caller releases. */
int memory_open(struct working_memory *m, const struct memory_settings *settings,
		struct buf *warning, struct err *err);
void memory_release(struct working_memory *m); /* also of a zeroed struct */

/* Each change is on disk when it returns, or nothing has changed. ERR_TOO_LARGE with the figures above the
 * hard limit; ERR_INVALID; ERR_NOT_FOUND: memory_remove found no such line, or more than one. */
struct memory_line { /* borrowed; any bytes: cleaned to one line of text */
	const char *text;
	size_t n;
};
int memory_set(struct working_memory *m, enum memory_field field, const struct memory_line *lines,
	       size_t n, struct err *err);
/* A line that is there already is not added a second time. */
int memory_add(struct working_memory *m, enum memory_field field, const struct memory_line *lines,
	       size_t n, struct err *err);
/* A line is named by all of it, or by a part that no other line of the field has. */
int memory_remove(struct working_memory *m, enum memory_field field,
		  const struct memory_line *lines, size_t n, struct err *err);

/* Takes the plan over (it is empty afterwards) if it is within the hard limit and on disk. */
int memory_set_plan(struct working_memory *m, struct plan *plan, struct err *err);

size_t memory_lines_count(const struct working_memory *m);
int64_t memory_tokens(const struct working_memory *m);
int64_t memory_plan_tokens(const struct working_memory *m);

/* The block for the model; nothing if there is nothing noted. It begins with a line that memory_title
 * makes and that is unique for each state. */
void memory_title(const struct working_memory *m, struct buf *out);
void memory_show(const struct working_memory *m, struct buf *out);
void memory_plan_title(const struct working_memory *m, struct buf *out);
void memory_show_plan(const struct working_memory *m, struct buf *out);

#endif
