/*
 * cmd_say.c - `baton say RUN/AGENT TEXT`: a person's words to an agent that works.
 *
 * They are words of the user like those of the task: verbatim on disk, and what they forbid or choose is kept through
 * every compaction and reset (X2).
 */
#include <string.h>

#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/tell.h"

static int ask(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	const char *given = settings_arg(s, 1);

	text_sanitize(&text, given, strlen(given));
	json_set_str(request, "op", "say");
	json_set_str(request, "text", buf_str(&text));
	return tell_agent(s, run, agent, request, "reads it", "show", err);
}

int cmd_say(struct settings *s)
{
	struct err err = ERR_INIT;

	if (settings_n_args(s) < 2 || !settings_arg(s, 1)[strspn(settings_arg(s, 1), " \t\r\n")]) {
		err_set(&err, ERR_USAGE, "say needs a RUN/AGENT and a TEXT; see 'baton ls'");
		return command_fail(&err);
	}
	return tell_command(s, true, ask);
}
