/*
 * remove.h - what taking a worktree away and giving it away have in common.
 */
#ifndef BATON_WORKTREES_REMOVE_H
#define BATON_WORKTREES_REMOVE_H

struct scratch;

/* Commits of other branches, of a detached HEAD and of the stash become parents of a last
 * checkpoint. Not stored: *ret_kept (caller frees) says why. Returns 0. */
int work_save_tips(struct scratch *scratch, char **ret_kept);

#endif
