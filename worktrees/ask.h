/*
 * ask.h - what the git program is asked of commits and checkouts, and the making of a commit.
 *
 * A command (git.h) is the caller's: its scope, its objects, the people that it names.
 */
#ifndef BATON_WORKTREES_ASK_H
#define BATON_WORKTREES_ASK_H

#include <stdbool.h>

#include "base/err.h"
#include "worktrees/git.h"
#include "worktrees/hostile.h"

/* The tree of a commit. */
int ask_tree_of(const struct git_cmd *cmd, const char *commit, char ret_oid[OID_MAX],
		struct err *err);
int ask_is_ancestor(const struct git_cmd *cmd, const char *older, const char *newer, bool *ret,
		    struct err *err);
/* Makes one; cmd->in is its message, cmd->env names the people. parents: NULL-terminated; NULL: none. */
int ask_commit_tree(const struct git_cmd *cmd, const char *tree, const char *const *parents,
		    char ret_oid[OID_MAX], struct err *err);
/* Each checkout of the user's that stands on a branch (its name without refs/heads/), until fn says false. */
int ask_each_checkout(const struct repo *repo,
		      bool (*fn)(const char *path, const char *branch, void *arg), void *arg,
		      struct err *err);

#endif
