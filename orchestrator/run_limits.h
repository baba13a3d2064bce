/*
 * run_limits.h - what happens when a run's money or tokens do not cover a call (X8): nobody is killed.
 *
 * A call that fits in no smaller form waits, while calls that do fit go on; no agent is started any more. When nobody
 * works any more the run ends with its work kept (status "budget"), and says how to go on. Whoever raises the limit
 * before that lets it go on at once.
 */
#ifndef BATON_ORCHESTRATOR_RUN_LIMITS_H
#define BATON_ORCHESTRATOR_RUN_LIMITS_H

#include "base/err.h"
#include "base/json.h"

struct agent_record;
struct call_entry;
struct run;
struct run_budget;

/* Such a call waits from now on. `budget` is the one that does not cover it: the run's, or a stage's. */
void run_limits_reached(struct run *run, const struct agent_record *agent,
			const struct call_entry *entry, const struct run_budget *budget);
/* Ends the run when it is paused for a budget and nobody works. To be called once a turn of the tick. */
void run_limits_look(struct run *run);
/* "max_cost", "max_tokens" of a request: 1 taken, 0 none is there, -1 with err. */
int run_limits_raise(struct run *run, struct json_object *request, struct err *err);

#endif
