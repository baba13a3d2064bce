/*
 * remove.h - taking a worktree away without losing anything, shared by `remove` and `prune`.
 */
#ifndef BATON_WORKTREES_REMOVE_H
#define BATON_WORKTREES_REMOVE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/work.h"

/* Removes the worktree, its entry, private repository and state, after all that the agent wrote is
 * reachable from refs. Not removed: *ret_kept (caller frees) says why. An error of any inspection
 * counts as a reason to keep (trap 118); -1 only for a request that makes no sense (not our mark).
 * `touched` as for a checkpoint; `force` also takes a worktree in the middle of a merge or rebase.
 */
int work_remove(struct work *work, struct json_object *touched, bool force, char **ret_kept,
		struct err *err);

#endif
