/*
 * cmd_adopt.c - `baton adopt RUN/AGENT [DIR]`: a kept worktree becomes an ordinary linked one of
 * the user's.
 *
 * That it happened is noted beside the run's records, so that the other commands know whose the
 * worktree is now. The note comes last: without it the entry itself still tells (runs.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

/* The new folder's path without links, "." and "..": git keeps it as it is given. Its parent has to
 * be there, as for mv. Caller frees. */
static char *clean_path(const struct past_run *run, const char *dir, struct err *err)
{
	AUTO_FREE char *common = mem_printf("%s/../../..", run->dir);
	AUTO_FREE char *git = realpath(common, NULL);
	AUTO_FREE char *bare = mem_strdup(dir);

	for (size_t n = strlen(bare); n > 1 && bare[n - 1] == '/'; n--)
		bare[n - 1] = '\0';
	AUTO_FREE char *there = realpath(bare, NULL);
	if (there) {
		err_set(err, ERR_EXISTS, "'%s' exists already; name a folder that is to be made",
			dir);
		return NULL;
	}
	AUTO_FREE char *parent = file_dir(bare);
	AUTO_FREE char *real = realpath(parent, NULL);
	const char *base = file_base(bare);
	if (!real) {
		err_sys(err, "cannot find the folder '%s'", parent);
		return NULL;
	}
	if (strcmp(base, "..") == 0 || strcmp(base, ".") == 0) {
		err_set(err, ERR_USAGE, "'%s' names no folder that could be made", dir);
		return NULL;
	}
	if (git && file_lies_in(git, real)) {
		err_set(err, ERR_USAGE,
			"'%s' lies in the repository's own folder '%s', where git and baton remove "
			"what is theirs; name one outside",
			dir, git);
		return NULL;
	}
	return file_join(real, base);
}

/* Why there is nothing to take over; 0 if there is. */
static int check_worktree(const struct past_run *run, const struct past_agent *agent,
			  struct err *err)
{
	if (run->alive)
		return err_set(err, ERR_BUSY,
			       "run %s is still running; stop it first: baton stop %s", run->id,
			       run->id);
	if (agent->adopted)
		return err_set(err, ERR_EXISTS,
			       "the worktree of %s/%s was adopted before: it is '%s'%s", run->id,
			       agent->name, agent->adopted,
			       file_exists(agent->adopted) ? "" : ", which you removed");
	if (!agent->worktree_made || !agent->branch)
		return err_set(err, ERR_NOT_FOUND, "agent %s has no worktree", agent->name);
	if (!file_exists(agent->worktree))
		return err_set(err, ERR_NOT_FOUND,
			       "the worktree of %s/%s was removed; its work is on branch %s (git "
			       "worktree add DIR %s gives you one). --keep keeps the worktree of a "
			       "run that succeeds",
			       run->id, agent->name, agent->branch, agent->branch);
	return 0;
}

static int adopt(const struct past_run *run, const struct past_agent *agent, const char *path,
		 struct json_object **ret, struct err *err)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	struct git_session *git;
	struct err why = ERR_INIT;

	json_set_str(entry, "path", path);
	if (git_session_open(run->toplevel, &git, err) < 0)
		return -1;
	int rc = git_session_call(git, "adopt", entry, ret, err);
	git_session_close(git);
	if (rc == 0 && past_agent_adopted(run, agent, json_str(*ret, "path", ""), &why) < 0)
		log_warn("%s", why.message);
	return rc;
}

int cmd_adopt(struct settings *s)
{
	AUTO_FREE char *path = NULL;
	AUTO_JSON struct json_object *answer = NULL;
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = check_worktree(&run, agent, &err);
	if (rc == 0 && settings_arg(s, 1)) {
		path = clean_path(&run, settings_arg(s, 1), &err);
		rc = path ? 0 : -1;
	}
	if (rc == 0)
		rc = adopt(&run, agent, path, &answer, &err);
	if (rc == 0 && settings_flag(s, OPT_JSON))
		command_print_json(answer);
	else if (rc == 0)
		command_say("%s is now a worktree of yours on branch %s\n",
			    json_str(answer, "path", ""), json_str(answer, "branch", ""));
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
