/*
 * clear.h - microcompaction (T7, H2): old results of tools whose output can be had again are replaced by
 * a line. No model call; the calls and their ids stay, so the message chain holds.
 */
#ifndef BATON_AGENT_CONTEXT_CLEAR_H
#define BATON_AGENT_CONTEXT_CLEAR_H

#include "agent/context/rungs.h"

#define CLEARED "[Old tool result content cleared]"
#define CLEARED_EFFECT                                                                             \
	CLEARED " What this call did stands; look at the file or the tree, do not do it again."

/* Clearable results take more than 40 % of effective, a tenth of it would be gained, and it pays: either
 * the compact threshold is passed (a summary would be next), or by the model's prices what is saved over
 * the rounds to come is more than what writing the rest of the prefix again costs (W11). */
bool clear_wanted(const struct rung_input *in);
int clear_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

#endif
