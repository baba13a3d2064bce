/*
 * cmd_diff.c - `baton diff RUN/AGENT`: what an agent changed, from its branch or its live worktree.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/git_session.h"
#include "orchestrator/runs.h"

#define DIFF_MAX (64 << 20)

/* A patch is printed as it is into a file or a pipe, where it may be applied; a terminal gets no
 * control characters (I12). */
static void print_patch(struct json_object *answer, const char *key)
{
	AUTO_BUF struct buf clean = BUF_INIT;
	const char *text = json_str(answer, key, "");
	size_t n = json_str_len(answer, key);

	if (!isatty(STDOUT_FILENO)) {
		command_write(text, n);
		return;
	}
	text_printable(&clean, text, n, false);
	command_write(buf_str(&clean), clean.len);
}

/* A worktree that is there may hold more than its branch, unless it is the user's by now. */
static int ask_worktree(struct git_session *git, struct json_object *entry,
			struct json_object **ret, struct err *err)
{
	json_set_bool(entry, "patch", true);
	json_set_i64(entry, "max", DIFF_MAX);
	return git_session_call(git, "diff", entry, ret, err);
}

/* After the worktree is gone the branch holds all of it. */
static int ask_branch(struct git_session *git, const struct past_agent *agent,
		      struct json_object **ret, struct err *err)
{
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_FREE char *spec = mem_printf("%s..%s", agent->base, agent->branch);

	json_set_str(request, "spec", spec);
	json_set_i64(request, "context", 3);
	json_set_i64(request, "max", DIFF_MAX);
	return git_session_call(git, "range", request, ret, err);
}

static void print_stat(struct json_object *answer)
{
	struct json_object *files = json_arr(answer, "files");

	for (size_t i = 0; i < json_len(files); i++) {
		AUTO_BUF struct buf path = BUF_INIT;
		struct json_object *file = json_at(files, i);
		const char *text = json_str(file, "path", "?");
		text_printable(&path, text, strlen(text), true);
		printf(" %s | +%lld -%lld\n", buf_str(&path), (long long)json_i64(file, "added", 0),
		       (long long)json_i64(file, "deleted", 0));
	}
	putchar('\n');
}

/* What is a patch for a pipe stays one: that there is none is said beside it. */
static void print_answer(const struct past_run *run, const struct past_agent *agent,
			 struct json_object *answer, bool json)
{
	struct json_object *files = json_arr(answer, "files");

	if (json) {
		command_print_json(answer);
		return;
	}
	if (json_len(files) == 0) {
		fprintf(stderr, "baton: agent %s/%s changed nothing\n", run->id, agent->name);
		return;
	}
	print_stat(answer);
	print_patch(answer, "patch");
	for (size_t i = 0; i < json_len(files); i++)
		print_patch(json_at(files, i), "patch");
}

static int print_diff(const struct past_run *run, const struct past_agent *agent, bool json,
		      struct err *err)
{
	AUTO_JSON struct json_object *entry = past_agent_entry(run, agent);
	AUTO_JSON struct json_object *answer = NULL;
	struct git_session *git;

	if (git_session_open(run->toplevel, &git, err) < 0)
		return -1;
	int rc = agent->worktree && !agent->adopted && file_exists(agent->worktree)
			 ? ask_worktree(git, entry, &answer, err)
			 : ask_branch(git, agent, &answer, err);
	git_session_close(git);
	if (rc == 0)
		print_answer(run, agent, answer, json);
	return rc;
}

int cmd_diff(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = agent->branch ? print_diff(&run, agent, settings_flag(s, OPT_JSON), &err)
			       : err_set(&err, ERR_USAGE, "agent %s only read; it has no branch",
					 agent->name);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
