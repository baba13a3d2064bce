/*
 * outcome.h - how the work of an agent's process ended. The words travel in `result` frames and stand in journals and
 * reports: an interface, like those of call.h.
 */
#ifndef BATON_HANDOFF_OUTCOME_H
#define BATON_HANDOFF_OUTCOME_H

enum outcome_status {
	OUTCOME_NONE,	 /* the work goes on */
	OUTCOME_DONE,	 /* it reported; what it reported may be that the task is not done */
	OUTCOME_FAILED,	 /* something failed for it: a call of the model, its worktree */
	OUTCOME_STOPPED, /* somebody stopped it */
	OUTCOME_LIMIT,	 /* rounds, window or budget are used up */
	OUTCOME_LOST, /* it died, broke its boundary, or its disk failed it: nothing it says can be relied on */
	OUTCOME_RESET, /* a successor goes on (R1); only ever said, never kept */
};

const char *outcome_name(enum outcome_status status); /* NULL for NONE */
enum outcome_status outcome_find(const char *name);   /* OUTCOME_NONE: unknown or NULL */

#endif
