/*
 * scratch.h - the place where an operation on one agent's worktree works, and what leaves it.
 *
 * While it is open the agent's lock is held. `objects` takes new objects, `incoming` shows the
 * private repository's; both are thrown away at the end. What is to stay passes scratch_publish:
 * one pack, checked with --strict against the user's objects alone.
 */
#ifndef BATON_WORKTREES_SCRATCH_H
#define BATON_WORKTREES_SCRATCH_H

#include "base/err.h"
#include "worktrees/git.h"
#include "worktrees/work.h"

struct scratch {
	struct work *work;
	char *objects, *incoming, *index;
	char *read_list;    /* alternates for work in scratch: the user's objects and incoming */
	char *publish_list; /* alternates for taking over: scratch and incoming */
	char *keep;	    /* the .keep file of a pack that no ref names yet, or NULL */
};
#define SCRATCH_INIT                                                                               \
	{                                                                                          \
		.work = NULL                                                                       \
	}

/* Takes the agent's lock, clears what an interrupted operation left, stages the private objects. */
int scratch_open(struct scratch *scratch, struct work *work, struct err *err);
void scratch_close(struct scratch *scratch);
#define AUTO_SCRATCH __attribute__((cleanup(scratch_close)))

/* A git that reads everything and writes into scratch, on the agent's worktree and the scratch
 * index. */
struct git_cmd scratch_cmd(const struct scratch *scratch, enum git_scope scope);

/* Makes a commit in scratch. `parents`: NULL-terminated. With identity the user's name, else
 * baton's. */
int scratch_commit(const struct scratch *scratch, const char *tree, const char *const *parents,
		   const char *message, bool identity, char ret_oid[OID_MAX], struct err *err);

/* Takes the commits and all that they need and the user does not have into his objects, synced. The
 * pack is kept from gc until scratch_settle, which comes after the ref. `tips`: oids, one a line.
 */
int scratch_publish(struct scratch *scratch, const char *tips, struct err *err);
void scratch_settle(struct scratch *scratch);

/* Is `older` an ancestor of (or the same as) `newer`? Both may be private. */
int scratch_is_ancestor(const struct scratch *scratch, const char *older, const char *newer,
			bool *ret, struct err *err);
/* The tree of a commit. */
int scratch_tree_of(const struct scratch *scratch, const char *commit, char ret_oid[OID_MAX],
		    struct err *err);
/* [{"id","subject"}] of from..to, newest first, at most 500. Owned by the caller. */
struct json_object *scratch_commits(const struct scratch *scratch, const char *from, const char *to,
				    struct err *err);

/* Adds a commit to the chain that the pin names: parents are the pin and `extra` (NULL-terminated,
 * may be NULL), published and moved by compare-and-swap. */
int scratch_chain(struct scratch *scratch, const char *tree, const char *const *extra,
		  const char *message, char ret_oid[OID_MAX], struct err *err);

#endif
