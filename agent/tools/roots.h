/*
 * roots.h - the named roots: the only way in which file tools reach a file.
 *
 * A root is a directory descriptor with rights. A path from the model is parsed into a place (a
 * root and a path below it) and opened by openat2 with RESOLVE_BENEATH, so neither "..", nor an
 * absolute path, nor a symlink, nor one swapped in at the wrong moment leads out (X10, trap 114).
 * Where the kernel has no openat2, each component is opened by itself with O_NOFOLLOW and symlinks
 * are refused altogether: less comfortable, not less tight. `.git` of the worktree and all below it
 * is refused, also by way of a symlink. Only regular files and folders are opened: FIFOs, sockets
 * and devices are refused.
 */
#ifndef BATON_AGENT_TOOLS_ROOTS_H
#define BATON_AGENT_TOOLS_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

enum root_id {
	ROOT_WORKTREE, /* default for relative paths */
	ROOT_RESULTS,  /* results: */
	ROOT_SCRATCH,  /* scratch: */
	ROOT_COUNT,
};

struct root {
	int fd; /* -1: not open */
	bool writable;
	char *path; /* as configured */
	char *real; /* without symlinks; both are taken as prefixes of absolute paths */
	/* Folders that an agent's earlier conversation had in this one's place, with and without symlinks; NULL: none.
	 * Prefixes alone: nothing of them is opened. */
	char *former, *former_real;
};

struct roots {
	struct root root[ROOT_COUNT];
	bool by_component; /* no openat2 here; found out at the first use, or set to be told */
};

/* A path that a tool was given. `path` is relative to its root, "." for the root itself; after
 * place_open it is the real one, without symlinks, and serves as the file's key. */
struct place {
	enum root_id root;
	char *path;
	char *shown; /* for messages and results: prefix and escaped name */
};

void roots_init(struct roots *roots);
void roots_release(struct roots *roots);
int roots_open(struct roots *roots, enum root_id id, const char *path, bool writable,
	       struct err *err);
/* Absolute paths below `path` are taken as the same ones below this root (A2). */
void roots_map(struct roots *roots, enum root_id id, const char *path);
const char *root_prefix(enum root_id id); /* "", "results:", "scratch:" */

/* Parses what the model gave: "src/a.c", "results:3.txt", an absolute path inside the worktree (or
 * another root), the \xNN form of a name. ERR_DENIED for absolute paths outside, with the
 * worktree's own path in the message. */
int place_parse(struct roots *roots, const char *given, size_t n, struct place *ret,
		struct err *err);
/* From a path below the root that is known already. */
void place_make(enum root_id root, const char *path, struct place *ret);
void place_release(struct place *place);

/* Opens an existing regular file or folder for reading; the caller closes the descriptor. ret_st
 * may be NULL. ERR_NOT_FOUND, ERR_DENIED (outside, .git, a device), ERR_IO. */
int place_open(struct roots *roots, struct place *place, struct stat *ret_st, struct err *err);

/* The folder in which the place's last component stands or is to be created, and that component
 * (caller frees). Missing folders are made if create is set. For a file that exists call place_open
 * first, so that symlinks are gone from the path. ERR_DENIED too if the root is read-only. What is
 * written there goes through file_write_atomic on this descriptor: a rename follows no symlink. */
int place_open_parent(struct roots *roots, const struct place *place, bool create, char **ret_name,
		      struct err *err);

static inline void place_release_ptr(struct place *place)
{
	place_release(place);
}
#define AUTO_PLACE __attribute__((cleanup(place_release_ptr)))

#endif
