/*
 * spawn.c - how every process of baton is started.
 *
 * The child is made by clone with CLONE_VM|CLONE_VFORK and runs on a stack of its own: it shares
 * our memory and we stand still until it has exec'd or died. So a start costs the same from a heap
 * of 100 MB as from an empty one (fork: 8 to 10 ms), and the child can simply store which step
 * failed. posix_spawn was rejected: it cannot set a death signal, a umask, or compare getppid.
 *
 * What the child may do follows from the shared memory: system calls and writes to `struct child`,
 * nothing that allocates, locks or touches stdio. Signals are blocked before the clone, since a
 * handler of ours that ran in the child would work on our data; the child unblocks them once every
 * disposition is the default one. Descriptors, umask and folder are the child's own copies.
 *
 * The list of after-fork steps is `steps` below. Ending processes is in spawn_kill.c.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/memory.h"

enum { CHILD_STACK = 64 << 10, CHILD_FDS = 5, FIRST_HIGH_FD = 10 };

/* The child's frames lie on a stack that sanitizers know nothing about. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"))) static

struct child {
	const struct spawn_opts *opts;
	pid_t parent;
	const char *step; /* the step in hand; with error != 0 the one that failed */
	int error;	  /* errno */
};

static struct rlimit first_nofile;
static bool nofile_raised;

/* --- the after-fork steps: 0, or -1 with errno --- */

IN_CHILD int reset_signals(struct child *c)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	/* KILL, STOP and the C library's own two refuse, and need no reset. */
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		sigaction(sig, &dfl, NULL);
	sigset_t none;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD int set_umask(struct child *c)
{
	umask(077);
	return 0;
}

IN_CHILD int set_group(struct child *c)
{
	if (c->opts->new_session)
		return setsid() < 0 ? -1 : 0;
	return c->opts->same_group ? 0 : setpgid(0, 0);
}

IN_CHILD int change_folder(struct child *c)
{
	if (c->opts->cwd_fd >= 0)
		return fchdir(c->opts->cwd_fd);
	return c->opts->cwd ? chdir(c->opts->cwd) : 0;
}

/* Sources may stand anywhere, also on each other's targets: all go to high numbers first. */
IN_CHILD int set_descriptors(struct child *c)
{
	const struct spawn_opts *o = c->opts;
	int fds[CHILD_FDS] = {o->fd_in, o->fd_out, o->fd_err, o->fd_channel, o->fd_extra};
	int null = -1;
	if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (null < 0)
			return -1;
	}
	for (int i = 0; i < CHILD_FDS; i++) {
		if (fds[i] < 0 && i < 3)
			fds[i] = null;
		else if (fds[i] < 0)
			continue;
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_HIGH_FD);
		if (fds[i] < 0) {
			/* What it says when the limit is below that number. */
			errno = errno == EINVAL ? EMFILE : errno;
			return -1;
		}
	}
	for (int i = 0; i < CHILD_FDS; i++) {
		if (fds[i] < 0)
			close(i);
		else if (dup2(fds[i], i) < 0)
			return -1;
	}
	return 0;
}

/* Kernels before 5.9. The limit may have been lowered below descriptors that are open, so the list
 * in /proc counts; without it, all numbers up to the hard limit. */
IN_CHILD void close_one_by_one(int first)
{
	struct {
		uint64_t ino;
		int64_t off;
		unsigned short len;
		unsigned char type;
		char name[];
	} * entry;
	_Alignas(8) char list[1024];
	long n;
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool closed = true;
	while (dir >= 0 && closed) {
		closed = false;
		lseek(dir, 0, SEEK_SET);
		while ((n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0) {
			for (long at = 0; at < n; at += entry->len) {
				entry = (void *)(list + at);
				int fd = 0;
				for (const char *p = entry->name; *p >= '0' && *p <= '9'; p++)
					fd = fd * 10 + (*p - '0');
				if (fd >= first && fd != dir && close(fd) == 0)
					closed = true;
			}
		}
	}
	struct rlimit limit = {.rlim_max = 1 << 20};
	if (dir < 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	else
		close(dir);
	for (int fd = first; dir < 0 && (rlim_t)fd < limit.rlim_max; fd++)
		close(fd);
}

IN_CHILD int close_others(struct child *c)
{
	if (syscall(SYS_close_range, CHILD_FDS, ~0U, 0) < 0)
		close_one_by_one(CHILD_FDS);
	return 0;
}

IN_CHILD int set_limits(struct child *c)
{
	if (!c->opts->restore_nofile || !nofile_raised)
		return 0;
	return setrlimit(RLIMIT_NOFILE, &first_nofile);
}

/* Last, and then a look whether the parent died before it was set: nobody would tell us. */
IN_CHILD int set_death_signal(struct child *c)
{
	if (!c->opts->death_signal)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, c->opts->death_signal) < 0)
		return -1;
	if (getppid() != c->parent) {
		errno = ESRCH;
		return -1;
	}
	return 0;
}

IN_CHILD int execute(struct child *c)
{
	static char *const empty[] = {NULL};
	char *const *envp = c->opts->envp ? (char *const *)c->opts->envp : empty;
	return execve(c->opts->path, (char *const *)c->opts->argv, envp);
}

static const struct {
	const char *name; /* goes after "cannot start 'x': " */
	int (*run)(struct child *c);
} steps[] = {
	{"reset signals", reset_signals},
	{"set umask", set_umask},
	{"set process group", set_group},
	{"change folder", change_folder},
	{"set descriptors", set_descriptors},
	{"close descriptors", close_others},
	{"set limits", set_limits},
	{"set death signal", set_death_signal},
	{"exec", execute},
};

IN_CHILD int child_main(void *arg)
{
	struct child *c = arg;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		c->step = steps[i].name;
		if (steps[i].run(c) < 0)
			break;
	}
	c->error = errno;
	_exit(127);
}

/* --- the parent's side --- */

/* Runs child_main on the stack at `stack` with all signals blocked. Returns the pid or -1. */
static pid_t clone_child(struct child *c, char *stack, int *ret_pidfd)
{
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (ret_pidfd)
		flags |= CLONE_PIDFD;
	pid_t pid = clone(child_main, stack + CHILD_STACK, flags, c, ret_pidfd);
	int failure = errno;
	/* Reaped before signals are let in, so that no reaper of the caller's sees this pid. */
	if (pid > 0 && c->error)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = failure;
	return pid;
}

static int report_failure(const struct child *c, struct err *err)
{
	const struct spawn_opts *o = c->opts;
	errno = c->error;
	if (strcmp(c->step, "change folder") == 0 && o->cwd_fd < 0)
		return err_sys(err, "cannot start '%s': change folder to '%s'", o->path, o->cwd);
	return err_sys(err, "cannot start '%s': %s", o->path, c->step);
}

int spawn_process(const struct spawn_opts *opts, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	struct child child = {.opts = opts, .parent = getpid(), .step = "clone"};
	char *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return err_sys(err, "cannot start '%s': stack", opts->path);
	AUTO_FD int pidfd = -1;
	pid_t pid = clone_child(&child, stack, ret_pidfd ? &pidfd : NULL);
	int failure = errno;
	munmap(stack, CHILD_STACK);
	if (pid < 0) {
		errno = failure;
		err_sys(err, "cannot start '%s': clone", opts->path);
		return failure == EAGAIN
			       ? err_prefix(err, "too many processes ('ulimit -u' says how many)")
			       : -1;
	}
	if (child.error)
		return report_failure(&child, err);
	if (ret_pid)
		*ret_pid = pid;
	if (ret_pidfd)
		*ret_pidfd = take_fd(pidfd);
	return 0;
}

int spawn_raise_nofile(unsigned need, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_sys(err, "cannot read the limit on open files");
	if (!nofile_raised) {
		first_nofile = limit;
		limit.rlim_cur = limit.rlim_max;
		nofile_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
	}
	if (limit.rlim_cur >= need)
		return 0;
	return err_set(err, ERR_USAGE,
		       "a process may have %llu open files here, and a run needs %u: raise it "
		       "with 'ulimit -n %u'",
		       (unsigned long long)limit.rlim_cur, need, need);
}

int spawn_become_subreaper(struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "cannot become a subreaper");
	return 0;
}
