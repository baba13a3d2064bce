/*
 * fork.c - see fork.h. Runs in the parent, reads and writes no file.
 */
#include "orchestrator/fork.h"

#include <string.h>

#include "base/memory.h"
#include "orchestrator/agents.h"
#include "orchestrator/subagents.h"

bool fork_is_wished(struct json_object *wish)
{
	return json_flag(wish, "fork", false);
}

char *fork_refusal(const struct agent_record *agent, struct json_object *wish)
{
	if (!fork_is_wished(wish))
		return NULL;
	if (agent->family.fork_of)
		return mem_strdup(
			"you are a fork, and a fork cannot fork: do it yourself, or start an "
			"agent by role with all that it has to know in 'task'");
	if (json_has(wish, "role") && strcmp(json_str(wish, "role", ""), agent->role->name) != 0)
		return mem_printf(
			"a fork has your role, %s: leave 'role' out, or start an agent of that "
			"role without 'fork'",
			agent->role->name);
	if (json_has(wish, "output_schema"))
		return mem_strdup(
			"a fork reports in the form that you report in: leave 'output_schema' "
			"out and say in 'task' what it is to report");
	return NULL;
}

void fork_mold(const struct agent_record *agent, struct json_object *record,
	       struct agent_spec *spec)
{
	if (!fork_is_wished(json_obj(record, "wish")))
		return;
	spec->role = agent->role->name;
	spec->output_schema = agent->output_schema;
	spec->family.fork_of = json_i64(record, "generation", 1);
}

const struct agent_record *fork_origin(const struct agent_record *agent)
{
	return agent->family.fork_of ? agent->family.spawner : agent;
}

struct json_object *fork_document(const struct agent_record *agent)
{
	const struct agent_record *origin = fork_origin(agent);
	const char *call = subagents_call(agent);

	if (origin == agent)
		return NULL;
	struct json_object *doc = json_object_new_object();
	AUTO_FREE char *folder =
		mem_printf("%s/%lld", origin->dir, (long long)agent->family.fork_of);
	json_set_str(doc, "agent", origin->name);
	json_set_i64(doc, "generation", agent->family.fork_of);
	json_set_str(doc, "folder", folder);
	json_set_str(doc, "call", call);
	if (!agent->view)
		json_set_str(doc, "worktree", origin->worktree);
	return doc;
}
