/*
 * user_file.c - see user_file.h.
 */
#include "orchestrator/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
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

/* Until the reader takes more: it may be a pager, so no clock ends this, but a signal does. It stays
 * pending for its handler, which could not run while the parent stands here. */
static int wait_for_reader(int fd, int signals, struct err *err)
{
	struct pollfd at[] = {{.fd = fd, .events = POLLOUT}, {.fd = signals, .events = POLLIN}};

	while (poll(at, ARRAY_SIZE(at), -1) < 0) {
		if (errno != EINTR)
			return err_sys(err, "cannot wait for its reader");
	}
	if (at[1].revents)
		return err_set(err, ERR_CANCELLED, "interrupted while its reader took nothing");
	return 0;
}

static int write_waiting(int fd, int signals, const struct buf *text, struct err *err)
{
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->data + done, text->len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			if (wait_for_reader(fd, signals, err) < 0)
				return -1;
		} else if (n == 0 || errno != EINTR) {
			return err_sys(err, "cannot write");
		}
	}
	return 0;
}

/* O_NONBLOCK: the open of a pipe would wait for its reader, for ever if there is none. */
static int write_in_place(const char *path, const struct buf *text, struct err *err)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	sigset_t stop, before;

	if (fd < 0 && errno == ENXIO)
		return err_set(err, ERR_IO, "cannot open '%s': nobody reads from it", path);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	AUTO_FD int signals = signalfd(-1, &stop, SFD_CLOEXEC);
	sigprocmask(SIG_BLOCK, &stop, &before);
	int rc = write_waiting(fd, signals, text, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		err_prefix(err, "'%s'", path);
	return rc;
}

int user_file_write(const char *what, const char *path, const struct buf *text, struct err *err)
{
	AUTO_FREE char *target = target_of(path);
	AUTO_FREE char *dir = file_dir(target);
	struct stat st;
	bool there = stat(path, &st) == 0;
	bool in_place = there && (!S_ISREG(st.st_mode) || access(dir, W_OK | X_OK) < 0);
	int rc = in_place ? write_in_place(path, text, err)
			  : file_write_atomic(AT_FDCWD, target, text->data, text->len, 0644, err);

	if (rc < 0 && what)
		err_prefix(err, "%s", what);
	return rc;
}
