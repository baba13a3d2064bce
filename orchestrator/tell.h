/*
 * tell.h - what commands share that bring a person's word to a run at work: compact, reset, say, pause, stop.
 */
#ifndef BATON_ORCHESTRATOR_TELL_H
#define BATON_ORCHESTRATOR_TELL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "orchestrator/runs.h"
#include "orchestrator/settings.h"

/* Sends the request (docs/control.md), whose `agent` it fills in, and prints the answer: as JSON, or that the agent was
 * told, what it will do (`then`), and by which command that can be seen (`look`: "show"). ERR_USAGE: the run is not alive. */
int tell_agent(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	       struct json_object *request, const char *then, const char *look, struct err *err);

/* The same for a whole run (agent NULL) or one of its agents; `done` says what holds from now on. */
int tell_run(const struct settings *s, const struct past_run *run, const struct past_agent *agent,
	     struct json_object *request, const char *done, struct err *err);

/* A whole command: finds RUN/AGENT, its first argument (without one the newest run), and hands both to `fn`; need_agent: a run
 * of one agent needs none named. Its exit status. */
int tell_command(struct settings *s, bool need_agent,
		 int (*fn)(const struct settings *s, const struct past_run *run,
			   const struct past_agent *agent, struct err *err));

#endif
