/*
 * attach.h - what comes back into the window after a compaction (H13, H14), as a table.
 *
 * One row an attachment; each adds blocks to the new head message, behind the opening's parts, the user's
 * words and the summary, in the table's order. What an attachment takes is counted against the room for
 * all of them (budget.rehydrate); one that does not fit is left out, never cut silently.
 */
#ifndef BATON_AGENT_ATTACH_H
#define BATON_AGENT_ATTACH_H

#include "agent/state.h"

struct attach_input {
	const char *summary; /* what stands in the place of the history; "" if nothing does */
	size_t summary_len;
	size_t from;	 /* what stands before this index in the view stays */
	size_t tail;	 /* and from this one on */
	int64_t room;	 /* tokens left for attachments; the loop takes off what each added */
	bool head_stays; /* a summary behind another one: the opening is still there */
	bool by_notes;	 /* H4: only what a compaction by notes brings back */
};

struct attachment {
	const char *name;
	bool after_notes; /* also comes back after a compaction by notes */
	/* Adds blocks or none. -1: stopped or alone; what cannot be read is left out with a line. */
	int (*add)(struct agent *a, const struct attach_input *in, struct message *head,
		   struct err *err);
};

/* Runs the table. 0 or -1. */
int attach_all(struct agent *a, struct attach_input *in, struct message *head, struct err *err);

#endif
