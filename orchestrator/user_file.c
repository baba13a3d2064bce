/*
 * user_file.c - see user_file.h.
 */
#include "orchestrator/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define LINKS_MAX 40 /* as the kernel */

/* Where path leads: realpath, but for a last link to what does not exist yet. Caller frees. */
static char *target_of(const char *path)
{
	char *real = realpath(path, NULL);

	if (real)
		return real;
	char *at = mem_strdup(path);
	for (int i = 0; i < LINKS_MAX; i++) {
		char text[PATH_MAX];
		ssize_t n = readlink(at, text, sizeof(text) - 1);
		if (n <= 0)
			break;
		text[n] = '\0';
		AUTO_FREE char *dir = file_dir(at);
		free(at);
		at = file_join(dir, text);
	}
	return at;
}

/* The folder decides: a file is replaced by a rename. One that is there can be written in place. */
static int check_target(const char *path, const struct stat *st, struct err *err)
{
	AUTO_FREE char *target = target_of(path);
	AUTO_FREE char *dir = file_dir(target);

	if (st && access(path, W_OK) < 0)
		return err_sys(err, "cannot write '%s'", path);
	if (st)
		return 0;
	if (!file_is_dir(dir))
		return err_set(err, ERR_USAGE, "cannot write '%s': there is no folder '%s'", path,
			       dir);
	return access(dir, W_OK | X_OK) < 0 ? err_sys(err, "cannot write into '%s'", dir) : 0;
}

int user_file_check(const char *what, const char *path, struct err *err)
{
	struct stat st;
	bool there = stat(path, &st) == 0;
	int rc;

	if (there && S_ISDIR(st.st_mode))
		rc = err_set(err, ERR_USAGE, "'%s' is a folder", path);
	else if (!there && errno != ENOENT)
		rc = err_sys(err, "cannot write '%s'", path);
	else
		rc = check_target(path, there ? &st : NULL, err);
	if (rc == 0)
		return 0;
	err_prefix(err, "%s", what);
	if (err)
		err->code = ERR_USAGE;
	return -1;
}

static int write_in_place(const char *path, const struct buf *text, struct err *err)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	return file_write_all(fd, text->data, text->len, err);
}

int user_file_write(const char *path, const struct buf *text, struct err *err)
{
	AUTO_FREE char *target = target_of(path);
	AUTO_FREE char *dir = file_dir(target);
	struct stat st;
	bool there = stat(path, &st) == 0;

	if (there && (!S_ISREG(st.st_mode) || access(dir, W_OK | X_OK) < 0))
		return write_in_place(path, text, err);
	return file_write_atomic(AT_FDCWD, target, text->data, text->len, 0644, err);
}
