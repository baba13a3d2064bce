/*
 * file.h - whole files, folders, atomic replacement, durable creation.
 */
#ifndef BATON_BASE_FILE_H
#define BATON_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads a regular file of at most max bytes into out (appends). ERR_TOO_LARGE above it. dirfd may
 * be AT_FDCWD. */
int file_read(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);

/* Replaces path atomically: temporary file beside it, write, fsync, rename, fsync of the folder. */
int file_write_atomic(int dirfd, const char *path, const void *bytes, size_t n, mode_t mode,
		      struct err *err);

/* Removes what a file_write_atomic of this name left beside it when its process was killed. Of nobody else's files: the
 * name ends with 16 hexadecimal digits. Only for those who know that nobody writes it now. */
void file_drop_temporaries(int dirfd, const char *name);
int file_write_all(int fd, const void *bytes, size_t n, struct err *err); /* all or error */
int file_mkdirs(const char *path, mode_t mode,
		struct err *err); /* like mkdir -p; fsyncs new parents */
int file_sync_dir(const char *path, struct err *err);

/* Folders that have new entries and are to be synced in one go, later: a sync costs a flush of the
 * device, and a start that makes eight folders one after the other would wait eight times before
 * anybody works. Whoever promises that something is durable runs the list first. */
struct file_syncs {
	char **paths;
	size_t n, cap;
};
void file_syncs_add(struct file_syncs *syncs, const char *folder); /* twice is once */
/* Syncs all and empties the list; after an error what is left of it stays. */
int file_syncs_run(struct file_syncs *syncs, struct err *err);
void file_syncs_release(struct file_syncs *syncs);
/* file_mkdirs, with the parents of what was made put into the list instead of synced. */
int file_mkdirs_later(const char *path, mode_t mode, struct file_syncs *syncs, struct err *err);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Removes a tree that is ours. Never follows symlinks, never crosses a mount point. */
int file_remove_tree(const char *path, struct err *err);

/* Joins with exactly one slash; caller frees. An absolute b gives b. */
char *file_join(const char *a, const char *b);
/* Is path, links resolved, below folder (or it)? Both must exist. */
bool file_lies_in(const char *folder, const char *path);
const char *file_base(const char *path); /* last component, borrowed */
char *file_dir(const char *path); /* all before the last component, "." if none; caller frees */
/* Folder of the running program (from /proc/self/exe); caller frees. */
char *file_self_dir(void);
/* Finds one of our own helper programs ("baton-gateway"): next to the running program (build tree
 * layouts known: same folder, its sub-folders, ../libexec/baton), else the configured libexec
 * folder. Caller frees; NULL with err if none is executable. */
char *file_find_program(const char *name, struct err *err);

#endif
