/*
 * cmd_reset.c - `baton reset RUN/AGENT [--why TEXT]`: a person asks for a Context Reset (R1).
 */
#include "orchestrator/command.h"
#include "orchestrator/tell.h"

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();

	json_set_str(request, "op", "reset");
	json_set_str(request, "why", settings_str(s, OPT_WHY));
	return tell_agent(s, run, agent, request, "writes its handoff", "show", err);
}

int cmd_reset(struct settings *s)
{
	struct err err = ERR_INIT;

	if (settings_n_args(s) < 1) {
		err_set(&err, ERR_USAGE, "reset needs a RUN/AGENT; see 'baton ls'");
		return command_fail(&err);
	}
	return tell_command(s, true, ask);
}
