/*
 * git.h - the one place that runs the git program.
 *
 * No git of baton's ever discovers a repository (but the first, from the user's folder): GIT_DIR is
 * given, and the environment is built from nothing. Three scopes exist:
 *
 * - GIT_USER: the user's repository with the user's configuration. Never with a worktree or index
 *   that a box could write.
 * - GIT_PLAIN: baton's own git dir: no hooks, no filter drivers, no refs; line ends and attributes
 *   as git applies them. With GIT_RAW the only scope that may meet an agent's worktree.
 * - GIT_RAW: the same, with an info/attributes that takes every file byte by byte.
 *
 * In all of them fsmonitor, hooks, automatic gc, credential helpers, prompts and transports are
 * off.
 */
#ifndef BATON_WORKTREES_GIT_H
#define BATON_WORKTREES_GIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct repo;

enum git_scope { GIT_USER, GIT_PLAIN, GIT_RAW };

struct git_cmd {
	const struct repo *repo;
	enum git_scope scope;
	const char *git_dir;	/* instead of the scope's; NULL: the scope's */
	const char *work_tree;	/* NULL: the user's for GIT_USER, none else */
	const char *cwd;	/* NULL: the top of the work tree */
	const char *index;	/* NULL: the git dir's own */
	const char *objects;	/* NULL: the user's */
	const char *alternates; /* value of GIT_ALTERNATE_OBJECT_DIRECTORIES, or NULL */
	const char *const *env; /* further NAME=VALUE strings, or NULL */
	const struct buf *in;	/* stdin, or NULL */
	bool durable;		/* sync what is written (core.fsync=all) */
	size_t max_out;		/* 0: 256 MiB */
	int *ret_status;	/* not NULL: an exit status is a result and no failure */
};

#define GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs `git ARGS`. stdout is appended to out (NULL: dropped). A failure carries git's own words;
 * codes that callers branch on: ERR_DENIED (dubious ownership), ERR_TIMEOUT, ERR_TOO_LARGE, else
 * ERR_INVALID. */
int git_run(const struct git_cmd *cmd, const char *const *args, struct buf *out, struct err *err);

/* As git_run; gives the first line of stdout, caller frees. */
int git_line(const struct git_cmd *cmd, const char *const *args, char **ret, struct err *err);

/* Runs `git FROM | git TO`; out is TO's. Both must succeed. */
int git_pipe(const struct git_cmd *from, const char *const *from_args, const struct git_cmd *to,
	     const char *const *to_args, struct buf *out, struct err *err);

#endif
