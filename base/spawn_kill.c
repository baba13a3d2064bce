/*
 * spawn_kill.c - no process that was started lives on (I9).
 *
 * A tool may fork twice, leave its session, ignore TERM and fork faster than one can kill. Since
 * the caller is a subreaper, all of that stays below it. Each pass takes the process table from
 * /proc and stops what descends from us, again and again until nothing new appears: a stopped
 * process does not fork. Only then is anything killed, so a death never sets another free before it
 * is known.
 *
 * The whole table is read, and not the `children` files, because many kernels are built without
 * them and because they are exact only while nobody exits. It costs milliseconds, at the end of a
 * process; without any child the kernel says so at once and nothing is read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/spawn.h"

enum {
	EMPTY_PASSES = 3, /* a process can hop past one pass by forking and dying */
	WAIT_FDS = 64,
	WAIT_MS = 10,
};

struct proc {
	pid_t pid, parent;
	char state; /* 'Z': dead, not reaped */
	bool ours;  /* a descendant that is not spared */
};

struct hunt {
	const pid_t *keep;
	size_t n_keep;
	pid_t self;
	struct proc *procs; /* the table of the last pass */
	size_t n_procs, cap_procs;
	pid_t *stopped; /* all that were ever sent STOP */
	size_t n_stopped, cap_stopped;
	pid_t *killed;
	size_t n_killed, cap_killed;
	int64_t deadline_ms;
};

static bool listed(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* State and parent stand behind the name, which is in brackets and may hold brackets itself. */
static bool read_stat(int proc_dir, const char *pid, struct proc *ret)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "%.20s/stat", pid);
	AUTO_FD int fd = openat(proc_dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *after = strrchr(text, ')');
	int parent;
	char state;
	if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2)
		return false;
	*ret = (struct proc){.pid = (pid_t)strtol(pid, NULL, 10), .parent = parent, .state = state};
	return true;
}

static void remember(pid_t **list, size_t *n, size_t *cap, pid_t pid)
{
	MEM_GROW(*list, *cap, *n + 1);
	(*list)[(*n)++] = pid;
}

/* False if it was stopped before, is dead, or is gone. */
static bool stop(struct hunt *h, const struct proc *p)
{
	if (p->state == 'Z' || listed(h->stopped, h->n_stopped, p->pid))
		return false;
	kill(p->pid, SIGSTOP);
	remember(&h->stopped, &h->n_stopped, &h->cap_stopped, p->pid);
	return true;
}

/* Fills the table. Children of our own are stopped the moment they are seen: one that forks and
 * dies all the time, and so is always a new child of ours, would be gone after the rest has been
 * read. Returns whether there was any. */
static bool read_table(struct hunt *h)
{
	bool stopped = false;
	h->n_procs = 0;
	DIR *d = opendir("/proc");
	if (!d)
		return false;
	struct dirent *entry;
	while ((entry = readdir(d))) {
		struct proc proc;
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !read_stat(dirfd(d), entry->d_name, &proc))
			continue;
		if (proc.parent == h->self && !listed(h->keep, h->n_keep, proc.pid))
			stopped |= stop(h, &proc);
		MEM_GROW(h->procs, h->cap_procs, h->n_procs + 1);
		h->procs[h->n_procs++] = proc;
	}
	closedir(d);
	return stopped;
}

static bool is_ours(const struct hunt *h, pid_t pid)
{
	for (size_t i = 0; i < h->n_procs; i++)
		if (h->procs[i].pid == pid)
			return h->procs[i].ours;
	return false;
}

/* Marks the descendants; a child may stand before its parent in the table, hence the repetition. */
static size_t mark_ours(struct hunt *h)
{
	size_t count = 0;
	bool more = true;
	while (more) {
		more = false;
		for (size_t i = 0; i < h->n_procs; i++) {
			struct proc *p = &h->procs[i];
			if (p->ours || p->pid == h->self || listed(h->keep, h->n_keep, p->pid))
				continue;
			if (p->parent != h->self && !is_ours(h, p->parent))
				continue;
			p->ours = more = true;
			count++;
		}
	}
	return count;
}

/* Returns the number of descendants once a pass finds none that was not stopped before (or at the
 * deadline: then those that are known are killed, and the caller is told that some may be left). */
static size_t stop_all(struct hunt *h)
{
	size_t count;
	bool more;
	do {
		more = read_table(h);
		count = mark_ours(h);
		for (size_t i = 0; i < h->n_procs; i++)
			if (h->procs[i].ours)
				more |= stop(h, &h->procs[i]);
	} while (more && clock_mono_ms() < h->deadline_ms);
	return count;
}

static void kill_all(struct hunt *h)
{
	for (size_t i = 0; i < h->n_procs; i++) {
		struct proc *p = &h->procs[i];
		if (!p->ours || p->state == 'Z' || kill(p->pid, SIGKILL) < 0)
			continue;
		if (!listed(h->killed, h->n_killed, p->pid))
			remember(&h->killed, &h->n_killed, &h->cap_killed, p->pid);
	}
}

/* Waits until one of them is dead, at most WAIT_MS: those that we cannot see die (dead, but their
 * parent is still dying) are looked at again after that. */
static void wait_for_death(const struct hunt *h)
{
	struct pollfd fds[WAIT_FDS];
	nfds_t n = 0;
	for (size_t i = 0; i < h->n_procs && n < WAIT_FDS; i++) {
		if (!h->procs[i].ours || h->procs[i].state == 'Z')
			continue;
		int fd = (int)syscall(SYS_pidfd_open, h->procs[i].pid, 0);
		if (fd >= 0)
			fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	poll(fds, n, WAIT_MS);
	for (nfds_t i = 0; i < n; i++)
		close(fds[i].fd);
}

static void reap_all(const struct hunt *h)
{
	for (size_t i = 0; i < h->n_procs; i++)
		if (h->procs[i].ours && h->procs[i].parent == h->self)
			waitpid(h->procs[i].pid, NULL, WNOHANG);
}

/* The kernel's own word; with spared children it cannot give it. */
static bool has_no_child(void)
{
	siginfo_t info;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static bool hunt_all(struct hunt *h)
{
	int empty = 0;
	while (!has_no_child()) {
		if (stop_all(h) == 0) {
			if (++empty == EMPTY_PASSES)
				break;
			continue;
		}
		empty = 0;
		kill_all(h);
		wait_for_death(h);
		reap_all(h);
		if (clock_mono_ms() >= h->deadline_ms && !has_no_child() && stop_all(h) > 0)
			return false;
	}
	return true;
}

int spawn_kill_descendants(const pid_t *keep, size_t n_keep, int64_t deadline_ms)
{
	struct hunt h = {
		.keep = keep, .n_keep = n_keep, .self = getpid(), .deadline_ms = deadline_ms};
	bool all = hunt_all(&h);
	int killed = (int)h.n_killed;
	free(h.procs);
	free(h.stopped);
	free(h.killed);
	return all ? killed : -1;
}
