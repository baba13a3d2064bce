/*
 * hooks.h - the parent's side of hooks (M6): an agent says what is about to happen, the commands that the
 * user configured for it run one after another, and the agent gets what they say.
 *
 * One question of an agent at a time:
 *
 *   WAITING (no worktree yet) -> RUNNING (one command after another) -> answered
 *        |                          |
 *        +------ agent gone --------+-> the command is stopped, nobody is answered, collecting goes on
 *
 * Commands are jobs of the parent in a box of their own, with a time limit; they can read the agent's worktree and
 * write nothing but a scratch folder, so an agent that works on meanwhile could not be harmed by them, and
 * collecting only has to wait for the process.
 */
#ifndef BATON_ORCHESTRATOR_HOOKS_H
#define BATON_ORCHESTRATOR_HOOKS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/frame.h"
#include "orchestrator/settings.h"

struct agent_record;
struct hook_question;

/* [{"event", "matcher"}] of what is configured, for the start document; caller owns it. */
struct json_object *hooks_document(const struct settings *settings);

/* A `hook` frame. -1: the agent broke the protocol. */
int hooks_on_frame(struct agent_record *agent, const struct frame *frame, struct err *err);
/* Its worktree is there: a question that waited for it goes on. */
void hooks_worktree_ready(struct agent_record *agent);
/* Its process is gone: agent->hook is NULL as soon as no command of its question runs, and collecting is
 * called again. */
void hooks_agent_gone(struct agent_record *agent);
/* When the loop is over. */
void hooks_free(struct hook_question *question); /* NULL allowed */

#endif
