/*
 * take.h - taking an agent's work into the user's repository: the steps that several operations
 * share.
 */
#ifndef BATON_WORKTREES_TAKE_H
#define BATON_WORKTREES_TAKE_H

#include "base/err.h"
#include "worktrees/scratch.h"

struct take_result {
	char old_oid[OID_MAX], new_oid[OID_MAX];
	bool rewritten; /* the new tip does not contain the old one, which is kept in the chain */
	bool from_head; /* the work was on a detached HEAD or another branch (trap 120) */
};

/* Moves the branch in the user's repository to the agent's tip. ERR_CHANGED: somebody else moved
 * it. ERR_BUSY: it is checked out somewhere. ERR_INVALID: the objects are not whole. */
int take_branch(struct scratch *scratch, struct take_result *ret, struct err *err);

/* Stores the worktree's state as the next commit of the chain, unless nothing changed. *ret_kept
 * (caller frees) says why it was too large to be stored. `extra`: commits that become further
 * parents. */
int take_checkpoint(struct scratch *scratch, const char *message, struct json_object *touched,
		    const char *const *extra, char ret_commit[OID_MAX], bool *ret_changed,
		    char **ret_kept, struct err *err);

/* The commits that refs, HEAD and stash of the private repository name and no ref of the user's
 * reaches (I7), but for those that were the user's at the start. Each line an oid. */
int take_loose_tips(const struct scratch *scratch, struct buf *out, struct err *err);

#endif
