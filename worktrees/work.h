/*
 * work.h - one agent's worktree, as every operation names it, and its entry in the user's
 * repository.
 *
 * Four places belong to it:
 *
 * - worktree: the checkout; written by the box
 * - git_dir: the private repository; written by the box
 * - state_dir: <git_dir>.state, beside it: indexes and scratch objects of ours; no box writes it
 * - entry_dir: <common>/worktrees/baton+RUN+AGENT with gitdir, commondir, HEAD, locked, our mark
 *
 * The mark (file `baton` in the entry) is the owner mark: nothing is moved or removed without it.
 * It holds state `creating` until the worktree is whole, so that a kill at any point leaves what
 * prune recognises; the entry itself appears by a rename, whole and locked.
 */
#ifndef BATON_WORKTREES_WORK_H
#define BATON_WORKTREES_WORK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/repo.h"

struct work {
	const struct repo *repo;
	char *run, *agent, *branch, *base, *worktree, *git_dir;
	char *head_ref; /* refs/heads/<branch> */
	char *pin_ref;	/* refs/baton/<run>/<agent>/ckpt: the base, then the chain of checkpoints.
			   Not  refs/baton/<run>/<agent>: git would find that before the branch when
			   the  user says `git merge baton/<run>/<agent>` */
	char *state_dir;
	char *entry_dir;
	char *git_file; /* text of <worktree>/.git */
	int lock_fd;	/* flock on state_dir, or -1 */
};

/* Reads {"run","agent","branch","base","worktree","git_dir"} and checks names and paths. */
int work_init(struct work *work, const struct repo *repo, struct json_object *body,
	      struct err *err);
void work_release(struct work *work);
#define WORK_INIT                                                                                  \
	{                                                                                          \
		.lock_fd = -1                                                                      \
	}
#define AUTO_WORK __attribute__((cleanup(work_release)))

/* One operation at a time per agent; waits. Released by work_release. */
int work_lock(struct work *work, struct err *err);

/* In state_dir: the packed-refs that the private repository started with, out of a box's reach. */
#define WORK_START_REFS "start.refs"

/* A file in state_dir; caller frees. */
char *work_path(const struct work *work, const char *name);

/* True for a run or agent id: letters, digits, '-' and '_', 64 at most. */
bool work_name_valid(const char *name);
/* True for a branch's name without refs/heads/. */
bool branch_name_valid(const char *name);

/* --- the entry --- */

/* The lock on the common dir that serialises entries (traps 110, 112): ERR_BUSY if it is not to be
 * had within wait_ms. The descriptor is the lock. */
int entry_lock(const struct repo *repo, int wait_ms, int *ret_fd, struct err *err);

/* Makes the entry, state `creating`, HEAD at base. Under the lock. ERR_EXISTS. */
int entry_make(const struct work *work, struct err *err);
/* `creating`: no agent was ever in it. `removing`: all that it held is in refs, files may be gone.
 */
enum entry_state { ENTRY_CREATING, ENTRY_READY, ENTRY_REMOVING };
/* Writes the state, and for ready which folder the worktree is. */
int entry_set_state(const struct work *work, enum entry_state state, struct err *err);
/* Reads the mark of an entry folder; ERR_NOT_FOUND without entry, ERR_DENIED without a mark of
 * ours. */
int entry_read(const char *entry_dir, struct json_object **ret, struct err *err);
/* The mark must be that of this worktree: run, agent, paths. A repository that was moved is followed. */
int entry_check(const struct work *work, enum entry_state *ret, struct err *err);
/* Where the mark names a repository that is this one and was moved: the worktree is pointed at its new place.
 * ERR_DENIED: it is a copy, or another worktree's mark (moved.c). */
int entry_follow(const struct work *work, struct json_object *mark, struct err *err);
/* As entry_check, and it must be ready: ERR_CHANGED. */
int entry_need_ready(const struct work *work, struct err *err);
/* True if the folder at the worktree's path is the one that was made. */
bool entry_owns_folder(const struct work *work);
/* The last imported commit. */
int entry_head(const struct work *work, char ret_oid[OID_MAX], struct err *err);
int entry_set_head(const struct work *work, const char *oid, struct err *err);
/* Takes the entry out by a rename, then removes it. */
int entry_remove(const struct work *work, struct err *err);
/* <common>/worktrees, caller frees. */
char *entry_root(const struct repo *repo);

/* --- the private repository (private.c) --- */

/* Writes it into git_dir, which must not exist. */
int private_make(const struct work *work, struct err *err);
/* Points one that is there at the user's objects, wherever they are now. */
int private_point(const struct work *work, struct err *err);

/* Makes the folder and its .git file; one that is in the way is moved aside, with a line in the answer's `notes`
 * (create.c). */
int work_make_folder(const struct work *work, struct json_object *answer, bool *ret_made,
		     struct err *err);

/* --- small shared steps (work.c) --- */

/* The branch's tip and HEAD of the private repository, read as data. *ret_tip is what counts as the
 * agent's work: HEAD where it is ahead of the branch on a detached HEAD or another branch (trap
 * 120), else the branch. */
struct work_heads {
	char branch[OID_MAX]; /* "" if the branch is gone */
	char head[OID_MAX];   /* "" if unborn */
	char *head_ref;	      /* NULL: detached */
	bool on_branch;
};
int work_heads(const struct work *work, struct work_heads *ret, struct err *err);

#endif
