/*
 * collapse.h - finished rounds are shown as one state snapshot, made by rule (H3).
 *
 * At budget.collapse (90 % of effective, or 5 % below the compact threshold where that is lower) everything between
 * the head of the view and its newest rounds gives way to a snapshot (snapshot.h) at the end of the head. What
 * people said, instructions and the model's newest notes stay verbatim beside it. The conversation keeps all, and
 * `recall` finds it. A second collapse makes the snapshot anew over both stretches. It must earn its place
 * (rung_earns), else a summary is the better way to lose the rounds.
 */
#ifndef BATON_AGENT_CONTEXT_COLLAPSE_H
#define BATON_AGENT_CONTEXT_COLLAPSE_H

#include "agent/context/rungs.h"

bool collapse_wanted(const struct rung_input *in);
int collapse_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

#endif
