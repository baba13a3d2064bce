/*
 * roots.c - opening beneath a root, with openat2 or without it.
 *
 * RESOLVE_BENEATH answers EAGAIN when a rename somewhere raced with a "..": it is retried. An old
 * container runtime answers EPERM for system calls that it does not know, so that counts as "not
 * here" like ENOSYS. Without openat2 the path is made flat first (".." removed by hand; sound
 * because no symlink is followed) and walked one descriptor at a time.
 *
 * Where a descriptor really is, is read from /proc/self/fd after the open, not worked out from the
 * path before it: that is what makes the `.git` rule hold against symlinks and races. Parsing of
 * paths is in place.c.
 */
#include "agent/tools/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tools/names.h"
#include "base/memory.h"
#include "base/text.h"

#define OPENAT2_TRIES  128
#define MAX_PATH_BYTES 4000
#define MAX_LINK       4096

static const char *const prefixes[ROOT_COUNT] = {"", "results:", "scratch:"};

const char *root_prefix(enum root_id id)
{
	return prefixes[id];
}

void roots_init(struct roots *roots)
{
	*roots = (struct roots){0};
	for (int i = 0; i < ROOT_COUNT; i++)
		roots->root[i].fd = -1;
}

void roots_release(struct roots *roots)
{
	for (int i = 0; i < ROOT_COUNT; i++) {
		if (roots->root[i].fd >= 0)
			close(roots->root[i].fd);
		free(roots->root[i].path);
		free(roots->root[i].real);
		free(roots->root[i].former);
		free(roots->root[i].former_real);
	}
	roots_init(roots);
}

void roots_map(struct roots *roots, enum root_id id, const char *path)
{
	struct root *root = &roots->root[id];

	root->former = mem_strdup(path);
	root->former_real =
		realpath(path, NULL); /* NULL: it is gone, and then nobody names it so */
}

/* Where a descriptor is, as an absolute path; NULL with errno. */
static char *fd_path(int fd)
{
	char link[64], target[MAX_LINK];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0 || (size_t)n >= sizeof(target) - 1)
		return NULL;
	return mem_strndup(target, (size_t)n);
}

int roots_open(struct roots *roots, enum root_id id, const char *path, bool writable,
	       struct err *err)
{
	if (!path || path[0] != '/')
		return err_set(err, ERR_NOT_FOUND, "the folder '%s' is not there yet",
			       path ? path : "");
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "cannot open the folder '%s'", path);
	char *real = fd_path(fd);
	if (!real)
		return err_sys(err, "cannot tell where '%s' is", path);
	struct root *root = &roots->root[id];
	if (root->fd >= 0)
		close(root->fd);
	free(root->path);
	free(root->real);
	root->fd = take_fd(fd);
	root->writable = writable;
	root->path = mem_strdup(path);
	root->real = real;
	return 0;
}

/* --- without openat2 --- */

/* Removes ".", ".." and empty components; NULL with EXDEV if it would leave the root. */
static char *path_flatten(const char *path)
{
	char *flat = mem_alloc(strlen(path) + 2);
	size_t len = 0;
	for (const char *s = path; *s;) {
		size_t n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			if (len == 0) {
				free(flat);
				errno = EXDEV;
				return NULL;
			}
			while (len && flat[--len] != '/')
				;
		} else if (n && !(n == 1 && s[0] == '.')) {
			if (len)
				flat[len++] = '/';
			memcpy(flat + len, s, n);
			len += n;
		}
		s += n;
		s += strspn(s, "/");
	}
	if (!len)
		flat[len++] = '.';
	flat[len] = '\0';
	return flat;
}

static int open_component(int dir_fd, const char *name, int flags)
{
	int fd = openat(dir_fd, name, flags | O_NOFOLLOW);
	if (fd >= 0 || errno != ENOTDIR)
		return fd;
	struct stat st;
	bool is_link = !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode);
	errno = is_link ? ELOOP : ENOTDIR;
	return -1;
}

static int open_by_component(int root_fd, const char *path, int flags)
{
	AUTO_FREE char *flat = path_flatten(path);
	if (!flat)
		return -1;
	AUTO_FD int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	char *s = flat;
	for (char *slash; fd >= 0 && (slash = strchr(s, '/')); s = slash + 1) {
		*slash = '\0';
		int next = open_component(fd, s, O_PATH | O_DIRECTORY | O_CLOEXEC);
		int saved = errno;
		close(fd);
		fd = next;
		errno = saved;
	}
	if (fd < 0)
		return -1;
	return open_component(fd, s, flags);
}

/* --- with it --- */

static int open_beneath(struct roots *roots, int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	for (int i = 0; !roots->by_component && i < OPENAT2_TRIES; i++) {
		int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		if (errno == ENOSYS || errno == EPERM)
			roots->by_component = true;
		else if (errno != EAGAIN)
			return -1;
	}
	if (!roots->by_component)
		return -1;
	return open_by_component(root_fd, path, flags | O_CLOEXEC);
}

/* The real path of a descriptor relative to its root ("." for the root); NULL with EXDEV if it is
 * not below it. */
static char *path_below(const struct root *root, int fd)
{
	AUTO_FREE char *top = fd_path(root->fd);
	AUTO_FREE char *real = fd_path(fd);
	if (!top || !real)
		return NULL;
	size_t n = strlen(top);
	if (strcmp(top, real) == 0)
		return mem_strdup(".");
	if (strcmp(top, "/") == 0)
		return mem_strdup(real + 1);
	if (strncmp(real, top, n) == 0 && real[n] == '/')
		return mem_strdup(real + n + 1);
	errno = EXDEV;
	return NULL;
}

static bool is_git_path(enum root_id id, const char *path)
{
	return id == ROOT_WORKTREE && text_starts(path, ".git") &&
	       (path[4] == '\0' || path[4] == '/');
}

static int err_git(const struct place *place, struct err *err)
{
	return err_set(
		err, ERR_DENIED,
		"'%s' belongs to git and is not open to file tools; use git commands in the shell",
		place->shown);
}

static int err_open(const struct roots *roots, const struct place *place, struct err *err)
{
	const struct root *root = &roots->root[place->root];
	if (errno == EXDEV && place->root == ROOT_WORKTREE)
		return err_set(err, ERR_DENIED,
			       "'%s' leads outside of your worktree '%s'; use paths relative to it",
			       place->shown, root->path);
	if (errno == EXDEV)
		return err_set(err, ERR_DENIED, "'%s' leads outside of '%s'", place->shown,
			       root_prefix(place->root));
	if (errno == ELOOP)
		return err_set(err, ERR_DENIED,
			       "'%s' passes through a symlink that is not followed here; your "
			       "worktree is '%s'",
			       place->shown, roots->root[ROOT_WORKTREE].path);
	return err_sys(err, "cannot open '%s'", place->shown);
}

static int root_fd(const struct roots *roots, const struct place *place, struct err *err)
{
	int fd = roots->root[place->root].fd;
	if (fd < 0 && place->root == ROOT_WORKTREE)
		return err_set(err, ERR_NOT_FOUND, "the worktree is not ready yet");
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, "there is no folder '%s' here",
			       root_prefix(place->root));
	return fd;
}

/* Checks where an opened descriptor really is and notes that as the place's path. */
static int place_settle(const struct roots *roots, struct place *place, int fd, struct err *err)
{
	char *real = path_below(&roots->root[place->root], fd);
	if (!real)
		return err_open(roots, place, err);
	if (is_git_path(place->root, real)) {
		free(real);
		return err_git(place, err);
	}
	free(place->path);
	place->path = real;
	return 0;
}

int place_open(struct roots *roots, struct place *place, struct stat *ret_st, struct err *err)
{
	int root = root_fd(roots, place, err);
	if (root < 0)
		return -1;
	AUTO_FD int fd = open_beneath(roots, root, place->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_open(roots, place, err);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot look at '%s'", place->shown);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_DENIED, "'%s' is neither a regular file nor a folder",
			       place->shown);
	if (place_settle(roots, place, fd, err) < 0)
		return -1;
	if (ret_st)
		*ret_st = st;
	return take_fd(fd);
}

/* --- folders for new files --- */

static int open_folder(struct roots *roots, const struct place *place, const char *path,
		       struct err *err)
{
	int root = root_fd(roots, place, err);
	if (root < 0)
		return -1;
	AUTO_FD int fd = open_beneath(roots, root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return err_open(roots, place, err);
	struct place at = {.root = place->root, .path = NULL, .shown = place->shown};
	int failed = place_settle(roots, &at, fd, err);
	free(at.path);
	return failed ? -1 : take_fd(fd);
}

/* Opens path (a prefix of the place's), making its last component in parent_fd if it is missing. */
static int open_or_make(struct roots *roots, const struct place *place, const char *path,
			int parent_fd, const char *name, struct err *err)
{
	struct err first = ERR_INIT;
	int fd = open_folder(roots, place, path, &first);
	if (fd >= 0)
		return fd;
	if (first.code != ERR_NOT_FOUND || strcmp(name, "..") == 0) {
		if (err)
			*err = first;
		return -1;
	}
	if (place->root == ROOT_WORKTREE && strcmp(name, ".git") == 0)
		return err_git(place, err);
	if (mkdirat(parent_fd, name, 0777) < 0 && errno != EEXIST)
		return err_sys(err, "cannot make the folder '%s'", path);
	return open_folder(roots, place, path, err);
}

/* Each prefix is opened from the root again, so the check of where it is holds for each. */
static int make_folders(struct roots *roots, const struct place *place, const char *folder,
			struct err *err)
{
	AUTO_FREE char *path = mem_strdup(folder);
	AUTO_FD int fd = open_folder(roots, place, ".", err);
	for (char *s = path; fd >= 0 && *s;) {
		size_t n = strcspn(s, "/");
		char *end = s + n;
		char saved = *end;
		*end = '\0';
		if (n && strcmp(s, ".") != 0) {
			int next = open_or_make(roots, place, path, fd, s, err);
			close(fd);
			fd = next;
		}
		*end = saved;
		s = saved ? end + 1 : end;
	}
	return take_fd(fd);
}

int place_open_parent(struct roots *roots, const struct place *place, bool create, char **ret_name,
		      struct err *err)
{
	if (root_fd(roots, place, err) < 0)
		return -1;
	if (!roots->root[place->root].writable)
		return err_set(err, ERR_DENIED, "'%s' is read-only here", place->shown);
	size_t len = strlen(place->path);
	const char *slash = strrchr(place->path, '/');
	const char *name = slash ? slash + 1 : place->path;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || len > MAX_PATH_BYTES)
		return err_set(err, ERR_INVALID, "'%s' does not name a file", place->shown);
	AUTO_FREE char *folder =
		slash ? mem_strndup(place->path, (size_t)(slash - place->path)) : mem_strdup(".");
	AUTO_FD int fd = create ? make_folders(roots, place, folder, err)
				: open_folder(roots, place, folder, err);
	if (fd < 0)
		return -1;
	AUTO_FREE char *below = path_below(&roots->root[place->root], fd);
	if (!below || (strcmp(below, ".") == 0 && is_git_path(place->root, name)))
		return below ? err_git(place, err) : err_open(roots, place, err);
	*ret_name = mem_strdup(name);
	return take_fd(fd);
}
