/*
 * walk.h - going through the files below a folder, for glob and grep.
 *
 * Folders are entered by openat with O_NOFOLLOW from the descriptor of their parent, so a walk
 * never leaves its root. `.git` folders are skipped, and what .gitignore rules ignore, unless asked
 * for.
 */
#ifndef BATON_AGENT_TOOLS_WALK_H
#define BATON_AGENT_TOOLS_WALK_H

#include "agent/tools/context.h"

struct walk_file {
	int dir_fd;
	const char *name; /* in dir_fd */
	const char *path; /* relative to the folder where the walk began */
	bool is_link;	  /* a symlink: not followed */
};

struct walk {
	struct tool_context *ctx;
	bool include_ignored;
	/* 0: go on; 1: stop, without error; -1: error */
	int (*on_file)(const struct walk_file *file, void *arg, struct err *err);
	void *arg;
	size_t visited;
	bool cut; /* out: more entries than are looked at */
};

/* Visits all files below the folder in the order of their names. Returns 0, 1 if on_file stopped
 * it, or -1 (its error, or ERR_CANCELLED). */
int walk_tree(struct walk *walk, const struct place *folder, int fd, struct err *err);

#endif
