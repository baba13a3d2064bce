/*
 * clear.h - microcompaction (T7, H2): old results of tools whose output can be had again are replaced by
 * a line. No model call; the calls and their ids stay, so the message chain holds.
 */
#ifndef BATON_AGENT_CONTEXT_CLEAR_H
#define BATON_AGENT_CONTEXT_CLEAR_H

#include "agent/context/about.h"
#include "agent/context/rungs.h"

/* Results take more than clear_share per cent of effective. */
bool clear_wanted(const struct rung_input *in);
/* Clears, or frees nothing: where clearable results take less than that share, less than clear_gain would be
 * gained, or it does not pay (rung_earns). */
int clear_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

/* Clears whatever the newest `keep` clearable results leave, without asking whether it pays: for rungs whose
 * moment says that it does. `rung` names it. Sets in->done. */
void clear_old(struct rung_input *in, const char *rung, size_t keep);

#endif
