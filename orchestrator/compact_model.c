/*
 * compact_model.c - see compact_model.h. Runs in the parent.
 *
 * A summary that loses what the work needs costs more than the cheaper call has saved, and that shows only
 * rounds later. So a pair of models counts as tried only where somebody measured it; everything else is the
 * user's own risk, which is told once and not at each agent.
 */
#include "orchestrator/compact_model.h"

#include <string.h>

#include "base/memory.h"
#include "base/model_table.h"
#include "orchestrator/run.h"
#include "orchestrator/run_open.h"

int compact_model_choose(const struct run *run, const struct role *role, const struct model *own,
			 struct model **ret, struct err *err)
{
	const char *name = settings_str_for(run->settings, OPT_COMPACT_MODEL, role->compact_model);
	AUTO_FREE char *own_name = mem_printf("%s/%s", own->provider, own->name);

	*ret = NULL;
	/* On its own model the call stands on the conversation's cached prefix. */
	if (!name || strcmp(name, "inherit") == 0 || strcmp(name, own_name) == 0)
		return 0;
	return run_compact_model(run, name, ret, err);
}

bool compact_model_on_record(struct json_object *pairs, const char *own, const char *other)
{
	for (size_t i = 0; i < json_len(pairs); i++) {
		struct json_object *pair = json_at(pairs, i);

		if (strcmp(json_str(pair, "agent", ""), own) == 0 &&
		    strcmp(json_str(pair, "compact", ""), other) == 0 &&
		    json_flag(pair, "passed", false))
			return true;
	}
	return false;
}

void compact_model_warn(struct agent_record *agent)
{
	const struct model *m = agent->compact_model;
	struct run *run = agent->run;

	if (!m || run->golden_told)
		return;
	AUTO_FREE char *own = mem_printf("%s/%s", agent->model->provider, agent->model->name);
	AUTO_FREE char *other = mem_printf("%s/%s", m->provider, m->name);
	if (compact_model_on_record(model_golden_results(), own, other))
		return;
	AUTO_FREE char *text = mem_printf(
		"no golden-set result is on record for summaries by '%s' for '%s': look at what "
		"compactions keep (baton compact AGENT --show)",
		other, own);
	run->golden_told = true;
	journal_add(run->journal, RECORD_AGENT_WARNING, "agent:s message:s", agent->name, text);
}
