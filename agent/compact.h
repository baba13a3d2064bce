/*
 * compact.h - full compaction (H5, H7, H9, H10, H12, X3): the older part of the view gives way to a
 * summary, made by one call on the same prefix, or to facts where no summary can be had.
 */
#ifndef BATON_AGENT_COMPACT_H
#define BATON_AGENT_COMPACT_H

#include "agent/state.h"

enum compact_trigger { COMPACT_THRESHOLD, COMPACT_REACTIVE };
const char *compact_trigger_name(enum compact_trigger trigger);

/* Before a round: compacts if more than the threshold is used and the breaker allows it. 0 whether it
 * did or not, -1 when the work was stopped meanwhile. */
int compact_if_needed(struct agent *a, struct err *err);

/* There is something that could go, and the breaker allows it. */
bool compact_possible(struct agent *a);
/* 0: the view holds less; 1: there is nothing that could go, or the breaker is open; -1 as above. */
int compact_now(struct agent *a, enum compact_trigger trigger, struct err *err);

#endif
