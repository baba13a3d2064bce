/*
 * cmd_diff.c - `baton diff RUN/AGENT`: what an agent changed, from its branch or its live worktree.
 */
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

#define DIFF_MAX (64 << 20)

static void print_patch(struct json_object *answer, const char *key)
{
	fwrite(json_str(answer, key, ""), 1, json_str_len(answer, key), stdout);
}

/* A worktree that is there may hold more than its branch. */
static int diff_worktree(struct git_session *git, struct json_object *entry, struct err *err)
{
	AUTO_JSON struct json_object *answer = NULL;

	json_set_bool(entry, "patch", true);
	json_set_i64(entry, "max", DIFF_MAX);
	if (git_session_call(git, "diff", entry, &answer, err) < 0)
		return -1;
	print_patch(answer, "stat");
	putchar('\n');
	print_patch(answer, "patch");
	return 0;
}

/* After the worktree is gone the branch holds all of it. */
static int diff_branch(struct git_session *git, const struct past_agent *agent, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *answer = NULL;
	AUTO_FREE char *spec = mem_printf("%s..%s", agent->base, agent->branch);

	json_set_str(request, "spec", spec);
	json_set_i64(request, "context", 3);
	json_set_i64(request, "max", DIFF_MAX);
	if (git_session_call(git, "range", request, &answer, err) < 0)
		return -1;
	struct json_object *files = json_arr(answer, "files");
	for (size_t i = 0; i < json_len(files); i++) {
		struct json_object *file = json_at(files, i);
		printf(" %s | +%lld -%lld\n", json_str(file, "path", "?"),
		       (long long)json_i64(file, "added", 0),
		       (long long)json_i64(file, "deleted", 0));
	}
	putchar('\n');
	for (size_t i = 0; i < json_len(files); i++)
		print_patch(json_at(files, i), "patch");
	return 0;
}

static int print_diff(const struct past_run *run, const struct past_agent *agent, struct err *err)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	struct git_session *git;

	if (git_session_open(run->toplevel, &git, err) < 0)
		return -1;
	int rc = agent->worktree && file_exists(agent->worktree) ? diff_worktree(git, entry, err)
								 : diff_branch(git, agent, err);
	git_session_close(git);
	return rc;
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
