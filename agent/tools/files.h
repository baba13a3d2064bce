/*
 * files.h - the files of an agent for the parts of it that are no tools: what the model looked at, what
 * stands on disk now (H13, H14, M1).
 *
 * All goes through the same roots as the tools (openat2, RESOLVE_BENEATH): whoever asks, nothing outside
 * of them is read. Nothing here counts as an access of the model: what is put before it again does not
 * become newer by that.
 */
#ifndef BATON_AGENT_TOOLS_FILES_H
#define BATON_AGENT_TOOLS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct tool_context;

/* A file that a call of the model read or changed. */
struct file_look {
	const char *path; /* real, below its root; borrowed until the next tool call */
	bool in_tree;	  /* in the worktree */
	bool stored;	  /* by baton, such as `results:`; neither: a scratch file */
	uint64_t access;  /* its newest one; larger is newer */
	int root;	  /* enum root_id */
	int64_t first, lines;
};

/* Number of accesses so far: a cheap test for whether there is something new. */
uint64_t files_clock(const struct tool_context *ctx);
/* The files whose newest access is after `since`, oldest first. Caller frees the list. */
size_t files_looked_at(const struct tool_context *ctx, uint64_t since, struct file_look **ret);

/* A file as read would show it now. */
struct file_again {
	char *shown;	   /* its name */
	struct buf text;   /* numbered lines, without a note */
	int64_t lines;	   /* of the file */
	int64_t bytes;	   /* of the file */
	uint64_t hash;	   /* text_hash of all of it, if complete */
	bool complete;	   /* the file was read to its end */
	bool whole;	   /* text holds all of it */
	bool binary;	   /* nothing is shown */
	struct again *own; /* what files_again_seen needs */
};
/* The lines [first, first + lines), or as many of them as fit into a result; lines 0: as many as read shows
 * unasked. ERR_NOT_FOUND: it is gone;
 * ERR_DENIED, ERR_INVALID (a folder), ERR_TOO_LARGE (64 MiB), ERR_IO; ERR_CANCELLED and ERR_CLOSED: the
 * agent is to stop. Caller releases. */
int files_read_again(struct tool_context *ctx, const struct file_look *look, int64_t first,
		     int64_t lines, struct file_again *ret, struct err *err);
/* Appends the first n lines of the text and the note that says what is left out, if anything is. */
void files_again_write(const struct file_again *again, int64_t n, struct buf *out);
/* It was put before the model: edits and writes compare with these bytes from now on. */
void files_again_seen(struct tool_context *ctx, const struct file_again *again);
void files_again_release(struct file_again *again);

/* Appends the bytes of a file of the worktree, at most max. *ret_real (caller frees) is its path without
 * symlinks. ERR_NOT_FOUND; ERR_DENIED: it leads out, or is no regular file; ERR_TOO_LARGE. */
int files_read(struct tool_context *ctx, const char *path, size_t max, struct buf *out,
	       char **ret_real, struct err *err);
/* Paths of the files below a folder of the worktree whose names end so, in order, also ignored ones and
 * symlinks. A folder that is not there has none. Caller frees all. */
size_t files_list(struct tool_context *ctx, const char *folder, const char *ending, size_t max,
		  char ***ret);
/* Does what a call gave as a path name this file? */
bool files_same(struct tool_context *ctx, const char *given, size_t n,
		const struct file_look *look);

static inline void files_again_release_ptr(struct file_again *again)
{
	files_again_release(again);
}
#define AUTO_AGAIN __attribute__((cleanup(files_again_release_ptr)))

#endif
