/*
 * calls.h - model calls as the parent sees them: reserve, relay, settle.
 *
 * The relay (handoff/call.h) moves the frames; this file keeps the money. A request is reserved
 * before it is released to the gateway; each attempt is settled by the agent's `usage` frame, or by
 * an estimate when the attempt ended without one.
 */
#ifndef BATON_ORCHESTRATOR_CALLS_H
#define BATON_ORCHESTRATOR_CALLS_H

#include <stdbool.h>

#include "base/err.h"
#include "handoff/frame.h"

struct agent_record;
struct run;
struct run_budget;

int calls_from_agent(struct agent_record *agent, const struct frame *frame, struct err *err);
int calls_from_gateway(struct run *run, const struct frame *frame, struct err *err);
void calls_note(struct run *run, const struct frame *frame);
void calls_gateway_died(struct run *run);
/* The agent's channel is over: aborts its open calls and settles them by estimate. */
void calls_drop_agent(struct agent_record *agent);
/* Has it a request that the parent holds back? */
bool calls_wait(const struct agent_record *agent);
/* The budget that does not cover such a request, even with nothing in flight; NULL: none. */
const struct run_budget *calls_short_of(const struct agent_record *agent);
/* Tries held requests again; called after settlements and pauses. */
void calls_retry_held(struct run *run);

#endif
