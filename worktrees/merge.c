/*
 * merge.c - merging in memory, and landing the result.
 *
 * libgit2 merges in process in a millisecond or two. Where it cannot read the repository, and where it finds a conflict,
 * git's own `merge-tree` has the last word: it follows renamed folders, and what it merges is merged. It runs in the plain
 * scope, since a merge driver of the user's configuration is a program and the files are what agents wrote.
 *
 * The objects of a merge are loose and many, where an import is one pack; so all of them are made durable in one go
 * before a ref stands on them.
 */
#include "worktrees/merge.h"

#include <git2.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/ask.h"
#include "worktrees/git.h"
#include "worktrees/ops.h"
#include "worktrees/work.h"

#define HEADS_MAX     256
#define CONFLICTS_MAX 1000
#define LOCK_GRACE_MS 1000

void merge_result_release(struct merge_result *result)
{
	json_object_put(result->conflicts);
	result->conflicts = NULL;
}

static int is_ancestor(const struct repo *repo, const char *old, const char *new, bool *ret,
		       struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_PLAIN};
	git_oid oids[2];

	if (repo->handle && git_oid_fromstr(&oids[0], old) == 0 &&
	    git_oid_fromstr(&oids[1], new) == 0) {
		int found = git_oid_equal(&oids[0], &oids[1]) ||
			    git_graph_descendant_of(repo->handle, &oids[1], &oids[0]);
		*ret = found == 1;
		if (found >= 0)
			return 0;
	}
	return ask_is_ancestor(&cmd, old, new, ret, err);
}

static int tree_of(const struct repo *repo, const char *commit, char ret_oid[OID_MAX],
		   struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_PLAIN};

	return ask_tree_of(&cmd, commit, ret_oid, err);
}

/* ---- in process ---- */

static struct json_object *index_conflicts(git_index *index)
{
	struct json_object *list = json_object_new_array();
	git_index_conflict_iterator *each = NULL;
	const git_index_entry *base, *ours, *theirs;

	if (git_index_conflict_iterator_new(&each, index) < 0)
		return list;
	while (json_len(list) < CONFLICTS_MAX &&
	       git_index_conflict_next(&base, &ours, &theirs, each) == 0) {
		const git_index_entry *any = ours ? ours : theirs ? theirs : base;

		json_object_array_add(list, json_object_new_string(any->path));
	}
	git_index_conflict_iterator_free(each);
	return list;
}

/* 1: merged or in conflict, as *ret says; 0: the program has to. */
static int merge_in_process(const struct repo *repo, const char *ours, const char *theirs,
			    struct merge_result *ret)
{
	git_merge_options opts = GIT_MERGE_OPTIONS_INIT;
	git_commit *sides[2] = {NULL, NULL};
	git_index *index = NULL;
	git_oid oids[2], tree;
	int done = 0;

	opts.flags = GIT_MERGE_FIND_RENAMES;
	if (repo->handle && !repo->sha256 && git_oid_fromstr(&oids[0], ours) == 0 &&
	    git_oid_fromstr(&oids[1], theirs) == 0 &&
	    git_commit_lookup(&sides[0], repo->handle, &oids[0]) == 0 &&
	    git_commit_lookup(&sides[1], repo->handle, &oids[1]) == 0 &&
	    git_merge_commits(&index, repo->handle, sides[0], sides[1], &opts) == 0) {
		if (git_index_has_conflicts(index)) {
			ret->conflicts = index_conflicts(index);
			done = 1;
		} else if (git_index_write_tree_to(&tree, index, repo->handle) == 0) {
			git_oid_tostr(ret->tree, sizeof(ret->tree), &tree);
			done = 1;
		}
	}
	git_index_free(index);
	git_commit_free(sides[0]);
	git_commit_free(sides[1]);
	return done;
}

/* ---- by the program ---- */

/* "TREE\0" and, with conflicts, "PATH\0" for each. */
static struct json_object *program_conflicts(const struct buf *out)
{
	struct json_object *list = json_object_new_array();
	size_t at = strlen(buf_str(out)) + 1;

	while (at < out->len && json_len(list) < CONFLICTS_MAX) {
		size_t n = strnlen(out->data + at, out->len - at);

		if (n > 0)
			json_object_array_add(list,
					      json_object_new_string_len(out->data + at, (int)n));
		at += n + 1;
	}
	return list;
}

static int merge_by_program(const struct repo *repo, const char *ours, const char *theirs,
			    struct merge_result *ret, struct err *err)
{
	struct git_cmd cmd = {.repo = repo, .scope = GIT_PLAIN, .durable = true};
	AUTO_BUF struct buf out = BUF_INIT;
	int status = 0;

	cmd.ret_status = &status;
	if (git_run(&cmd,
		    GIT_ARGS("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z",
			     ours, theirs),
		    &out, err) < 0)
		return -1;
	const char *tree = buf_str(&out);
	if (status > 1 || !oid_valid(tree, repo->hex))
		return err_set(
			err, ERR_UNSUPPORTED,
			"git cannot merge '%s' and '%s' in memory (git 2.38 or newer can, if "
			"they have a commit in common)",
			ours, theirs);
	merge_result_release(ret);
	if (status == 1)
		ret->conflicts = program_conflicts(&out);
	else
		memcpy(ret->tree, tree, repo->hex + 1);
	return 0;
}

int merge_trees(const struct repo *repo, const char *ours, const char *theirs,
		struct merge_result *ret, struct err *err)
{
	struct merge_result result = {.conflicts = NULL};

	if (is_ancestor(repo, theirs, ours, &result.already, err) < 0)
		return -1;
	if (!result.already && is_ancestor(repo, ours, theirs, &result.fast_forward, err) < 0)
		return -1;
	if (result.already || result.fast_forward) {
		if (tree_of(repo, result.already ? ours : theirs, result.tree, err) < 0)
			return -1;
		*ret = result;
		return 0;
	}
	bool known = merge_in_process(repo, ours, theirs, &result) == 1;
	struct err why = ERR_INIT;
	/* An old git has no say; then libgit2's conflicts stand. */
	if ((!known || result.conflicts) &&
	    merge_by_program(repo, ours, theirs, &result, &why) < 0 && !known)
		return err_set(err, why.code, "%s", why.message);
	*ret = result;
	return 0;
}

/* ---- the operations ---- */

static int merge_commit(const struct repo *repo, const char *tree, const char *ours,
			const char *theirs, const char *message, char ret_oid[OID_MAX],
			struct err *err)
{
	bool user = repo->user_name && repo->user_email;
	AUTO_FREE char *author = mem_printf("GIT_AUTHOR_NAME=%s", user ? repo->user_name : "baton");
	AUTO_FREE char *author_mail =
		mem_printf("GIT_AUTHOR_EMAIL=%s", user ? repo->user_email : "baton@localhost");
	AUTO_FREE char *name =
		mem_printf("GIT_COMMITTER_NAME=%s", user ? repo->user_name : "baton");
	AUTO_FREE char *mail =
		mem_printf("GIT_COMMITTER_EMAIL=%s", user ? repo->user_email : "baton@localhost");
	const char *const env[] = {author, author_mail, name, mail, NULL};
	AUTO_BUF struct buf text = BUF_INIT;
	struct git_cmd cmd = {
		.repo = repo, .scope = GIT_PLAIN, .env = env, .in = &text, .durable = true};

	text_sanitize(&text, message, strlen(message));
	return ask_commit_tree(&cmd, tree, (const char *const[]){ours, theirs, NULL}, ret_oid, err);
}

/* One head on top of `tip`, which moves. 1: a conflict, *ret_conflicts is the caller's. */
static int merge_next(const struct repo *repo, char tip[OID_MAX], struct json_object *head,
		      struct json_object **ret_conflicts, struct err *err)
{
	struct merge_result result = {.conflicts = NULL};
	const char *commit, *message = json_str(head, "message", "baton: merge");

	if (json_need_str(head, "commit", &commit, err) < 0)
		return -1;
	if (!oid_valid(commit, repo->hex))
		return err_set(err, ERR_INVALID, "'%s' is no commit id", commit);
	if (merge_trees(repo, tip, commit, &result, err) < 0)
		return -1;
	if (result.conflicts) {
		*ret_conflicts = result.conflicts;
		return 1;
	}
	if (result.fast_forward)
		memcpy(tip, commit, repo->hex + 1);
	if (result.fast_forward || result.already)
		return 0;
	return merge_commit(repo, result.tree, tip, commit, message, tip, err);
}

int op_merge_try(const struct repo *repo, struct json_object *body, struct json_object *answer,
		 struct err *err)
{
	struct json_object *heads, *conflicts = NULL;
	char tip[OID_MAX], tree[OID_MAX];
	const char *onto;
	size_t merged = 0;
	int rc = 0;

	if (json_need_str(body, "onto", &onto, err) < 0 ||
	    json_need_arr(body, "heads", &heads, err) < 0)
		return -1;
	if (!oid_valid(onto, repo->hex) || json_len(heads) == 0 || json_len(heads) > HEADS_MAX)
		return err_set(err, ERR_INVALID, "a merge needs a commit and 1 to %d heads",
			       HEADS_MAX);
	memcpy(tip, onto, repo->hex + 1);
	while (rc == 0 && merged < json_len(heads)) {
		rc = merge_next(repo, tip, json_at(heads, merged), &conflicts, err);
		merged += rc == 0;
	}
	if (rc < 0 || tree_of(repo, tip, tree, err) < 0)
		return -1;
	json_set_i64(answer, "merged", (int64_t)merged);
	json_set_str(answer, "commit", tip);
	json_set_str(answer, "tree", tree);
	json_set(answer, "conflicts", conflicts);
	return 0;
}

struct in_use {
	const char *branch;
	char *path; /* of the checkout that stands on it; NULL: none */
};

static bool on_checkout(const char *path, const char *branch, void *arg)
{
	struct in_use *use = arg;

	if (strcmp(branch, use->branch) == 0)
		use->path = mem_strdup(path);
	return !use->path;
}

/* A branch that somebody has checked out would show him changes that he never made. */
static int check_not_in_use(const struct repo *repo, const char *branch, struct err *err)
{
	struct in_use use = {.branch = branch};
	int rc = ask_each_checkout(repo, on_checkout, &use, err);

	if (use.path)
		rc = err_set(err, ERR_BUSY, "'%s' is checked out in '%s'", branch, use.path);
	free(use.path);
	return rc;
}

int op_merge_land(const struct repo *repo, struct json_object *body, struct json_object *answer,
		  struct err *err)
{
	const char *branch, *new, *old = json_str(body, "old", NULL);
	char at[OID_MAX];

	if (json_need_str(body, "branch", &branch, err) < 0 ||
	    json_need_str(body, "new", &new, err) < 0)
		return -1;
	if (!branch_name_valid(branch) || !oid_valid(new, repo->hex) ||
	    (old && !oid_valid(old, repo->hex)))
		return err_set(err, ERR_INVALID, "'%s' cannot be moved to '%s'", branch, new);
	AUTO_FREE char *ref = mem_printf("refs/heads/%s", branch);
	if (repo_ref(repo, ref, at, NULL) == 0 && strcmp(at, new) == 0)
		return 0; /* it was moved, and nobody lived to say so */
	repo_drop_dead_lock(repo, ref, LOCK_GRACE_MS);
	if (check_not_in_use(repo, branch, err) < 0 || disk_settle(repo->objects, NULL, err) < 0)
		return -1;
	return repo_move_ref(repo, ref, new, old, "baton: merge", err);
}
