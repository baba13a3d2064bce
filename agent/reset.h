/*
 * reset.h - a Context Reset, the agent's side (R1, R5, R7): write the handoff, have it checked, end.
 *
 *   reason        when
 *   rounds        max_rounds of this generation (W8)
 *   breaker       compaction has given up (H10)
 *   summary       a summary did not pass the check twice (R4)
 *   compactions   max_compactions of this generation, and the window wants another one
 *   window        no room for another round, and nothing can go (X1)
 *   request       a person asked
 *   anxiety       it reports while work is open and its window is above anxiety_pct (R7)
 *
 * The document is made from records, judged by the model in one call, and sent to the parent, which checks it against
 * what it knows. What it refuses is asked of the model once more; then the facts alone have to do. A parent that wants
 * no reset at all (R5: a chain without progress) says so, and the agent reports as if its role said `never`.
 */
#ifndef BATON_AGENT_RESET_H
#define BATON_AGENT_RESET_H

#include <stdbool.h>

#include "base/err.h"
#include "handoff/document.h"

struct agent;

struct resets {
	bool refused;  /* there will be none in this generation */
	bool due;      /* another compaction would be one too many */
	char why[300]; /* of the refusal */
	char anxious
		[200]; /* why its report was not believed (R7): the next round begins with a reset; "" */
	int64_t asked; /* numbers the keys */
};

/* Does its role allow one, and has nobody refused it for good? */
bool reset_possible(const struct agent *a);
/* 1: the parent accepted, and the outcome is set; 0: there is none, a->resets.why says so; -1: stopped or alone. */
int reset_run(struct agent *a, enum handoff_reason reason, const char *why, struct err *err);
/* R7: is this report not to be believed? Then a->resets.anxious says why, and the next round begins with a reset: its
 * call has to be answered before anything can be asked. */
struct json_object;
bool reset_is_anxious(struct agent *a, struct json_object *report);

#endif
