/*
 * checkout.h - filling a folder with the files of a commit.
 */
#ifndef BATON_WORKTREES_CHECKOUT_H
#define BATON_WORKTREES_CHECKOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct repo;

/* True if the commit is small and plain enough to be checked out in process, while others wait. */
bool checkout_is_small(const struct repo *repo, const char *commit);

/* Fills work_tree in process. git_dir is a private repository of ours in which nobody has written
 * yet; its index is written. */
int checkout_in_process(const struct repo *repo, const char *commit, const char *git_dir,
			const char *work_tree, struct err *err);

/* Fills work_tree by the git program and writes `index`. With `trusted`, filters such as LFS run as
 * the user's git would run them; without, no program is started for what the commit says. */
int checkout_by_program(const struct repo *repo, const char *commit, const char *index,
			const char *work_tree, bool trusted, struct err *err);

/* True if filters may run on this commit: the user has it in a branch or tag of his, or it is a
 * snapshot of his checkout. own_prefix: refs that do not count ("refs/heads/baton/"). */
bool checkout_is_trusted(const struct repo *repo, const char *commit, const char *own_prefix);
/* Remembers that a commit is the user's own state. */
int checkout_trust_snapshot(const struct repo *repo, const char *commit, struct err *err);

/* Number of entries of an index file that we wrote, 0 if there is none. */
int64_t checkout_count(const char *index);

#endif
