/*
 * import.c - the operations that bring an agent's work over: import, checkpoint, commit_rest.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "worktrees/ops.h"
#include "worktrees/scratch.h"
#include "worktrees/state.h"
#include "worktrees/take.h"

static int open_work(struct work *work, struct scratch *scratch, const struct repo *repo,
		     struct json_object *body, struct err *err)
{
	if (work_init(work, repo, body, err) < 0 || entry_need_ready(work, err) < 0)
		return -1;
	return scratch_open(scratch, work, err);
}

int op_checkpoint(const struct repo *repo, struct json_object *body, struct json_object *answer,
		  struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	AUTO_FREE char *kept = NULL;
	char commit[OID_MAX];
	bool changed;

	if (open_work(&work, &scratch, repo, body, err) < 0 ||
	    take_checkpoint(&scratch, json_str(body, "message", "baton: checkpoint"),
			    json_arr(body, "touched"), NULL, commit, &changed, &kept, err) < 0)
		return -1;
	json_set(answer, "commit", NULL);
	json_set(answer, "kept", NULL);
	if (!kept)
		json_set_str(answer, "commit", commit);
	json_set_str(answer, "kept", kept);
	json_set_bool(answer, "changed", changed);
	return 0;
}

/* What came home with a branch that moved. */
static int tell_import(const struct scratch *scratch, const struct take_result *taken,
		       const char *tip, struct json_object *answer, struct err *err)
{
	struct json_object *commits = scratch_commits(scratch, taken->old_oid, tip, err);

	if (!commits)
		return -1;
	json_set(answer, "commits", commits);
	json_set_str(answer, "old", taken->old_oid);
	json_set_str(answer, "new", tip);
	json_set_bool(answer, "rewritten", taken->rewritten);
	json_set_bool(answer, "from_head", taken->from_head);
	return 0;
}

int op_import(const struct repo *repo, struct json_object *body, struct json_object *answer,
	      struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	struct take_result taken;

	if (open_work(&work, &scratch, repo, body, err) < 0 ||
	    take_branch(&scratch, &taken, err) < 0)
		return -1;
	return tell_import(&scratch, &taken, taken.new_oid, answer, err);
}

/* The private repository then stands on its branch at the new commit, with a clean index. Before the user's
 * branch moves: a kill in between leaves an agent's commit that the next import takes over, and not a branch that
 * nobody but "somebody else" can have moved. */
static int tell_private(const struct scratch *scratch, const char *commit, struct err *err)
{
	const struct work *work = scratch->work;
	AUTO_FREE char *tip = mem_printf("%s\n", commit);
	AUTO_FREE char *head = mem_printf("ref: %s\n", work->head_ref);
	AUTO_BUF struct buf index = BUF_INIT;

	if (file_read(AT_FDCWD, scratch->index, (size_t)1 << 30, &index, err) < 0 ||
	    hostile_write(work->git_dir, "index", index.data, index.len, err) < 0 ||
	    hostile_write(work->git_dir, work->head_ref, tip, strlen(tip), err) < 0)
		return -1;
	return hostile_write(work->git_dir, "HEAD", head, strlen(head), err);
}

/* Commits the state onto the tip. The objects go to the user's repository with the branch, where
 * the private one finds them through its alternate. ret_commit is "" if there was nothing to commit. */
static int commit_state(struct scratch *scratch, const char *message, struct json_object *notes,
			struct take_result *ret_taken, char ret_commit[OID_MAX], struct err *err)
{
	struct work *work = scratch->work;
	AUTO_START struct state_start start = {.index = NULL};
	struct state_opts opts = {.scope = GIT_PLAIN, .skip_filtered = true, .notes = notes};
	char tree[OID_MAX], before[OID_MAX], tip[OID_MAX + 1];

	ret_commit[0] = '\0';
	if (take_branch(scratch, ret_taken, err) < 0 ||
	    scratch_tree_of(scratch, ret_taken->new_oid, before, err) < 0)
		return -1;
	state_start(scratch, before, &start);
	opts.index_from = start.index;
	opts.index_tree = start.tree[0] ? start.tree : NULL;
	opts.over = before;
	if (state_tree(scratch, &opts, tree, err) < 0)
		return -1;
	if (strcmp(tree, before) == 0) {
		state_keep_index(scratch, tree, tree);
		return 0;
	}
	const char *const parents[] = {ret_taken->new_oid, NULL};
	if (scratch_commit(scratch, tree, parents, message, true, ret_commit, err) < 0)
		return -1;
	snprintf(tip, sizeof(tip), "%s\n", ret_commit);
	if (scratch_publish(scratch, tip, err) < 0 || tell_private(scratch, ret_commit, err) < 0 ||
	    repo_move_ref(work->repo, work->head_ref, ret_commit, ret_taken->new_oid,
			  "baton: commit", err) < 0)
		return -1;
	scratch_settle(scratch);
	if (entry_set_head(work, ret_commit, err) < 0)
		return -1;
	state_keep_index(scratch, tree, before);
	return 0;
}

int op_commit_rest(const struct repo *repo, struct json_object *body, struct json_object *answer,
		   struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	AUTO_JSON struct json_object *notes = json_object_new_array();
	struct take_result taken;
	char commit[OID_MAX];

	if (open_work(&work, &scratch, repo, body, err) < 0)
		return -1;
	const char *doing = hostile_in_progress(work.git_dir);
	if (doing)
		return err_set(err, ERR_BUSY, "a %s is in progress in '%s'", doing, work.worktree);
	if (commit_state(&scratch, json_str(body, "message", "baton: uncommitted work"), notes,
			 &taken, commit, err) < 0)
		return -1;
	json_set(answer, "commit", NULL);
	if (commit[0])
		json_set_str(answer, "commit", commit);
	json_set(answer, "notes", take_ptr(notes));
	return tell_import(&scratch, &taken, commit[0] ? commit : taken.new_oid, answer, err);
}
