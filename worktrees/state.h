/*
 * state.h - an agent's worktree as a tree object.
 */
#ifndef BATON_WORKTREES_STATE_H
#define BATON_WORKTREES_STATE_H

#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/scratch.h"

struct state_opts {
	enum git_scope scope;	/* GIT_RAW: bytes as they are; GIT_PLAIN: as git would store them */
	const char *index_from; /* an index of ours to start from, NULL: none */
	const char *index_tree; /* the tree that it is at, NULL: not known */
	const char *over; /* a tree that the index is moved to before looking, or NULL: what is left
			     out then stays as it is there */
	struct json_object *touched;  /* ignored files to include by name, or NULL */
	int64_t max_bytes, max_files; /* of what changed; 0: no limit */
	bool skip_filtered;	      /* leave out files whose filter would have to run */
	struct json_object *notes;    /* array that takes what was left out, or NULL */
};

/* Leaves the scratch index at the state and gives its tree. ERR_TOO_LARGE: a limit was reached.
 * Tracked and untracked files are in it, ignored ones only by name, nested repositories as the
 * trees of their files. Nothing in the worktree is executed, followed or believed. */
int state_tree(const struct scratch *scratch, const struct state_opts *opts, char ret_tree[OID_MAX],
	       struct err *err);

/* The best index of ours to start from for work over this tree, with the tree that it is at ("": not known). */
struct state_start {
	char *index, tree[OID_MAX];
};
void state_start(const struct scratch *scratch, const char *tree, struct state_start *ret);
void state_start_release(struct state_start *start);
#define AUTO_START __attribute__((cleanup(state_start_release)))

/* Keeps the scratch index, which is at this tree of the user's objects, as the start of later operations. It is
 * gone from its place. `old`: the tree whose index is no longer wanted. */
void state_keep_index(const struct scratch *scratch, const char *tree, const char *old);
/* Are these the bytes of an index of ours, at the base or at this tree? */
bool state_is_our_index(const struct scratch *scratch, const char *tree, const struct buf *bytes);

#endif
