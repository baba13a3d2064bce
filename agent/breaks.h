/*
 * breaks.h - natural breaks of the work (H22): where a compaction loses least.
 *
 * Four of them, each with a knob: an item of the plan was ticked (break_task), the agent's shell made a
 * commit (break_commit), a command passes that failed before (break_pass), calls repeat (break_repeat).
 * What still fails is known here too, because a compaction should not forget it.
 */
#ifndef BATON_AGENT_BREAKS_H
#define BATON_AGENT_BREAKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

#define BREAKS_FAILING	 4	  /* commands that failed and have not passed since */
#define BREAKS_HEAD_SIZE (64 + 1) /* a commit's name */

struct agent;
struct arrival;

struct breaks {
	bool now;		       /* one came since it was last taken */
	size_t done;		       /* items of the plan */
	char *failing[BREAKS_FAILING]; /* the newest last */
	size_t n_failing;
	char head[BREAKS_HEAD_SIZE]; /* of the agent's branch; "": not known yet */
};

void breaks_init(struct agent *a); /* once the plan is there */
void breaks_release(struct breaks *breaks);

/* After a call that ran. */
void breaks_after_call(struct agent *a, const struct arrival *arrival, struct json_object *input);
void breaks_repeated(struct agent *a);
/* Whether one came since the last time. */
bool breaks_take(struct agent *a);

/* Appends what matters most now, by rule: the work in progress, key files, approaches that were ruled out,
 * commands that fail. Nothing where nothing is known. */
void breaks_focus(const struct agent *a, struct buf *out);

#endif
