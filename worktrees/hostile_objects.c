/*
 * hostile_objects.c - a view of a private object folder that holds objects and nothing else.
 *
 * Why not name <git_dir>/objects as an alternate and be done: git follows that folder's own
 * info/alternates (another agent's objects, say), reads commit-graphs and multi-pack indexes from
 * it and blocks on a FIFO in the place of an object. The links made here leave all of this behind.
 * A box may still rewrite a linked file: the bytes are checked where they enter the user's
 * repository (index-pack --strict).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "worktrees/disk.h"
#include "worktrees/hostile.h"

#define STAGE_MAX 200000 /* files */

static int copy_in(int from_dir, const char *name, int to_dir, struct err *err)
{
	AUTO_FD int in = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	AUTO_FD int out = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char block[1 << 16];
	ssize_t n;

	if (in < 0 || out < 0)
		return err_sys(err, "cannot copy the object '%s'", name);
	while ((n = read(in, block, sizeof(block))) > 0) {
		if (file_write_all(out, block, (size_t)n, err) < 0)
			return err_prefix(err, "the object '%s'", name);
	}
	return n < 0 ? err_sys(err, "cannot copy the object '%s'", name) : 0;
}

static int stage_file(int from_dir, const char *name, int to_dir, struct err *err)
{
	struct stat st;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* the agent's git just removed it */
	if (!S_ISREG(st.st_mode))
		return 0;
	/* A swap after the check may still link a symbolic link or a FIFO: the worst of it is a git
	 * that times out, since only bytes that hash right are taken over. */
	if (linkat(from_dir, name, to_dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EXDEV && errno != EPERM && errno != EMLINK && errno != EACCES)
		return err_sys(err, "cannot link the object '%s'", name);
	return copy_in(from_dir, name, to_dir, err);
}

static bool loose_name(const char *name, size_t hex)
{
	return strspn(name, "0123456789abcdef") == hex - 2 && name[hex - 2] == '\0';
}

static bool pack_name(const char *name, size_t hex)
{
	return text_starts(name, "pack-") && (text_ends(name, ".pack") || text_ends(name, ".idx"));
}

static int stage_dir(const char *objects, const char *sub, const char *target,
		     bool (*wanted)(const char *name, size_t hex), size_t hex, size_t *count,
		     struct err *err)
{
	struct err why = ERR_INIT;
	AUTO_FREE char *path = file_join(target, sub);
	int result = 0;

	int from = hostile_open_dir(objects, sub, &why);
	if (from < 0)
		return 0; /* absent, or a link: no objects of the agent's */
	AUTO_FD int to =
		mkdir(path, 0700) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(from);
	if (to < 0)
		result = err_sys(err, "cannot make '%s'", path);
	struct dirent *item;
	while (result == 0 && (item = readdir(dir)) != NULL) {
		if (!wanted(item->d_name, hex))
			continue;
		if (++*count > STAGE_MAX)
			result = err_set(err, ERR_TOO_LARGE, "more than %d object files in '%s'",
					 STAGE_MAX, objects);
		else
			result = stage_file(dirfd(dir), item->d_name, to, err);
	}
	closedir(dir);
	return result;
}

int hostile_stage(const char *git_dir, const char *target, size_t hex, struct err *err)
{
	AUTO_FREE char *objects = file_join(git_dir, "objects");
	size_t count = 0;
	char sub[3];

	if (mkdir(target, 0700) < 0)
		return err_sys(err, "cannot make '%s'", target);
	AUTO_FD int probe = hostile_open_dir(git_dir, "objects", err);
	if (probe < 0)
		return -1;
	for (int i = 0; i < 256; i++) {
		snprintf(sub, sizeof(sub), "%02x", i);
		if (stage_dir(objects, sub, target, loose_name, hex, &count, err) < 0)
			return -1;
	}
	return stage_dir(objects, "pack", target, pack_name, hex, &count, err);
}
