/*
 * round.h - the loop of an agent: ask, run tools, append, until the work has ended.
 */
#ifndef BATON_AGENT_ROUND_H
#define BATON_AGENT_ROUND_H

#include "agent/state.h"

/* Works from the opening to the end: 1 with the outcome set, or -1 (see state.h). The last records
 * are on disk afterwards, as far as the disk takes them. */
int work_run(struct agent *a, struct err *err);

#endif
