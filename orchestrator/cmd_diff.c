/*
 * cmd_diff.c - `baton diff RUN/AGENT`: what an agent changed, from its branch or its live worktree.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

#define DIFF_MAX (64 << 20)

static int print_diff(const struct past_run *run, const struct past_agent *agent, struct err *err)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct git_session *git;

	json_set_bool(entry, "patch", true);
	json_set_i64(entry, "max", DIFF_MAX);
	if (git_session_open(run->toplevel, &git, err) < 0)
		return -1;
	int rc = git_session_call(git, "diff", entry, &answer, err);
	git_session_close(git);
	if (rc < 0)
		return -1;
	fputs(json_str(answer, "stat", ""), stdout);
	putchar('\n');
	fwrite(json_str(answer, "patch", ""), 1, json_str_len(answer, "patch"), stdout);
	return 0;
}

int cmd_diff(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = agent->branch ? print_diff(&run, agent, &err)
			       : err_set(&err, ERR_USAGE, "agent %s only read; it has no branch",
					 agent->name);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
