/*
 * cmd_adopt.c - `baton adopt RUN/AGENT [DIR]`: a kept worktree becomes an ordinary linked one of
 * the user's.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

static int adopt(const struct past_run *run, const struct past_agent *agent, const char *dir,
		 struct err *err)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *path = dir ? file_join(cwd ? cwd : "/", dir) : NULL;
	struct git_session *git;

	if (run->alive)
		return err_set(err, ERR_BUSY,
			       "run %s is still running; stop it first: baton stop %s", run->id,
			       run->id);
	if (!agent->worktree_made)
		return err_set(err, ERR_NOT_FOUND, "agent %s has no worktree", agent->name);
	json_set_str(entry, "path", path);
	if (git_session_open(run->toplevel, &git, err) < 0)
		return -1;
	int rc = git_session_call(git, "adopt", entry, &answer, err);
	git_session_close(git);
	if (rc == 0)
		printf("%s is now a worktree of yours on branch %s\n", json_str(answer, "path", ""),
		       json_str(answer, "branch", ""));
	return rc;
}

int cmd_adopt(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = adopt(&run, agent, settings_arg(s, 1), &err);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
