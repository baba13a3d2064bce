/*
 * fork_base.c - the operation that makes a commit of an agent's worktree as it stands, for another agent to begin from.
 *
 * The one whose worktree it is sees nothing of it: neither its branch nor its index moves. The commit's parent is the
 * tip of its branch, so that a merge of the other's work finds the right common ancestor; the chain of checkpoints
 * names it, so that it lives as long as the run does (I7).
 */
#include "base/memory.h"
#include "worktrees/ops.h"
#include "worktrees/scratch.h"
#include "worktrees/state.h"
#include "worktrees/take.h"

/* The state of the worktree; equal to `tip_tree` if nothing is uncommitted. */
static int tree_now(const struct scratch *scratch, const char *tip_tree,
		    struct json_object *touched, char ret_tree[OID_MAX], struct err *err)
{
	AUTO_START struct state_start start = {.index = NULL};
	struct state_opts opts = {.scope = GIT_PLAIN, .skip_filtered = true, .touched = touched};

	state_start(scratch, tip_tree, &start);
	opts.index_from = start.index;
	opts.index_tree = start.tree[0] ? start.tree : NULL;
	opts.over = tip_tree;
	return state_tree(scratch, &opts, ret_tree, err);
}

int op_fork_base(const struct repo *repo, struct json_object *body, struct json_object *answer,
		 struct err *err)
{
	AUTO_WORK struct work work = WORK_INIT;
	AUTO_SCRATCH struct scratch scratch = SCRATCH_INIT;
	struct take_result taken;
	char tip_tree[OID_MAX], tree[OID_MAX], commit[OID_MAX], chain[OID_MAX];

	if (work_init(&work, repo, body, err) < 0 || entry_need_ready(&work, err) < 0 ||
	    scratch_open(&scratch, &work, err) < 0 || take_branch(&scratch, &taken, err) < 0 ||
	    scratch_tree_of(&scratch, taken.new_oid, tip_tree, err) < 0 ||
	    tree_now(&scratch, tip_tree, json_arr(body, "touched"), tree, err) < 0)
		return -1;
	bool clean = strcmp(tree, tip_tree) == 0;
	json_set_bool(answer, "uncommitted", !clean);
	json_set_str(answer, "tip", taken.new_oid);
	if (clean) {
		json_set_str(answer, "commit", taken.new_oid);
		return 0;
	}
	const char *const parents[] = {taken.new_oid, NULL};
	const char *message = json_str(body, "message", "baton: the work so far");
	if (scratch_commit(&scratch, tree, parents, message, false, commit, err) < 0)
		return -1;
	const char *const extra[] = {commit, NULL};
	if (scratch_chain(&scratch, tree, extra, message, chain, err) < 0)
		return -1;
	json_set_str(answer, "commit", commit);
	return 0;
}
