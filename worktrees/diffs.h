/*
 * diffs.h - two trees or commits compared, as data.
 */
#ifndef BATON_WORKTREES_DIFFS_H
#define BATON_WORKTREES_DIFFS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "worktrees/git.h"

/* [{"path","old_path"|null,"status","binary","added","deleted"}] with renames found; owned by the
 * caller, NULL on failure. No external diff and no text conversion ever runs. `stat` (NULL: not wanted): the
 * stat as git prints it is appended. */
struct json_object *diffs_files(const struct git_cmd *cmd, const char *from, const char *to,
				struct buf *stat, struct err *err);

/* Adds "patch" to each file of such a list, until max bytes are used; from there on the patch is
 * null and "omitted" true. *ret_cut tells if that happened. */
int diffs_patches(const struct git_cmd *cmd, const char *from, const char *to, int context,
		  size_t max, struct json_object *files, bool *ret_cut, struct err *err);

/* The whole patch, appended, cut after max bytes at a line's end. */
int diffs_whole(const struct git_cmd *cmd, const char *from, const char *to, size_t max,
		struct buf *out, bool *ret_cut, struct err *err);

#endif
