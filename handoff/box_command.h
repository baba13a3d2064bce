/*
 * box_command.h - how a command of an agent is started: arguments of the box, environment by allow list.
 *
 * The one place for it. A shell of an agent and a setup command of the parent work in the same
 * worktree, and what one of them can read, write, cache or see of the user's environment the other
 * can too: a setup that fills a cache which no shell looks at, or that builds with a compiler which
 * no shell can reach, prepares nothing.
 */
#ifndef BATON_HANDOFF_BOX_COMMAND_H
#define BATON_HANDOFF_BOX_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* A NULL-terminated list of borrowed strings. */
struct words {
	const char **items;
	size_t count, cap;
};
void words_add(struct words *words, const char *word);
void words_release(struct words *words);

/* Borrowed strings; folders that are NULL or "" are left out. */
struct box_command {
	const char *program; /* absolute path of baton-box; NULL: no box, by the user's word */
	const char *level;   /* NULL: "auto" */
	const char *network; /* NULL: "none" */
	bool read_only;	     /* worktree and git_dir can only be read */
	const char *worktree, *git_dir;
	const char *scratch;	       /* also TMPDIR */
	const char *cache;	       /* of this agent: no two meet in one */
	const char *results;	       /* readable; BATON_RESULTS */
	const char *const *read_paths; /* NULL-terminated, may be NULL: further folders to read */
	const char *const *pass_env;   /* the same: variables beside the built-in list */
	const char *const *set_env;    /* the same: NAME=VALUE of the caller's own */
};

/* Appends "baton-box --level ... --". Nothing without a program. */
void box_command_argv(const struct box_command *command, struct words *argv);

/* The environment of every command: nothing of ours but the allow list and pass_env, without any
 * GIT_* of the outside, with no way to open an editor or a pager (trap 102). Writes a git
 * configuration into the cache folder. Caller frees with env_list_free. */
char **box_command_env(const struct box_command *command);

#endif
