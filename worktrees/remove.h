/*
 * remove.h - what taking a worktree away and giving it away have in common.
 */
#ifndef BATON_WORKTREES_REMOVE_H
#define BATON_WORKTREES_REMOVE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

struct scratch;
struct work;

/* Commits of other branches, of a detached HEAD and of the stash become parents of a last
 * checkpoint. Not stored: *ret_kept (caller frees) says why. Returns 0. */
int work_save_tips(struct scratch *scratch, char **ret_kept);

/* Removes the worktree, its entry, private repository and state, after all that the agent wrote is
 * reachable from refs. Not removed: *ret_kept (caller frees) says why. An error of any inspection
 * counts as a reason to keep (trap 118); -1 only for a request that makes no sense (not our mark).
 * What never got ready or was being removed goes without a look. `touched` as for a checkpoint; `force` also takes
 * a worktree in the middle of a merge or rebase. */
int work_remove(struct work *work, struct json_object *touched, bool force, char **ret_kept,
		struct err *err);

#endif
