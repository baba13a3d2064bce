/*
 * agent_reset.h - the parent's side of a Context Reset (R1, R4, R5).
 *
 *     ASKED -> STORED (checkpoint) -> LOOKED (commits, diff) -> PROVED (facts) -> accepted, or refused with reasons
 *        |
 *        +--> refused for good: no reset may follow (limits, a chain without progress, the run stops)
 *
 * One question of an agent, keyed like every effect. What the agent wrote is completed from git and checked against the
 * records; nothing that the model said is believed. From the record `agent.reset` on the generation is over: its
 * successor starts when its process is gone, whatever became of it.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_RESET_H
#define BATON_ORCHESTRATOR_AGENT_RESET_H

#include "base/err.h"
#include "base/json.h"
#include "handoff/frame.h"

struct agent_record;
struct settings;

/* A `reset` frame. -1: the agent broke the protocol. */
int agent_on_reset(struct agent_record *agent, const struct frame *frame, struct err *err);
/* "auto", "never" or "per_stage": what its role and the user say of resets. */
const char *agent_reset_policy(const struct agent_record *agent);
/* {"file", "from", "reason"} that this generation starts from, or NULL; caller puts it. */
struct json_object *agent_handoff_document(const struct agent_record *agent);

#endif
