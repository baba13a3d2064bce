/*
 * cmd_reset.c - `baton reset RUN/AGENT [--why TEXT]`: a person asks for a Context Reset (R1).
 */
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/control.h"
#include "orchestrator/runs.h"

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *got = NULL;

	if (!run->alive)
		return err_set(err, ERR_USAGE, "run %s is not running (%s)%s%s", run->id,
			       run->status,
			       run->resumable ? "; to go on with it: baton resume " : "",
			       run->resumable ? run->id : "");
	json_set_str(request, "op", "reset");
	json_set_str(request, "agent", agent->name);
	json_set_str(request, "why", settings_str(s, OPT_WHY));
	if (control_ask(run->dir, request, &got, err) < 0)
		return -1;
	if (settings_flag(s, OPT_JSON))
		command_print_json(got);
	else
		command_say("%s/%s was told; it writes its handoff before its next request (baton "
			    "show %s/%s)\n",
			    run->id, agent->name, run->id, agent->name);
	return 0;
}

int cmd_reset(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (settings_n_args(s) < 1) {
		err_set(&err, ERR_USAGE, "reset needs a RUN/AGENT; see 'baton ls'");
		return command_fail(&err);
	}
	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = ask(s, &run, agent, &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
