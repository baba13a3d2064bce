/*
 * cmd_pause.c - `baton pause RUN[/AGENT]`: no further model call leaves until `baton resume` (pause.h).
 */
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/tell.h"

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_FREE char *done = mem_printf(
		"is paused: what has left goes on to its end, nothing new begins; to go on: "
		"baton resume %s%s%s",
		run->id, agent ? "/" : "", agent ? agent->name : "");

	json_set_str(request, "op", "pause");
	return tell_run(s, run, agent, request, done, err);
}

int cmd_pause(struct settings *s)
{
	return tell_command(s, false, ask);
}
