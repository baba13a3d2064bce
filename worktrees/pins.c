/*
 * pins.c - the end of a saved state: refs/baton/RUN/AGENT/ckpt after its run's records went.
 *
 * The ref holds the chain of checkpoints: what the worktree held beyond the branch, commits of other
 * branches, a rewritten branch's old tip. It may go by itself when none of that is lost (I7): every
 * commit that no branch of the user's reaches is one that baton made itself, and the files of each
 * are those of a commit on a branch. It does not matter which branch: the agent's may be merged
 * into another and deleted by now.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worktrees/git.h"
#include "worktrees/ops.h"
#include "worktrees/work.h"

#define OURS "baton <baton@localhost>"

/* Is the line of this length one of the lines of text? */
static bool has_line(const char *text, const char *line, size_t n)
{
	for (const char *p = text; (p = strstr(p, line)) != NULL; p += n) {
		if ((p == text || p[-1] == '\n') && (p[n] == '\n' || !p[n]))
			return true;
	}
	return false;
}

/* The trees of all that the user's branches have had since the base, and the base's own. */
static int branch_trees(const struct work *work, struct buf *out, struct err *err)
{
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_USER};
	AUTO_FREE char *without = mem_printf("^%s", work->base);

	if (git_run(&cmd, GIT_ARGS("log", "-1", "--format=%T", work->base), out, err) < 0)
		return -1;
	return git_run(&cmd, GIT_ARGS("log", "--format=%T", "--branches", without), out, err);
}

/* Sets *ret_why (static) if the ref holds what no branch does. */
static int look(const struct work *work, const char *pin, const char **ret_why, struct err *err)
{
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_USER};
	AUTO_BUF struct buf only = BUF_INIT;
	AUTO_BUF struct buf trees = BUF_INIT;

	*ret_why = NULL;
	if (git_run(&cmd, GIT_ARGS("log", "--format=%T%n%cn <%ce>", pin, "--not", "--branches"),
		    &only, err) < 0)
		return -1;
	if (only.len == 0)
		return 0;
	if (branch_trees(work, &trees, err) < 0)
		return -1;
	char *rest = only.data, *tree, *who;
	while (!*ret_why && (tree = strsep(&rest, "\n")) != NULL && *tree) {
		who = strsep(&rest, "\n");
		if (!who || strcmp(who, OURS) != 0)
			*ret_why = "it holds commits that are on no branch";
		else if (!has_line(buf_str(&trees), tree, strlen(tree)))
			*ret_why = "it holds files that are on no branch";
	}
	return 0;
}

/* The branch whose history has the files of this saved state, the agent's own before others. NULL:
 * there is none, or they are the base's. Caller frees. */
static char *find_holder(const struct work *work, const char *pin)
{
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_USER};
	AUTO_FREE char *without = mem_printf("^%s", work->base);
	const char *own = work->head_ref + strlen("refs/heads/");
	AUTO_FREE char *tree = NULL;
	AUTO_BUF struct buf log = BUF_INIT;
	AUTO_BUF struct buf names = BUF_INIT;

	if (git_line(&cmd, GIT_ARGS("log", "-1", "--format=%T", pin), &tree, NULL) < 0 ||
	    git_run(&cmd, GIT_ARGS("log", "--format=%T %H", "--branches", without), &log, NULL) < 0)
		return NULL;
	const char *line = strstr(buf_str(&log), tree);
	if (!line || line[strlen(tree)] != ' ')
		return NULL;
	AUTO_FREE char *commit = mem_strndup(line + strlen(tree) + 1, work->repo->hex);
	if (git_run(&cmd,
		    GIT_ARGS("for-each-ref", "--format=%(refname:lstrip=2)", "--contains", commit,
			     "refs/heads"),
		    &names, NULL) < 0 ||
	    names.len == 0)
		return NULL;
	if (has_line(buf_str(&names), own, strlen(own)))
		return mem_strdup(own);
	return mem_strndup(buf_str(&names), strcspn(buf_str(&names), "\n"));
}

int op_drop_pin(const struct repo *repo, struct json_object *body, struct json_object *answer,
		struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	char pin[OID_MAX];
	const char *why = NULL;
	AUTO_FREE char *holder = NULL;

	if (work_init(&work, repo, body, err) < 0)
		return -1;
	json_set_str(answer, "ref", work.pin_ref);
	json_set_bool(answer, "dropped", false);
	json_set(answer, "kept", NULL);
	json_set(answer, "branch", NULL);
	json_set(answer, "commit", NULL);
	if (repo_ref(repo, work.pin_ref, pin, NULL) < 0)
		return 0;
	if (!json_flag(body, "force", false) && look(&work, pin, &why, err) < 0)
		return -1;
	json_set_str(answer, "kept", why);
	if (why)
		return 0;
	holder = find_holder(&work, pin);
	json_set_str(answer, "branch", holder);
	json_set_str(answer, "commit", strcmp(pin, work.base) != 0 ? pin : NULL);
	if (repo_move_ref(repo, work.pin_ref, NULL, pin, "baton: clean", err) < 0)
		return -1;
	json_set_bool(answer, "dropped", true);
	return 0;
}
