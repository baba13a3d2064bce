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
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

/* Is anything of the agent left that may hold work or block later runs: checkout, private
 * repository, entry in the user's list of worktrees? */
static bool has_remains(const struct past_run *run, const struct past_agent *agent)
{
	AUTO_FREE char *git_dir = mem_printf("%s/agents/%s/git", run->dir, agent->name);
	AUTO_FREE char *entry =
		mem_printf("%s/../../../worktrees/baton+%s+%s", run->dir, run->id, agent->name);

	return agent->branch && agent->worktree &&
	       (file_exists(agent->worktree) || file_exists(git_dir) || file_exists(entry));
}

/* 1 removed or nothing there, 0 kept. */
static int clean_worktree(struct git_session *git, const struct past_run *run,
			  const struct past_agent *agent, bool force)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct err err = ERR_INIT;

	if (!has_remains(run, agent))
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

/* What dead runs left that no journal tells of: entries made just before a kill. */
static int prune(struct git_session *git, const struct past_run *runs, size_t n, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;
	struct json_object *alive = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		if (runs[i].alive)
			json_object_array_add(alive, json_object_new_string(runs[i].id));
	}
	json_set(request, "runs", alive);
	if (git_session_call(git, "prune", request, &answer, err) < 0)
		return -1;
	struct json_object *kept = json_arr(answer, "kept");
	for (size_t i = 0; i < json_len(kept); i++)
		printf("kept %s: %s\n", json_str(json_at(kept, i), "path", "?"),
		       json_str(json_at(kept, i), "reason", ""));
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

/* The run that a name or a unique prefix of one means, or -1 with err. */
static long find_named(const struct past_run *runs, size_t n, const char *name, struct err *err)
{
	long found = -1;

	for (size_t k = 0; k < n; k++) {
		if (strcmp(runs[k].id, name) == 0)
			return (long)k;
		if (text_starts(runs[k].id, name))
			found = found == -1 ? (long)k : -2;
	}
	if (found < 0)
		return err_set(err, found == -2 ? ERR_USAGE : ERR_NOT_FOUND,
			       "%s '%s'; see 'baton ls'",
			       found == -2 ? "several runs start with" : "there is no run", name);
	return found;
}

/* Marks what is to be cleaned: the named ones, or all. */
static int choose(const struct settings *s, const struct past_run *runs, size_t n, bool *chosen,
		  struct err *err)
{
	for (size_t k = 0; k < n; k++)
		chosen[k] = settings_n_args(s) == 0;
	for (size_t i = 0; i < settings_n_args(s); i++) {
		long k = find_named(runs, n, settings_arg(s, i), err);
		if (k < 0)
			return -1;
		chosen[k] = true;
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
	AUTO_FREE bool *chosen = mem_alloc(n + 1);
	int rc = choose(s, runs, n, chosen, &err);
	if (rc == 0 && n > 0)
		rc = git_session_open(runs[n - 1].toplevel, &git, &err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (chosen[i])
			rc = clean_run(git, &runs[i], settings_flag(s, OPT_FORCE), &err);
	}
	if (rc == 0 && git && settings_n_args(s) == 0)
		rc = prune(git, runs, n, &err);
	git_session_close(git);
	runs_free(runs, n);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
