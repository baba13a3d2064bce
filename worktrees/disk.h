/*
 * disk.h - the few file operations of baton-git that base/file.h does not have.
 *
 * Used on folders that only baton and the user write. What a box could have written is read through
 * hostile.h instead.
 */
#ifndef BATON_WORKTREES_DISK_H
#define BATON_WORKTREES_DISK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Creates `path`, which must not exist, with these bytes. With sync the file is fsynced (the folder
 * is not: the caller does it once for several files). */
int disk_put(const char *path, const void *bytes, size_t n, bool sync, struct err *err);

/* Copies a regular file, keeping its time of change: an index whose own time moved forward would
 * hide from git which of its entries are racy. A missing source is ERR_NOT_FOUND. The target is
 * replaced. */
int disk_copy(const char *from, const char *to, struct err *err);

/* Appends `path` as git reads it in a list of alternates: in C quotes where it has a separator, a
 * quote or a control character. */
void disk_quote(struct buf *out, const char *path);

/* Removes a tree that is ours, missing is fine. */
int disk_remove(const char *path, struct err *err);

/* Makes a folder and those above it, mode 0700, without the syncs of file_mkdirs: for what is worth
 * nothing after a power cut. */
int disk_mkdirs(const char *path, struct err *err);

/* Everything that was written below these folders is durable, in one go for each file system: dozens of files and
 * folders, each synced on its own, would take dozens of flushes. NULL: none. */
int disk_settle(const char *one, const char *other, struct err *err);

/* A name beside `path` that does not exist yet: path + suffix + number. Caller frees. */
char *disk_free_name(const char *path, const char *suffix);

#endif
