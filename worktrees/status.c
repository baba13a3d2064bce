/*
 * status.c - what an agent has done: its commits and files against the base.
 *
 * Everything is compared as trees: the base, the agent's HEAD, and the worktree as it is. Nothing
 * is kept and nothing in the user's repository changes.
 */

#include "base/memory.h"
#include "worktrees/diffs.h"
#include "worktrees/ops.h"
#include "worktrees/scratch.h"
#include "worktrees/state.h"

#define PATCH_MAX ((size_t)8 << 20)

struct view {
	struct work work;
	struct scratch scratch;
	struct work_heads heads;
	char tree[OID_MAX];	 /* the worktree's state */
	char head_tree[OID_MAX]; /* of HEAD, or of the base where there is no HEAD */
	char base_tree[OID_MAX]; /* "" where only the git program can tell */
};
#define VIEW_INIT                                                                                  \
	{                                                                                          \
		.work = WORK_INIT                                                                  \
	}

static void view_release(struct view *view)
{
	scratch_close(&view->scratch);
	free(view->heads.head_ref);
	work_release(&view->work);
}

static int view_open(struct view *view, const struct repo *repo, struct json_object *body,
		     struct err *err)
{
	struct state_opts opts = {.scope = GIT_PLAIN};
	AUTO_START struct state_start start = {.index = NULL};

	if (work_init(&view->work, repo, body, err) < 0 || entry_need_ready(&view->work, err) < 0 ||
	    scratch_open(&view->scratch, &view->work, err) < 0 ||
	    work_heads(&view->work, &view->heads, err) < 0)
		return -1;
	const char *head = view->heads.head[0] ? view->heads.head : view->work.base;
	if (!repo_tree_of(repo, view->work.base, view->base_tree))
		view->base_tree[0] = '\0';
	if (scratch_tree_of(&view->scratch, head, view->head_tree, err) < 0)
		return -1;
	state_start(&view->scratch, view->head_tree, &start);
	opts.index_from = start.index;
	opts.index_tree = start.tree[0] ? start.tree : NULL;
	opts.over = view->head_tree;
	return state_tree(&view->scratch, &opts, view->tree, err);
}

/* Base against worktree. */
static struct json_object *view_files(const struct view *view, struct buf *stat, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(&view->scratch, GIT_PLAIN);

	if (strcmp(view->tree, view->base_tree) == 0)
		return json_object_new_array();
	return diffs_files(&cmd, view->work.base, view->tree, stat, err);
}

/* An added file that HEAD does not have is untracked, as far as the agent's own git goes. */
static int mark_untracked(const struct view *view, struct json_object *files, struct err *err)
{
	struct git_cmd cmd = scratch_cmd(&view->scratch, GIT_PLAIN);
	AUTO_JSON struct json_object *fresh = NULL;
	AUTO_JSON struct json_object *names = json_object_new_object();

	if (strcmp(view->tree, view->head_tree) == 0)
		return 0;
	fresh = strcmp(view->head_tree, view->base_tree) == 0
			? json_object_get(files)
			: diffs_files(&cmd, view->head_tree, view->tree, NULL, err);
	if (!fresh)
		return -1;
	for (size_t i = 0; i < json_len(fresh); i++) {
		struct json_object *file = json_at(fresh, i);

		if (strcmp(json_str(file, "status", ""), "A") == 0)
			json_set_bool(names, json_str(file, "path", ""), true);
	}
	for (size_t i = 0; i < json_len(files); i++) {
		struct json_object *file = json_at(files, i);

		if (strcmp(json_str(file, "status", ""), "A") == 0 &&
		    json_has(names, json_str(file, "path", "")))
			json_set_str(file, "status", "?");
	}
	return 0;
}

int op_status(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	__attribute__((cleanup(view_release))) struct view view = VIEW_INIT;
	AUTO_BUF struct buf stat = BUF_INIT;
	bool with_stat = json_flag(body, "stat", false);
	struct json_object *commits, *files;

	if (view_open(&view, repo, body, err) < 0)
		return -1;
	const char *head = view.heads.head[0] ? view.heads.head : view.work.base;
	commits = scratch_commits(&view.scratch, view.work.base, head, err);
	if (!commits)
		return -1;
	json_set(answer, "commits", commits);
	files = view_files(&view, with_stat ? &stat : NULL, err);
	if (!files)
		return -1;
	json_set(answer, "files", files);
	if (mark_untracked(&view, files, err) < 0)
		return -1;
	if (with_stat)
		json_set_str(answer, "stat", buf_str(&stat));
	json_set(answer, "head", NULL);
	json_set(answer, "branch_tip", NULL);
	json_set(answer, "in_progress", NULL);
	if (view.heads.head[0])
		json_set_str(answer, "head", view.heads.head);
	if (view.heads.branch[0])
		json_set_str(answer, "branch_tip", view.heads.branch);
	json_set_str(answer, "in_progress", hostile_in_progress(view.work.git_dir));
	json_set_bool(answer, "uncommitted", strcmp(view.tree, view.head_tree) != 0);
	return 0;
}

int op_diff(const struct repo *repo, struct json_object *body, struct json_object *answer,
	    struct err *err)
{
	__attribute__((cleanup(view_release))) struct view view = VIEW_INIT;
	AUTO_BUF struct buf stat = BUF_INIT;
	AUTO_BUF struct buf patch = BUF_INIT;
	struct json_object *files;
	size_t max = (size_t)json_i64(body, "max", PATCH_MAX);
	bool cut = false;

	if (view_open(&view, repo, body, err) < 0)
		return -1;
	struct git_cmd cmd = scratch_cmd(&view.scratch, GIT_PLAIN);
	files = view_files(&view, &stat, err);
	if (!files)
		return -1;
	json_set(answer, "files", files);
	if (mark_untracked(&view, files, err) < 0)
		return -1;
	json_set_str(answer, "stat", buf_str(&stat));
	json_set(answer, "patch", NULL);
	if (!json_flag(body, "patch", false))
		return 0;
	if (diffs_whole(&cmd, view.work.base, view.tree, MIN(max, PATCH_MAX), &patch, &cut, err) <
	    0)
		return -1;
	json_set_strn(answer, "patch", buf_str(&patch), patch.len);
	json_set_bool(answer, "cut", cut);
	return 0;
}
