/*
 * range.c - the user's own changes: what a review looks at, and the snapshot that --dirty starts
 * from.
 *
 * Works on copies of his index. His index, refs, stash and worktree stay as they are; what is added
 * to his objects are loose ones that nothing names until a run's refs do, which git gc drops like
 * any other.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/checkout.h"
#include "worktrees/diffs.h"
#include "worktrees/disk.h"
#include "worktrees/ask.h"
#include "worktrees/git.h"
#include "worktrees/ops.h"

#define PATCHES_MAX ((size_t)24 << 20)

struct side {
	char old_oid[OID_MAX], new_oid[OID_MAX];
	char *title;
};

static int need_checkout(const struct repo *repo, struct err *err)
{
	if (!repo->toplevel)
		return err_set(err, ERR_UNSUPPORTED,
			       "'%s' is a bare repository: it has no uncommitted work",
			       repo->common_dir);
	return 0;
}

/* A copy of the user's index in our own folder; caller frees the path and removes the file. */
static char *copy_index(const struct repo *repo, struct err *err)
{
	AUTO_FREE char *from = file_join(repo->git_dir, "index");
	AUTO_FREE char *dir = file_join(repo->baton_dir, "tmp");
	AUTO_FREE char *to = mem_printf("%s/index-%ld", dir, (long)getpid());

	if (!file_is_dir(dir) && file_mkdirs(dir, 0700, err) < 0)
		return NULL;
	if (file_exists(from) && disk_copy(from, to, err) < 0)
		return NULL;
	return take_ptr(to);
}

/* The tree of the user's index, or of his worktree when `all`. */
static int user_tree(const struct repo *repo, bool all, bool untracked, char **ret, struct err *err)
{
	AUTO_FREE char *index = copy_index(repo, err);
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER, .index = index, .durable = true};

	if (!index)
		return -1;
	int rc = 0;
	if (all)
		rc = git_run(&cmd,
			     GIT_ARGS("-c", "advice.addEmbeddedRepo=false", "add",
				      untracked ? "-A" : "-u", "--", "."),
			     NULL, err);
	if (rc == 0)
		rc = git_line(&cmd, GIT_ARGS("write-tree"), ret, err);
	unlink(index);
	return rc;
}

static int tree_commit(const struct repo *repo, const char *tree, const char *parent,
		       const char *message, char ret_oid[OID_MAX], struct err *err)
{
	static const char *const env[] = {
		"GIT_AUTHOR_NAME=baton", "GIT_AUTHOR_EMAIL=baton@localhost",
		"GIT_COMMITTER_NAME=baton", "GIT_COMMITTER_EMAIL=baton@localhost", NULL};
	AUTO_BUF struct buf text = BUF_INIT;
	struct git_cmd cmd = {
		.repo = repo, .scope = GIT_USER, .env = env, .in = &text, .durable = true};

	text_sanitize(&text, message, strlen(message));
	return ask_commit_tree(&cmd, tree, (const char *const[]){parent, NULL}, ret_oid, err);
}

int op_snapshot(const struct repo *repo, struct json_object *body, struct json_object *answer,
		struct err *err)
{
	AUTO_FREE char *tree = NULL;
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	char head[OID_MAX], head_tree[OID_MAX], commit[OID_MAX];
	bool born = repo_head(repo, head, NULL) == 0;

	if (need_checkout(repo, err) < 0 ||
	    user_tree(repo, true, json_flag(body, "untracked", true), &tree, err) < 0)
		return -1;
	if (born && ask_tree_of(&cmd, head, head_tree, err) < 0)
		return -1;
	if (born && strcmp(tree, head_tree) == 0) {
		json_set_str(answer, "commit", head);
		return 0;
	}
	if (tree_commit(repo, tree, born ? head : NULL,
			json_str(body, "message", "baton: uncommitted work"), commit, err) < 0 ||
	    checkout_trust_snapshot(repo, commit, err) < 0)
		return -1;
	json_set_str(answer, "commit", commit);
	return 0;
}

/* --- ranges --- */

static int empty_tree(const struct repo *repo, char ret_oid[OID_MAX], struct err *err)
{
	AUTO_BUF struct buf nothing = BUF_INIT;
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER, .in = &nothing};
	AUTO_FREE char *line = NULL;

	if (git_line(&cmd, GIT_ARGS("hash-object", "-w", "-t", "tree", "--stdin"), &line, err) < 0)
		return -1;
	if (!oid_valid(line, repo->hex))
		return err_set(err, ERR_INVALID, "git made no empty tree");
	memcpy(ret_oid, line, repo->hex + 1);
	return 0;
}

static int side_uncommitted(const struct repo *repo, bool all, struct side *side, struct err *err)
{
	AUTO_FREE char *tree = NULL;
	bool born = repo_head(repo, side->old_oid, NULL) == 0;

	if (need_checkout(repo, err) < 0 || user_tree(repo, all, true, &tree, err) < 0 ||
	    (!born && empty_tree(repo, side->old_oid, err) < 0))
		return -1;
	side->title = mem_strdup(all ? "uncommitted changes in the worktree" : "staged changes");
	return tree_commit(repo, tree, born ? side->old_oid : NULL, "baton: under review\n",
			   side->new_oid, err);
}

static int side_pair(const struct repo *repo, const char *spec, const char *dots, struct side *side,
		     struct err *err)
{
	bool three = dots[2] == '.';
	AUTO_FREE char *left = mem_strndup(spec, (size_t)(dots - spec));
	const char *right = dots + (three ? 3 : 2);
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	AUTO_FREE char *base = NULL;

	if (repo_resolve(repo, *left ? left : "HEAD", side->old_oid, err) < 0 ||
	    repo_resolve(repo, *right ? right : "HEAD", side->new_oid, err) < 0)
		return -1;
	side->title = mem_strdup(spec);
	if (!three)
		return 0;
	if (git_line(&cmd, GIT_ARGS("merge-base", side->old_oid, side->new_oid), &base, NULL) < 0 ||
	    !oid_valid(base, repo->hex))
		return err_set(err, ERR_INVALID, "'%s' have no commit in common", spec);
	memcpy(side->old_oid, base, repo->hex + 1);
	return 0;
}

static int side_commit(const struct repo *repo, const char *spec, struct side *side,
		       struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};

	if (repo_resolve(repo, spec, side->new_oid, err) < 0)
		return -1;
	AUTO_FREE char *first = mem_printf("%s^1", side->new_oid);
	if (git_line(&cmd,
		     GIT_ARGS("show", "-s", "--no-show-signature", "--format=%h %s", side->new_oid),
		     &side->title, err) < 0)
		return -1;
	if (repo_resolve(repo, first, side->old_oid, NULL) == 0)
		return 0;
	return empty_tree(repo, side->old_oid, err);
}

/* Of a review that goes on: both sides by their ids, whatever the words stand for by now. */
static int side_known(const struct repo *repo, struct json_object *body, struct side *side,
		      struct err *err)
{
	const char *old = json_str(body, "old", ""), *new = json_str(body, "new", "");

	if (!oid_valid(old, repo->hex) || !oid_valid(new, repo->hex))
		return err_set(err, ERR_INVALID, "'%s' and '%s' are no object ids", old, new);
	memcpy(side->old_oid, old, repo->hex + 1);
	memcpy(side->new_oid, new, repo->hex + 1);
	side->title = mem_strdup(json_str(body, "spec", ""));
	return 0;
}

static int side_read(const struct repo *repo, const char *spec, struct side *side, struct err *err)
{
	const char *dots = strstr(spec, "..");

	if (spec[0] == '-')
		return err_set(err, ERR_INVALID, "'%s' is no revision", spec);
	if (strcmp(spec, "staged") == 0 || strcmp(spec, "worktree") == 0)
		return side_uncommitted(repo, spec[0] == 'w', side, err);
	return dots ? side_pair(repo, spec, dots, side, err) : side_commit(repo, spec, side, err);
}

int op_range(const struct repo *repo, struct json_object *body, struct json_object *answer,
	     struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_USER};
	struct side side = {.title = NULL};
	struct json_object *files;
	const char *spec;
	int context = (int)json_i64(body, "context", 3);
	size_t max = (size_t)json_i64(body, "max", PATCHES_MAX);
	bool cut = false;

	if (json_need_str(body, "spec", &spec, err) < 0)
		return -1;
	int rc = json_has(body, "old") ? side_known(repo, body, &side, err)
				       : side_read(repo, spec, &side, err);
	AUTO_FREE char *title = side.title;
	if (rc < 0)
		return -1;
	files = diffs_files(&cmd, side.old_oid, side.new_oid, NULL, err);
	if (!files)
		return -1;
	json_set(answer, "files", files);
	if (diffs_patches(&cmd, side.old_oid, side.new_oid, MAX(0, MIN(context, 1000)),
			  MIN(max, PATCHES_MAX), files, &cut, err) < 0)
		return -1;
	json_set_str(answer, "old", side.old_oid);
	json_set_str(answer, "new", side.new_oid);
	json_set_str(answer, "title", title);
	json_set_bool(answer, "cut", cut);
	return 0;
}
