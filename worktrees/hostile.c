/*
 * hostile.c - entering and reading what a box may have written.
 *
 * Runs in baton-git's workers. openat2 with RESOLVE_BENEATH would do the walk in one call, but the
 * walk by components needs no kernel version and is short. O_NONBLOCK keeps a planted FIFO from
 * stopping us; a link anywhere is an error and not a detour.
 */
#include "worktrees/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

bool oid_valid(const char *s, size_t hex)
{
	return strspn(s, "0123456789abcdef") == hex && s[hex] == '\0';
}

static int refuse(struct err *err, const char *root, const char *rel)
{
	if (errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "'%s/%s' does not exist", root, rel);
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(err, ERR_INVALID, "'%s' in '%s' is a link or not what it should be",
			       rel, root);
	return err_sys(err, "cannot open '%s/%s'", root, rel);
}

/* One component of a path; "", "." and ".." are no components. */
static bool next_component(const char **rel, char name[NAME_MAX + 1])
{
	size_t n = strcspn(*rel, "/");

	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(name, *rel, n);
	name[n] = '\0';
	*rel += n + ((*rel)[n] == '/');
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The folder that holds the last component of rel; `make` creates missing ones. */
static int open_parent(const char *root, const char *rel, bool make, char last[NAME_MAX + 1],
		       struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	const char *rest = rel;
	AUTO_FD int fd = open(root, flags);

	if (fd < 0)
		return refuse(err, root, "");
	for (;;) {
		if (!next_component(&rest, last))
			return err_set(err, ERR_INVALID, "'%s' is not a plain path", rel);
		if (*rest == '\0')
			return take_fd(fd);
		if (make && mkdirat(fd, last, 0700) < 0 && errno != EEXIST)
			return err_sys(err, "cannot make '%s/%s'", root, rel);
		int next = openat(fd, last, flags);
		if (next < 0)
			return refuse(err, root, rel);
		close(fd);
		fd = next;
	}
}

int hostile_open_dir(const char *root, const char *rel, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	char last[NAME_MAX + 1];

	if (rel[0] == '\0') {
		int fd = open(root, flags);

		return fd < 0 ? refuse(err, root, rel) : fd;
	}
	AUTO_FD int parent = open_parent(root, rel, false, last, err);
	if (parent < 0)
		return -1;
	int fd = openat(parent, last, flags);
	return fd < 0 ? refuse(err, root, rel) : fd;
}

static int open_file(const char *root, const char *rel, struct err *err)
{
	char last[NAME_MAX + 1];
	struct stat st;
	AUTO_FD int parent = open_parent(root, rel, false, last, err);

	if (parent < 0)
		return -1;
	AUTO_FD int fd =
		openat(parent, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse(err, root, rel);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' in '%s' is not a regular file", rel, root);
	return take_fd(fd);
}

int hostile_read(const char *root, const char *rel, size_t max, struct buf *out, struct err *err)
{
	AUTO_FD int fd = open_file(root, rel, err);
	size_t start = out->len;

	if (fd < 0)
		return -1;
	for (;;) {
		ssize_t n = buf_read(out, fd, 1 << 16);

		if (n < 0)
			return err_sys(err, "cannot read '%s/%s'", root, rel);
		if (n == 0)
			return 0;
		if (out->len - start > max)
			return err_set(err, ERR_TOO_LARGE, "'%s' in '%s' is too large", rel, root);
	}
}

bool hostile_exists(const char *root, const char *rel)
{
	char last[NAME_MAX + 1];
	struct stat st;
	AUTO_FD int parent = open_parent(root, rel, false, last, NULL);

	return parent >= 0 && fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int hostile_write(const char *root, const char *rel, const void *bytes, size_t n, struct err *err)
{
	char last[NAME_MAX + 1], temp[64];
	AUTO_FD int parent = open_parent(root, rel, true, last, err);

	if (parent < 0)
		return -1;
	snprintf(temp, sizeof(temp), ".baton-%ld", (long)getpid());
	unlinkat(parent, temp, 0);
	AUTO_FD int fd =
		openat(parent, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "cannot write '%s/%s'", root, rel);
	int rc = file_write_all(fd, bytes, n, err) < 0 ? err_prefix(err, "'%s/%s'", root, rel) : 0;
	if (rc == 0 && (fsync(fd) < 0 || renameat(parent, temp, parent, last) < 0))
		rc = err_sys(err, "cannot write '%s/%s'", root, rel);
	if (rc < 0) {
		unlinkat(parent, temp, 0);
		return rc;
	}
	if (fsync(parent) < 0 && errno != EINVAL)
		return err_sys(err, "cannot sync the folder of '%s/%s'", root, rel);
	return 0;
}
