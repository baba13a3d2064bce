/*
 * ask.c - see ask.h. Where a commit is among the user's own objects libgit2 answers for its tree, without a process.
 */
#include "worktrees/ask.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worktrees/repo.h"

static int oid_line(const struct git_cmd *cmd, const char *const *args, char ret_oid[OID_MAX],
		    struct err *err)
{
	AUTO_FREE char *line = NULL;
	size_t hex = cmd->repo->hex;

	if (git_line(cmd, args, &line, err) < 0)
		return -1;
	if (!oid_valid(line, hex))
		return err_set(err, ERR_INVALID, "'git %s' gave no object id", args[0]);
	memcpy(ret_oid, line, hex + 1);
	return 0;
}

int ask_tree_of(const struct git_cmd *cmd, const char *commit, char ret_oid[OID_MAX],
		struct err *err)
{
	AUTO_FREE char *spec = mem_printf("%s^{tree}", commit);

	if (repo_tree_of(cmd->repo, commit, ret_oid))
		return 0;
	return oid_line(cmd, GIT_ARGS("rev-parse", "--verify", "--end-of-options", spec), ret_oid,
			err);
}

int ask_is_ancestor(const struct git_cmd *cmd, const char *older, const char *newer, bool *ret,
		    struct err *err)
{
	struct git_cmd ask = *cmd;
	int status = 0;

	ask.ret_status = &status;
	if (git_run(&ask, GIT_ARGS("merge-base", "--is-ancestor", older, newer), NULL, err) < 0)
		return -1;
	if (status > 1)
		return err_set(err, ERR_INVALID, "the history of %s cannot be read", newer);
	*ret = status == 0;
	return 0;
}

int ask_commit_tree(const struct git_cmd *cmd, const char *tree, const char *const *parents,
		    char ret_oid[OID_MAX], struct err *err)
{
	AUTO_FREE const char **args = NULL;
	size_t n = 0, count = 0;

	while (parents && parents[count])
		count++;
	args = mem_array(NULL, 2 * count + 3, sizeof(*args));
	args[n++] = "commit-tree";
	args[n++] = tree;
	for (size_t i = 0; i < count; i++) {
		args[n++] = "-p";
		args[n++] = parents[i];
	}
	args[n] = NULL;
	return oid_line(cmd, args, ret_oid, err);
}

int ask_each_checkout(const struct repo *repo,
		      bool (*fn)(const char *path, const char *branch, void *arg), void *arg,
		      struct err *err)
{
	static const char heads[] = "branch refs/heads/";
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_BUF struct buf out = BUF_INIT;
	const char *where = "";

	if (git_run(&cmd, GIT_ARGS("worktree", "list", "--porcelain", "-z"), &out, err) < 0)
		return -1;
	for (size_t at = 0; at < out.len; at += strlen(out.data + at) + 1) {
		const char *item = out.data + at;

		if (text_starts(item, "worktree "))
			where = item + strlen("worktree ");
		else if (text_starts(item, heads) && !fn(where, item + strlen(heads), arg))
			break;
	}
	return 0;
}
