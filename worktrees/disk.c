/*
 * disk.c - writing, copying and naming files in folders that are baton's own.
 *
 * Runs in baton-git and its workers. Everything is created with O_EXCL and without following a link
 * at the last component, so that a leftover of an interrupted run is an error and never silently
 * reused.
 */
#include "worktrees/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

int disk_put(const char *path, const void *bytes, size_t n, bool sync, struct err *err)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "cannot create '%s'", path);
	if (file_write_all(fd, bytes, n, err) < 0)
		return err_prefix(err, "'%s'", path);
	if (sync && fsync(fd) < 0)
		return err_sys(err, "cannot sync '%s'", path);
	return 0;
}

static int copy_bytes(int in, int out, const char *to, struct err *err)
{
	char block[1 << 16];

	for (;;) {
		ssize_t n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);

		if (n == 0)
			return 0;
		if (n > 0)
			continue;
		if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
			return err_sys(err, "cannot copy to '%s'", to);
		break;
	}
	for (;;) {
		ssize_t n = read(in, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "cannot copy to '%s'", to);
		if (n == 0)
			return 0;
		if (file_write_all(out, block, (size_t)n, err) < 0)
			return err_prefix(err, "'%s'", to);
	}
}

static int fill_copy(int in, int out, const char *to, const struct stat *st, struct err *err)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (copy_bytes(in, out, to, err) < 0)
		return -1;
	return futimens(out, times) < 0 ? err_sys(err, "cannot set the time of '%s'", to) : 0;
}

/* Beside the target and renamed: runs that start at once copy to the same places, and a git that reads
 * there meanwhile sees the old file or the new one. */
int disk_copy(const char *from, const char *to, struct err *err)
{
	struct stat st;
	AUTO_FREE char *temp = mem_printf("%s.new-%d", to, (int)getpid());
	AUTO_FD int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (in < 0)
		return err_sys(err, "cannot open '%s'", from);
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a regular file", from);
	unlink(temp); /* of a killed process that had our number */
	AUTO_FD int out = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(err, "cannot create '%s'", temp);
	int rc = fill_copy(in, out, to, &st, err);
	if (rc == 0 && rename(temp, to) < 0)
		rc = err_sys(err, "cannot replace '%s'", to);
	if (rc < 0)
		unlink(temp);
	return rc;
}

void disk_quote(struct buf *out, const char *path)
{
	bool quote = path[0] == '"' || path[0] == '#';

	for (const char *p = path; *p && !quote; p++)
		quote = *p == ':' || *p == '\n' || *p == '\\';
	if (!quote) {
		buf_adds(out, path);
		return;
	}
	buf_addc(out, '"');
	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_addf(out, "\\%c", *p);
		else if (*p < 32 || *p >= 127)
			buf_addf(out, "\\%03o", *p);
		else
			buf_addc(out, (char)*p);
	}
	buf_addc(out, '"');
}

int disk_remove(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "cannot look at '%s'", path);
	return file_remove_tree(path, err);
}

int disk_mkdirs(const char *path, struct err *err)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return err_sys(err, "cannot make '%s'", path);
	AUTO_FREE char *above = file_dir(path);
	if (disk_mkdirs(above, err) < 0)
		return -1;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "cannot make '%s'", path);
	return 0;
}

static int settle(const char *path, dev_t *done, struct err *err)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (st.st_dev == *done)
		return 0;
	*done = st.st_dev;
	return syncfs(fd) < 0 ? err_sys(err, "cannot sync '%s'", path) : 0;
}

int disk_settle(const char *one, const char *other, struct err *err)
{
	dev_t done = 0;

	if (settle(one, &done, err) < 0)
		return -1;
	return other ? settle(other, &done, err) : 0;
}

char *disk_free_name(const char *path, const char *suffix)
{
	struct stat st;

	for (int i = 1;; i++) {
		char *name = mem_printf("%s%s%d", path, suffix, i);

		if (lstat(name, &st) < 0)
			return name;
		free(name);
	}
}
