/*
 * file_tree.c - removing a tree that is ours.
 *
 * The tree was written by an agent's tools, so it is hostile: links that point out of it, mounts,
 * folders without permissions, and nesting deeper than any path or descriptor limit. Everything is
 * done relative to descriptors, no link is followed, no mount is entered (openat2 where the kernel
 * has it, else the mount numbers of /proc). A folder below DEPTH_MAX is moved up to the top and
 * emptied from there, so neither descriptors nor stack grow with what somebody else has built.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "base/memory.h"

enum { DEPTH_MAX = 32 };

struct removal {
	int top;	/* the root of the tree */
	long mount;	/* the mount that it lies on */
	unsigned moved; /* names of folders that were moved up */
	struct err *err;
};

/* The number of the mount that fd lies on, or -1. Device numbers would not do: a bind mount of the
 * same file system has the same one. */
static long mount_of(int fd)
{
	AUTO_BUF struct buf info = BUF_INIT;
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (fd < 0 || file_read(AT_FDCWD, path, 1 << 16, &info, NULL) < 0)
		return -1;
	const char *line = strstr(buf_str(&info), "mnt_id:");
	return line ? strtol(line + strlen("mnt_id:"), NULL, 10) : -1;
}

static int open_below(struct removal *r, int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	fd = openat(dir, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (r->mount < 0 || mount_of(fd) != r->mount)) {
		close(fd);
		errno = EXDEV;
		return -1;
	}
	return fd;
}

/* A folder of ours that nobody may read is given its permissions back first. */
static int open_folder(struct removal *r, int dir, const char *name)
{
	int fd = open_below(r, dir, name, O_RDONLY);
	if (fd < 0 && errno == EACCES) {
		AUTO_FD int handle = open_below(r, dir, name, O_PATH);
		char link[64];
		snprintf(link, sizeof(link), "/proc/self/fd/%d", handle);
		if (handle < 0 || chmod(link, 0700) < 0)
			return -1;
		fd = open_below(r, dir, name, O_RDONLY);
	}
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0300) != 0300)
		(void)fchmod(fd, 0700); /* if it does not help, the unlink says so */
	return fd;
}

static int empty_folder(struct removal *r, int dir, int depth, bool *ret_found);

static int remove_folder(struct removal *r, int dir, const char *name, int depth)
{
	if (depth >= DEPTH_MAX) {
		char moved[32];
		snprintf(moved, sizeof(moved), ".removed-%u", r->moved++);
		if (renameat(dir, name, r->top, moved) < 0 && errno != EEXIST && errno != ENOTEMPTY)
			return err_sys(r->err, "cannot move '%s' up", name);
		return 0; /* a later pass over the top finds it */
	}
	AUTO_FD int fd = open_folder(r, dir, name);
	if (fd < 0)
		return err_sys(r->err, "cannot open folder '%s'", name);
	bool found = true;
	while (found)
		if (empty_folder(r, fd, depth + 1, &found) < 0)
			return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(r->err, "cannot remove folder '%s'", name);
	return 0;
}

static int remove_entry(struct removal *r, int dir, const char *name, int depth)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	int failure = errno;
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return remove_folder(r, dir, name, depth);
	errno = failure;
	return err_sys(r->err, "cannot remove '%s'", name);
}

/* One pass. Entries may be missed while others are unlinked, so callers repeat until none is found.
 */
static int empty_folder(struct removal *r, int dir, int depth, bool *ret_found)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (!d) {
		err_sys(r->err, "cannot list a folder");
		if (copy >= 0)
			close(copy);
		return -1;
	}
	int rc = 0;
	struct dirent *entry;
	*ret_found = false;
	while (rc == 0 && (entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		*ret_found = true;
		rc = remove_entry(r, dir, entry->d_name, depth);
	}
	closedir(d);
	return rc;
}

int file_remove_tree(const char *path, struct err *err)
{
	AUTO_FREE char *parent_path = file_dir(path);
	const char *name = file_base(path);
	AUTO_FD int parent = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, ERR_INVALID, "'%s' names no tree to remove", path);
	if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "cannot remove '%s'", path);
	struct removal r = {.top = -1, .mount = mount_of(parent), .err = err};
	if (!S_ISDIR(st.st_mode)) {
		if (unlinkat(parent, name, 0) < 0)
			return err_sys(err, "cannot remove '%s'", path);
		return 0;
	}
	AUTO_FD int top = open_folder(&r, parent, name);
	if (top < 0)
		return err_sys(err, "cannot open '%s'", path);
	r.top = top;
	bool found = true;
	while (found)
		if (empty_folder(&r, top, 0, &found) < 0)
			return err_prefix(err, "cannot remove '%s'", path);
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
		return err_sys(err, "cannot remove '%s'", path);
	return 0;
}
