/*
 * spawn.h - the one function that starts a process, and the one way to end one.
 *
 * Used by the parent for its children and by the agent for its tools. The after-fork steps stand in
 * one list in spawn.c: signal mask and dispositions reset, umask 077, own process group or session,
 * descriptors 0 to 2 set, the channel on 3, all others closed, environment exactly as given,
 * limits, death signal set last and getppid compared afterwards. The child is made with vfork
 * semantics (CLONE_VM|CLONE_VFORK), so the parent's heap size does not matter.
 */
#ifndef BATON_BASE_SPAWN_H
#define BATON_BASE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct spawn_opts {
	const char *path;	   /* program; absolute, no PATH search */
	const char *const *argv;   /* NULL-terminated */
	const char *const *envp;   /* NULL-terminated; NULL: empty environment */
	const char *cwd;	   /* NULL: stay */
	int cwd_fd;		   /* >= 0: fchdir instead of cwd; set to -1 */
	int fd_in, fd_out, fd_err; /* -1: /dev/null */
	int fd_channel;		   /* becomes descriptor 3; -1: none */
	int fd_extra; /* becomes descriptor 4 (the sealed key file, or a box's policy); -1: none */
	bool new_session;    /* setsid: no controlling terminal; else setpgid(0, 0) */
	bool same_group;     /* neither: a program that the user talks to on the terminal */
	int death_signal;    /* PR_SET_PDEATHSIG; 0: none */
	bool restore_nofile; /* give the child the RLIMIT_NOFILE that baton was started with */
};
#define SPAWN_OPTS_INIT                                                                            \
	{                                                                                          \
		.cwd_fd = -1, .fd_in = -1, .fd_out = -1, .fd_err = -1, .fd_channel = -1,           \
		.fd_extra = -1                                                                     \
	}

/* Starts the child. On success *ret_pid and *ret_pidfd (CLOEXEC, caller closes; may be NULL) are
 * set. A failure in the child before exec (missing program, bad cwd) is reported here with the
 * step's name and errno: the caller never sees a child that did not exec. */
int spawn_process(const struct spawn_opts *opts, pid_t *ret_pid, int *ret_pidfd, struct err *err);

/* Raises the soft RLIMIT_NOFILE to the hard one, remembering the old value for restore_nofile. ERR_USAGE: that is less
 * than `need`. */
int spawn_raise_nofile(unsigned need, struct err *err);

/* Makes the caller a subreaper. */
int spawn_become_subreaper(struct err *err);

/* Kills every descendant of the caller until none is left or deadline_ms (monotonic) passes: finds
 * them by the parents in /proc, STOP first so that nobody forks away, then KILL, then reaps. Needs
 * to be a subreaper, else only direct lines of descent are seen. Returns the number killed, or -1
 * if some were still there at the deadline. Children listed in keep (pids, n_keep) are spared with
 * their own descendants. */
int spawn_kill_descendants(const pid_t *keep, size_t n_keep, int64_t deadline_ms);

#endif
