/*
 * file.c - whole files in, whole files out, and paths.
 *
 * A reader of ours sees the old bytes or the new ones, never half: what is replaced is written
 * beside it, synced, renamed, and the folder synced, because a rename that is not synced can come
 * back as an empty file after a power cut. Removal of trees is in file_tree.c.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "config.h"

#include "base/memory.h"
#include "base/text.h"

enum { FILE_READ_SIZE = 64 << 10, FILE_TRIES = 16, TEMPORARY_NAME_MAX = 200 };

/* --- paths --- */

char *file_join(const char *a, const char *b)
{
	if (b[0] == '/' || a[0] == '\0')
		return mem_strdup(b);
	size_t n = strlen(a);
	while (n > 1 && a[n - 1] == '/')
		n--;
	if (n == 1 && a[0] == '/')
		return mem_printf("/%s", b);
	return mem_printf("%.*s/%s", (int)n, a, b);
}

bool file_lies_in(const char *folder, const char *path)
{
	AUTO_FREE char *top = realpath(folder, NULL);
	AUTO_FREE char *real = realpath(path, NULL);

	return top && real && text_starts(real, top) &&
	       (real[strlen(top)] == '/' || !real[strlen(top)] || !strcmp(top, "/"));
}

const char *file_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char *file_dir(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return mem_strdup(".");
	while (slash > path && slash[-1] == '/')
		slash--;
	return slash == path ? mem_strdup("/") : mem_strndup(path, (size_t)(slash - path));
}

bool file_exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

bool file_is_dir(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- reading and writing --- */

int file_read(int dirfd, const char *path, size_t max, struct buf *out, struct err *err)
{
	/* O_NONBLOCK: a FIFO at this path must not hang the open. */
	AUTO_FD int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a regular file", path);
	size_t start = out->len;
	ssize_t got;
	/* Files of /proc say size 0, and any file may grow: the end is where read says it is. */
	size_t step = st.st_size > 0 && (uint64_t)st.st_size <= max ? (size_t)st.st_size + 1
								    : FILE_READ_SIZE;
	while ((got = buf_read(out, fd, step)) > 0) {
		if (out->len - start > max)
			break;
		step = FILE_READ_SIZE;
	}
	if (out->len - start > max || (got < 0 && errno == EOVERFLOW)) {
		buf_truncate(out, start);
		return err_set(err, ERR_TOO_LARGE, "'%s' is larger than %zu bytes", path, max);
	}
	if (got < 0)
		return err_sys(err, "cannot read '%s'", path);
	return 0;
}

int file_write_all(int fd, const void *bytes, size_t n, struct err *err)
{
	const char *p = bytes;
	while (n) {
		ssize_t put = write(fd, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_sys(err, "cannot write");
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

int file_sync_dir(const char *path, struct err *err)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* EINVAL: a file system without folder syncs (some FUSE ones); nothing more can be done. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		return err_sys(err, "cannot sync folder '%s'", path);
	return 0;
}

void file_syncs_add(struct file_syncs *syncs, const char *folder)
{
	for (size_t i = 0; i < syncs->n; i++) {
		if (strcmp(syncs->paths[i], folder) == 0)
			return;
	}
	MEM_GROW(syncs->paths, syncs->cap, syncs->n + 1);
	syncs->paths[syncs->n++] = mem_strdup(folder);
}

int file_syncs_run(struct file_syncs *syncs, struct err *err)
{
	while (syncs->n) {
		if (file_sync_dir(syncs->paths[syncs->n - 1], err) < 0)
			return -1;
		free(syncs->paths[--syncs->n]);
	}
	return 0;
}

void file_syncs_release(struct file_syncs *syncs)
{
	while (syncs->n)
		free(syncs->paths[--syncs->n]);
	free(syncs->paths);
	*syncs = (struct file_syncs){0};
}

/* A new file beside the target under a name that nobody has. Sets *ret_name (caller frees). */
static int open_beside(int dir, const char *base, char **ret_name)
{
	for (int i = 0; i < FILE_TRIES; i++) {
		unsigned long long random;
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -1;
		AUTO_FREE char *name =
			mem_printf(".%.*s.%016llx", TEMPORARY_NAME_MAX, base, random);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0600);
		if (fd >= 0) {
			*ret_name = take_ptr(name);
			return fd;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static int fill_and_rename(int dir, int fd, const char *temporary, const char *base,
			   const void *bytes, size_t n, mode_t mode, struct err *err)
{
	if (file_write_all(fd, bytes, n, err) < 0)
		return -1;
	/* The mode is meant as given: the umask of a child of ours is 077. */
	if (fchmod(fd, mode) < 0)
		return err_sys(err, "cannot set the mode");
	if (fsync(fd) < 0)
		return err_sys(err, "cannot sync");
	if (renameat(dir, temporary, dir, base) < 0)
		return err_sys(err, "cannot rename");
	if (fsync(dir) < 0 && errno != EINVAL)
		return err_sys(err, "cannot sync the folder");
	return 0;
}

int file_write_atomic(int dirfd, const char *path, const void *bytes, size_t n, mode_t mode,
		      struct err *err)
{
	AUTO_FREE char *parent = file_dir(path);
	const char *base = file_base(path);
	if (!*base)
		return err_set(err, ERR_INVALID, "'%s' names no file", path);
	AUTO_FD int dir = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, "cannot open folder '%s'", parent);
	AUTO_FREE char *temporary = NULL;
	AUTO_FD int fd = open_beside(dir, base, &temporary);
	if (fd < 0)
		return err_sys(err, "cannot create a file beside '%s'", path);
	if (fill_and_rename(dir, fd, temporary, base, bytes, n, mode, err) < 0) {
		unlinkat(dir, temporary, 0); /* fails harmlessly once it is renamed */
		return err_prefix(err, "cannot replace '%s'", path);
	}
	return 0;
}

void file_drop_temporaries(int dirfd, const char *name)
{
	AUTO_FREE char *start = mem_printf(".%.*s.", TEMPORARY_NAME_MAX, name);
	size_t n = strlen(start);
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, start, n) == 0 && strlen(entry->d_name + n) == 16 &&
		    strspn(entry->d_name + n, "0123456789abcdef") == 16)
			unlinkat(dirfd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Makes one level whose parent exists. */
static int make_dir(const char *path, mode_t mode, struct file_syncs *syncs, struct err *err)
{
	if (mkdir(path, mode) == 0) {
		AUTO_FREE char *parent = file_dir(path);
		file_syncs_add(syncs, parent);
		return 0;
	}
	int failure = errno;
	if (failure == EEXIST && file_is_dir(path))
		return 0;
	errno = failure;
	return err_sys(err, "cannot create folder '%s'", path);
}

int file_mkdirs_later(const char *path, mode_t mode, struct file_syncs *syncs, struct err *err)
{
	if (file_is_dir(path))
		return 0;
	AUTO_FREE char *copy = mem_strdup(path);
	for (char *p = copy + 1; *copy && *p; p++) {
		if (*p != '/' || p[-1] == '/')
			continue;
		*p = '\0';
		/* A parent that is there may be one that we could not create (EROFS, EACCES). */
		if (!file_is_dir(copy) && make_dir(copy, mode, syncs, err) < 0)
			return -1;
		*p = '/';
	}
	return make_dir(copy, mode, syncs, err);
}

int file_mkdirs(const char *path, mode_t mode, struct err *err)
{
	struct file_syncs syncs = {0};
	int rc = file_mkdirs_later(path, mode, &syncs, err);

	if (rc == 0)
		rc = file_syncs_run(&syncs, err);
	file_syncs_release(&syncs);
	return rc;
}

/* --- our own programs --- */

char *file_self_dir(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0)
		return mem_strdup(".");
	path[n] = '\0';
	return file_dir(path);
}

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* DIR/SUB/NAME if it is a program, else NULL. Caller frees. */
static char *program_in(const char *dir, const char *sub, const char *name)
{
	AUTO_FREE char *folder = *sub ? file_join(dir, sub) : mem_strdup(dir);
	AUTO_FREE char *path = file_join(folder, name);
	return is_program(path) ? take_ptr(path) : NULL;
}

static char *program_below(const char *dir, const char *name)
{
	static const char *const subs[] = {
		"",
		"orchestrator",
		"orchestrator/gateway",
		"agent",
		"worktrees",
		"worktrees/box",
		"rehearsal",
		"gateway",
		"box",
		"agent/image",
	};
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++) {
		char *path = program_in(dir, subs[i], name);
		if (path)
			return path;
	}
	return NULL;
}

/* A test program stands deeper in the build tree than the programs it needs: go up to the root,
 * which meson's own folder marks. An installed program has no such folder above it. */
static char *program_in_build_tree(const char *self, const char *name)
{
	AUTO_FREE char *dir = mem_strdup(self);
	for (int up = 0; up < 4; up++) {
		AUTO_FREE char *mark = file_join(dir, "meson-private");
		if (file_is_dir(mark))
			return program_below(dir, name);
		char *parent = file_dir(dir);
		free(dir);
		dir = parent;
	}
	return NULL;
}

char *file_find_program(const char *name, struct err *err)
{
	AUTO_FREE char *self = file_self_dir();
	char *path = program_below(self, name);
	if (!path)
		path = program_in(self, "../libexec/baton", name);
	if (!path)
		path = program_in_build_tree(self, name);
	if (!path)
		path = program_in(BATON_LIBEXECDIR, "", name);
	if (!path)
		err_set(err, ERR_NOT_FOUND,
			"cannot find our program '%s' beside '%s' or in '%s'; is the "
			"installation complete?",
			name, self, BATON_LIBEXECDIR);
	return path;
}
