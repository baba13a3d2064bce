/*
 * fork.h - forks, the parent's side (A2): an agent that begins with the conversation of the one that started it.
 *
 * For its request to begin with the same bytes, a fork gets of its spawner whatever stands before the messages: role,
 * model, form of the report, list of tools. What it may not do is refused when it does it, by what the parent knows of
 * it and by a tree that is read-only, not by a shorter list. The conversation itself passes from folder to folder
 * (agent/fork.h).
 */
#ifndef BATON_ORCHESTRATOR_FORK_H
#define BATON_ORCHESTRATOR_FORK_H

#include <stdbool.h>

#include "base/json.h"

struct agent_record;
struct agent_spec;

bool fork_is_wished(struct json_object *wish);
/* NULL: nothing speaks against it, or no fork is wished. Else why not, and what to do instead. Caller frees. */
char *fork_refusal(const struct agent_record *agent, struct json_object *wish);
/* What a fork has of `agent`, by the record `agent.asked`. Of any other wish nothing is changed. */
void fork_mold(const struct agent_record *agent, struct json_object *record,
	       struct agent_spec *spec);
/* Whose list of tools it has: its spawner for a fork, else itself. */
const struct agent_record *fork_origin(const struct agent_record *agent);
/* "fork" of the start document; caller puts it. NULL: it is none. */
struct json_object *fork_document(const struct agent_record *agent);

#endif
