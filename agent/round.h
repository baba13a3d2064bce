/*
 * round.h - the loop of an agent: ask, run tools, append, until the work has ended.
 */
#ifndef BATON_AGENT_ROUND_H
#define BATON_AGENT_ROUND_H

#include "agent/state.h"

/* Works from the opening to the end: 1 with the outcome set, or -1 (see state.h). The last records
 * are on disk afterwards, as far as the disk takes them. */
int work_run(struct agent *a, struct err *err);

/* Its parts, for whoever has something to do between two rounds: begin, then round, until one of them is not
 * 0; end with that value, which returns what work_run does. */
int work_begin(struct agent *a, struct err *err);
int work_round(struct agent *a, struct err *err);
int work_end(struct agent *a, int rc, struct err *err);

#endif
