/*
 * world.h - what a session's agent works on: the files of its worktree, its notes, the calls that come again.
 *
 * In some sessions (plan.real) the tools that the ladder leans on are the product's own, on files below
 * /dev/shm: read, write, edit, notes, recall. The files say in their first line which revision they are, so that the watcher can
 * tell what is new from what is stale (H13). All other results are the generator's.
 */
#ifndef SIMULATOR_WORLD_H
#define SIMULATOR_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct session;

#define WORLD_FILES  64
#define WORLD_RECENT 24
#define WORLD_MEMOS  3

enum file_state { FILE_UNMADE, FILE_THERE, FILE_GONE };

struct world_file {
	enum file_state state;
	int64_t revision; /* on disk */
	int64_t known;	  /* as the model saw or wrote it last; 0: never */
};

struct world_call { /* that may be made again */
	const char *tool;
	char *arguments;
};

struct world {
	struct world_file files[WORLD_FILES + 1];
	struct world_call recent[WORLD_RECENT];
	char *memos[WORLD_MEMOS]; /* lines that the working memory holds (H18) */
	bool refused[WORLD_FILES +
		     1]; /* a simulated read of it failed, and the next one does not */
};

void world_release(struct world *w);
/* The number in "src/file_7.c"; 0: it is none of ours. */
int64_t world_index(const char *path);
/* A new revision on disk. */
void world_write_file(struct session *s, int64_t index);
/* What a command does to the tree on the side. */
void world_touch(struct session *s);
/* A file that was never there before it is asked for. */
void world_need(struct session *s, int64_t index);
/* A call that can be had again; all of it is copied. */
void world_remember(struct session *s, const char *tool, const struct buf *arguments);
/* One of them, once; false: there is none. *ret_arguments is the caller's. */
bool world_recall(struct session *s, const char **ret_tool, char **ret_arguments);

#endif
