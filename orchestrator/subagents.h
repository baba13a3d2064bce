/*
 * subagents.h - agents that agents start (A1, A3, A5, X6): who may start how many, and who hears of whose end.
 *
 * An agent asks with a frame `spawn`; the parent decides by what it knows of the tree, never by a text (traps 150, 152),
 * journals `agent.asked` with the whole wish, and answers with the name of the new agent. That record is all a run
 * needs to go on: the agent's key is made of its starter, generation and call.
 *
 *     the agent that started others     they
 *     works                             work; each end is told to it once, by a frame `child`
 *     waits for one                     work; its place among --agents is free meanwhile
 *     resets                            work on; the next generation hears of them
 *     ends, by any way                  are asked to stop, and collected before its own work is
 */
#ifndef BATON_ORCHESTRATOR_SUBAGENTS_H
#define BATON_ORCHESTRATOR_SUBAGENTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/frame.h"

struct agent_record;
struct run;

int subagents_on_spawn(struct agent_record *agent, const struct frame *frame, struct err *err);
int subagents_on_message(struct agent_record *agent, const struct frame *frame, struct err *err);

/* DONE: the one that started it hears of it, and may have waited for it to be collected itself. */
void subagents_child_over(struct agent_record *child);
/* The process of this agent is gone for good: those that it started are asked to stop. */
void subagents_stop_children(struct agent_record *agent);
/* Is one that it started still there? Then its own work is not collected yet. */
bool subagents_has_live(const struct agent_record *agent);
/* It only waits for others, by its own word and by what is known of them. */
bool subagents_waits(const struct agent_record *agent);
/* Of a run that goes on: those that it started by the journal are queued again. */
void subagents_restore(struct agent_record *agent);
/* QUEUED, never started, and the one that wanted it is ending: it is DONE then, and true. */
bool subagents_drop_orphan(struct agent_record *agent);
/* It told its model of the end of this one (an event of the agent). */
void subagents_told(struct agent_record *agent, const char *child);

/* Of one that an agent started: the call that did. "" else. */
const char *subagents_call(const struct agent_record *child);

/* "children" of the start document; caller puts it. NULL: it started none. */
struct json_object *subagents_document(const struct agent_record *agent);
/* "subagents" of the start document: may it start others at all? */
bool subagents_allowed(const struct agent_record *agent);

#endif
