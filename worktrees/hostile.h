/*
 * hostile.h - an agent's private repository, read as data.
 *
 * The box can write every byte below the private git dir: symbolic links to elsewhere, FIFOs, lists
 * of alternates, configuration. So git is never pointed at it. What baton wants to know (refs,
 * HEAD, an unfinished merge, objects) is read here: one component at a time without following
 * links, regular files only, never blocking, with sizes bounded. Objects are handed to git by hard
 * links in a folder of ours that holds loose objects and packs and nothing else.
 */
#ifndef BATON_WORKTREES_HOSTILE_H
#define BATON_WORKTREES_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define OID_MAX 65 /* hex digits of SHA-256 and a NUL */

/* Checks hex digits of exactly this length. */
bool oid_valid(const char *s, size_t hex);

/* Opens a folder (`rel` may be "" for root itself), or reads a regular file, below root. -1 with
 * ERR_NOT_FOUND, ERR_INVALID (a link or something odd is in the way). */
int hostile_open_dir(const char *root, const char *rel, struct err *err);
int hostile_read(const char *root, const char *rel, size_t max, struct buf *out, struct err *err);
bool hostile_exists(const char *root, const char *rel);

/* Replaces a file below root: temporary file and rename inside a folder that was entered without
 * following links; missing folders are made. */
int hostile_write(const char *root, const char *rel, const void *bytes, size_t n, struct err *err);

/* The commit that a ref names, loose or packed, symbolic refs followed five times below refs/. */
int hostile_ref(const char *git_dir, const char *ref, size_t hex, char ret_oid[OID_MAX],
		struct err *err);
/* HEAD: its commit, and the ref's name (caller frees) or NULL when detached. An unborn HEAD is
 * ERR_NOT_FOUND with *ret_ref set. */
int hostile_head(const char *git_dir, size_t hex, char **ret_ref, char ret_oid[OID_MAX],
		 struct err *err);

/* "merge", "rebase", "cherry-pick", "revert", "bisect", or NULL. */
const char *hostile_in_progress(const char *git_dir);

/* Every object that a ref, HEAD, an unfinished merge or the stash names: oids one a line. */
int hostile_tips(const char *git_dir, size_t hex, struct buf *out, struct err *err);

/* Makes `target` (it must not exist) an object folder with hard links to the regular loose objects
 * and packs of git_dir/objects; copies where links are refused. */
int hostile_stage(const char *git_dir, const char *target, size_t hex, struct err *err);

#endif
