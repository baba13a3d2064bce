/*
 * cmd_clean.c - `baton clean [RUN]...`: removes what ended runs left, and nothing that is not ours.
 *
 * A worktree goes only through baton-git, which first makes its state reachable from a ref (I7) and
 * keeps what it cannot save. The run's folder goes when all its worktrees are gone. Branches are
 * the user's to delete.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

/* 1 removed or nothing there, 0 kept. */
static int clean_worktree(struct git_session *git, const struct past_run *run,
			  const struct past_agent *agent, bool force)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct err err = ERR_INIT;

	if (!agent->branch || !agent->worktree || !file_exists(agent->worktree))
		return 1;
	json_set_bool(entry, "force", force);
	if (git_session_call(git, "remove", entry, &answer, &err) < 0) {
		printf("kept %s: %s\n", agent->worktree, err.message);
		return 0;
	}
	if (json_flag(answer, "removed", false)) {
		printf("removed %s (its work is on %s)\n", agent->worktree, agent->branch);
		return 1;
	}
	printf("kept %s: %s\n", agent->worktree, json_str(answer, "kept", "no reason given"));
	return 0;
}

static int clean_run(struct git_session *git, const struct past_run *run, bool force,
		     struct err *err)
{
	bool all = true;

	if (run->alive) {
		printf("run %s is running; left\n", run->id);
		return 0;
	}
	for (size_t i = 0; i < run->n_agents; i++)
		all &= clean_worktree(git, run, &run->agents[i], force) == 1;
	if (!all)
		return 0;
	if (run->worktrees && file_exists(run->worktrees) &&
	    file_remove_tree(run->worktrees, err) < 0)
		return -1;
	if (file_remove_tree(run->dir, err) < 0)
		return -1;
	printf("removed run %s\n", run->id);
	return 0;
}

static bool is_named(const struct settings *s, const struct past_run *run)
{
	if (settings_n_args(s) == 0)
		return true;
	for (size_t i = 0; i < settings_n_args(s); i++) {
		if (strcmp(settings_arg(s, i), run->id) == 0)
			return true;
	}
	return false;
}

static int check_names(const struct settings *s, const struct past_run *runs, size_t n,
		       struct err *err)
{
	for (size_t i = 0; i < settings_n_args(s); i++) {
		size_t k = 0;
		while (k < n && strcmp(runs[k].id, settings_arg(s, i)) != 0)
			k++;
		if (k == n)
			return err_set(err, ERR_NOT_FOUND, "there is no run '%s'; see 'baton ls'",
				       settings_arg(s, i));
	}
	return 0;
}

int cmd_clean(struct settings *s)
{
	struct past_run *runs;
	struct git_session *git = NULL;
	size_t n;
	struct err err = ERR_INIT;

	if (runs_list(s, &runs, &n, &err) < 0)
		return command_fail(&err);
	int rc = check_names(s, runs, n, &err);
	if (rc == 0 && n > 0)
		rc = git_session_open(runs[n - 1].toplevel, &git, &err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (is_named(s, &runs[i]))
			rc = clean_run(git, &runs[i], settings_flag(s, OPT_FORCE), &err);
	}
	git_session_close(git);
	runs_free(runs, n);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
