/*
 * status.c - what an agent has done: its commits and files against the base.
 *
 * Everything is compared as trees: the base, the agent's HEAD, and the worktree as it is. Nothing
 * is kept and nothing in the user's repository changes.
 */

#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/diffs.h"
#include "worktrees/hostile.h"
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

/* A worktree that is gone, its work taken over: then the branch in the user's repository is what there is. */
static bool only_branch(const struct repo *repo, struct json_object *body, struct work *work,
			char ret_tip[OID_MAX])
{
	struct err why = ERR_INIT;

	return json_flag(body, "or_branch", false) && work_init(work, repo, body, NULL) == 0 &&
	       entry_need_ready(work, &why) < 0 &&
	       (why.code == ERR_NOT_FOUND || why.code == ERR_CHANGED || why.code == ERR_DENIED) &&
	       repo_ref(repo, work->head_ref, ret_tip, NULL) == 0;
}

static int branch_status(struct work *work, const char *tip, struct json_object *answer,
			 struct err *err)
{
	struct scratch plain = {.work = work}; /* no folder of its own: only the user's objects */
	struct git_cmd cmd = {.repo = work->repo, .scope = GIT_PLAIN};
	AUTO_BUF struct buf stat = BUF_INIT;
	struct json_object *commits = scratch_commits(&plain, work->base, tip, err);

	if (!commits)
		return -1;
	json_set(answer, "commits", commits);
	struct json_object *files = diffs_files(&cmd, work->base, tip, &stat, err);
	if (!files)
		return -1;
	json_set(answer, "files", files);
	json_set_str(answer, "stat", buf_str(&stat));
	json_set(answer, "in_progress", NULL);
	json_set_str(answer, "head", tip);
	json_set_str(answer, "branch_tip", tip);
	json_set_bool(answer, "uncommitted", false);
	return 0;
}

/* Files that changed after a moment, or that are gone from a folder that did. */
static void mark_late(const struct view *view, int64_t since_ms, struct json_object *files)
{
	struct stat st;

	for (size_t i = 0; since_ms && i < json_len(files); i++) {
		struct json_object *file = json_at(files, i);
		AUTO_FREE char *path = file_join(view->work.worktree, json_str(file, "path", ""));
		AUTO_FREE char *above = file_dir(path);

		if ((lstat(path, &st) == 0 || lstat(above, &st) == 0) &&
		    (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000 > since_ms)
			json_set_bool(file, "late", true);
	}
}

/* Files as a power cut leaves them whose names came to disk before their bytes: empty, or ended by zeros. */
static void mark_damaged(const struct view *view, struct json_object *files)
{
	for (size_t i = 0; i < json_len(files); i++) {
		struct json_object *file = json_at(files, i);
		AUTO_BUF struct buf bytes = BUF_INIT;

		if (hostile_read(view->work.worktree, json_str(file, "path", ""), PATCH_MAX, &bytes,
				 NULL) == 0 &&
		    (!bytes.len || !bytes.data[bytes.len - 1]))
			json_set_bool(file, "damaged", true);
	}
}

/* For who wants to know whether anything new came of it: the trees of these commits, and which baton made. */
static int add_trees(const struct view *view, const char *head, struct json_object *answer,
		     struct err *err)
{
	struct git_cmd cmd = scratch_cmd(&view->scratch, GIT_PLAIN);
	struct json_object *list = json_object_new_array();
	AUTO_FREE char *range = mem_printf("%s..%s", view->work.base, head);
	AUTO_BUF struct buf out = BUF_INIT;
	size_t hex = view->work.repo->hex;
	char tree[OID_MAX];

	json_set(answer, "trees", list);
	cmd.work_tree = cmd.index = NULL;
	if (scratch_tree_of(&view->scratch, view->work.base, tree, err) < 0 ||
	    git_run(&cmd,
		    GIT_ARGS("log", "-z", "--format=%H %T %ce", "--no-show-signature",
			     "--max-count=500", range),
		    &out, err) < 0)
		return -1;
	json_set_str(answer, "base_tree", tree);
	for (const char *p = buf_str(&out), *end = p + out.len; p < end; p += strlen(p) + 1) {
		struct json_object *one = json_object_new_object();

		json_object_array_add(list, one);
		if (strlen(p) < 2 * hex + 2)
			continue;
		json_set_strn(one, "id", p, hex);
		json_set_strn(one, "tree", p + hex + 1, hex);
		json_set_bool(one, "baton", strcmp(p + 2 * hex + 2, "baton@localhost") == 0);
	}
	return 0;
}

int op_status(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	__attribute__((cleanup(view_release))) struct view view = VIEW_INIT;
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_BUF struct buf stat = BUF_INIT;
	bool with_stat = json_flag(body, "stat", false);
	struct json_object *commits, *files;
	char tip[OID_MAX];

	if (only_branch(repo, body, &work, tip))
		return branch_status(&work, tip, answer, err);
	if (view_open(&view, repo, body, err) < 0)
		return -1;
	const char *head = view.heads.head[0] ? view.heads.head : view.work.base;
	commits = scratch_commits(&view.scratch, view.work.base, head, err);
	if (!commits)
		return -1;
	json_set(answer, "commits", commits);
	if (json_flag(body, "trees", false) && add_trees(&view, head, answer, err) < 0)
		return -1;
	files = view_files(&view, with_stat ? &stat : NULL, err);
	if (!files)
		return -1;
	json_set(answer, "files", files);
	if (mark_untracked(&view, files, err) < 0)
		return -1;
	mark_late(&view, json_i64(body, "since_ms", 0), files);
	if (json_flag(body, "damaged", false))
		mark_damaged(&view, files);
	if (repo_ref(repo, view.work.pin_ref, tip, NULL) == 0)
		json_set_str(answer, "checkpoint", tip);
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
