/*
 * cmd_say.c - `baton say RUN/AGENT TEXT`: a person's words to an agent that works.
 *
 * They are words of the user like those of the task: verbatim on disk, and what they forbid or choose is kept through
 * every compaction and reset (X2).
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/control.h"
#include "orchestrator/runs.h"

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *got = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	const char *given = settings_arg(s, 1);

	if (!run->alive)
		return err_set(err, ERR_USAGE, "run %s is not running (%s)%s%s", run->id,
			       run->status,
			       run->resumable ? "; to go on with it: baton resume " : "",
			       run->resumable ? run->id : "");
	text_sanitize(&text, given, strlen(given));
	json_set_str(request, "op", "say");
	json_set_str(request, "agent", agent->name);
	json_set_str(request, "text", buf_str(&text));
	if (control_ask(run->dir, request, &got, err) < 0)
		return -1;
	if (settings_flag(s, OPT_JSON))
		command_print_json(got);
	else
		command_say("%s/%s reads it before its next request\n", run->id, agent->name);
	return 0;
}

int cmd_say(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (settings_n_args(s) < 2 || !settings_arg(s, 1)[strspn(settings_arg(s, 1), " \t\r\n")]) {
		err_set(&err, ERR_USAGE, "say needs a RUN/AGENT and a TEXT");
		return command_fail(&err);
	}
	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = ask(s, &run, agent, &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
