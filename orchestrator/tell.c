/*
 * tell.c - see tell.h.
 */
#include "orchestrator/tell.h"

#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/control.h"

static int not_running(const struct past_run *run, struct err *err)
{
	return err_set(err, ERR_USAGE, "run %s is not running (%s)%s%s", run->id, run->status,
		       run->resumable ? "; to go on with it: baton resume " : "",
		       run->resumable ? run->id : "");
}

int tell_agent(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct json_object *request, const char *then, const char *look, struct err *err)
{
	AUTO_FREE char *done =
		mem_printf("was told; it %s before its next request (baton %s %s/%s)", then, look,
			   run->id, agent->name);

	return tell_run(s, run, agent, request, done, err);
}

int tell_run(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	     struct json_object *request, const char *done, struct err *err)
{
	AUTO_JSON struct json_object *answer = NULL;

	if (!run->alive)
		return not_running(run, err);
	json_set_str(request, "agent", agent ? agent->name : NULL);
	if (control_ask(run->dir, request, &answer, err) < 0)
		return -1;
	if (settings_flag(s, OPT_JSON))
		command_print_json(answer);
	else
		command_say("%s%s%s %s\n", run->id, agent ? "/" : "", agent ? agent->name : "",
			    done);
	return 0;
}

int tell_command(struct settings *s, bool need_agent,
		 int (*fn)(const struct settings *s, const struct past_run *run,
			   const struct past_agent *agent, struct err *err))
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_n_args(s) ? settings_arg(s, 0) : NULL, need_agent, &run, &agent,
		      &err) < 0)
		return command_fail(&err);
	int rc = fn(s, &run, agent, &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
