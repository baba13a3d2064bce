/*
 * procs.c - a look at the process table.
 *
 * The agent is a subreaper, so whatever a command leaves behind is its direct child once the
 * process between them is dead. The numbers read here may be stale an instant later; that is
 * harmless, since they only choose what to spare and what to name, and only children of ours are
 * considered.
 */
#include "agent/tools/procs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/tools/job.h"
#include "base/memory.h"
#include "base/text.h"

enum { NAMES_SHOWN = 8, ENVIRON_MAX = 256 << 10 };

struct proc {
	pid_t pid, parent, session;
	char name[32];
};

static bool read_proc(int proc_fd, const char *pid, struct proc *ret)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "%.20s/stat", pid);
	AUTO_FD int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *open = strchr(text, '('), *close_ = strrchr(text, ')');
	int parent, session;
	if (!open || !close_ || sscanf(close_ + 1, " %*c %d %*d %d", &parent, &session) != 2)
		return false;
	*ret = (struct proc){
		.pid = (pid_t)strtol(pid, NULL, 10), .parent = parent, .session = session};
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close_ - open - 1), open + 1);
	return true;
}

/* Calls back for each direct child of this process. */
static void each_child(void (*on_child)(const struct proc *proc, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	pid_t self = getpid();
	if (!dir)
		return;
	while ((d = readdir(dir))) {
		struct proc proc;
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
		    read_proc(dirfd(dir), d->d_name, &proc) && proc.parent == self)
			on_child(&proc, arg);
	}
	closedir(dir);
}

static bool carries_number(pid_t pid, unsigned number)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_BUF struct buf environ_ = BUF_INIT_MAX(ENVIRON_MAX);
	AUTO_FREE char *entry = mem_printf("BATON_JOB=%u", number);
	while (fd >= 0 && buf_read(&environ_, fd, 16 << 10) > 0)
		;
	size_t n = strlen(entry) + 1;
	return environ_.len && memmem(buf_str(&environ_), environ_.len + 1, entry, n);
}

struct keeping {
	const struct job *jobs;
	pid_t *pids;
	size_t count, cap;
};

static void keep_child(const struct proc *proc, void *arg)
{
	struct keeping *k = arg;
	for (const struct job *job = k->jobs; job; job = job->next) {
		if (!job->running || (proc->pid != job->pid && proc->session != job->pid &&
				      !carries_number(proc->pid, job->number)))
			continue;
		MEM_GROW(k->pids, k->cap, k->count + 1);
		k->pids[k->count++] = proc->pid;
		return;
	}
}

size_t procs_of_running_jobs(const struct job *jobs, pid_t **ret)
{
	struct keeping k = {.jobs = jobs};
	bool any = false;
	for (const struct job *job = jobs; job; job = job->next)
		any |= job->running;
	if (any)
		each_child(keep_child, &k);
	*ret = k.pids;
	return k.count;
}

struct naming {
	const pid_t *keep;
	size_t n_keep, count;
	struct buf *out;
};

static void name_child(const struct proc *proc, void *arg)
{
	struct naming *n = arg;
	for (size_t i = 0; i < n->n_keep; i++)
		if (n->keep[i] == proc->pid)
			return;
	if (n->count++ >= NAMES_SHOWN)
		return;
	if (n->out->len)
		buf_adds(n->out, ", ");
	text_printable(n->out, proc->name, strlen(proc->name), true);
}

size_t procs_name_others(const pid_t *keep, size_t n_keep, struct buf *out)
{
	struct naming n = {.keep = keep, .n_keep = n_keep, .out = out};
	each_child(name_child, &n);
	return n.count;
}
