/*
 * job.c - the life of a command's processes.
 *
 * Rules, each of which somebody's agent broke: the end is the leader's exit, not end of file (trap
 * 96); output goes to a file, so no pipe can fill (trap 100) and nobody has to read; TERM is
 * followed by KILL after a second (trap 98); whatever is left is found through the process table,
 * not the group, since it may have left that; and every child is reaped here (trap 104). The leader
 * stays a zombie until its group has been killed, so the number cannot have been given to somebody
 * else.
 *
 * A background job's leftovers belong to it as long as it runs. They are told from others by
 * session, or by BATON_JOB in their environment if they left that too. The list of processes is in
 * procs.c.
 */
#include "agent/tools/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/tools/output.h"
#include "agent/tools/procs.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "base/text.h"

enum {
	GRACE_MS = 1000,
	CANCEL_GRACE_MS = 50,
	KILL_WAIT_MS = 2000,
	CHECK_MIN_MS = 10,
	CHECK_MAX_MS = 500,
};

/* No one watches a background job's output while a model call is open: a soft bound for each of its
 * files. */
#define BACKGROUND_FSIZE ((rlim_t)4 << 30)

/* --- start --- */

static void job_free(struct job *job)
{
	if (job->pidfd >= 0)
		close(job->pidfd);
	if (job->out_fd >= 0)
		close(job->out_fd);
	free(job->command);
	free(job->output);
	buf_release(&job->left);
	free(job);
}

/* One line of the command, printable: it is shown to people and in lists. */
static struct job *job_new(struct tool_context *ctx, const struct job_start *start)
{
	struct job *job = mem_alloc(sizeof(*job));
	AUTO_BUF struct buf line = BUF_INIT;
	text_printable(&line, start->command, strlen(start->command), true);
	buf_truncate(&line, text_floor(buf_str(&line), line.len, MIN(line.len, 100)));
	job->command = mem_strdup(buf_str(&line));
	job->pidfd = job->out_fd = -1;
	job->exit_code = -1;
	job->check_ms = CHECK_MIN_MS;
	job->started_ms = clock_mono_ms();
	job->number = ++ctx->last_start;
	if (start->background)
		snprintf(job->id, sizeof(job->id), "j%u", ctx->last_job + 1);
	return job;
}

int job_start(struct tool_context *ctx, const struct job_start *start, struct job **ret,
	      struct err *err)
{
	struct job *job = job_new(ctx, start);
	job->out_fd = output_open(ctx, &job->output, err);
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	opts.path = start->argv[0];
	opts.argv = start->argv;
	opts.envp = start->envp;
	opts.cwd_fd = start->cwd_fd;
	opts.fd_out = opts.fd_err = job->out_fd;
	opts.new_session = true;
	opts.restore_nofile = true;
	if (job->out_fd < 0 || spawn_process(&opts, &job->pid, &job->pidfd, err) < 0) {
		if (job->output)
			unlinkat(ctx->roots.root[ROOT_RESULTS].fd, strchr(job->output, ':') + 1, 0);
		job_free(job);
		return -1;
	}
	if (start->background) {
		struct rlimit limit;
		ctx->last_job++;
		if (prlimit(job->pid, RLIMIT_FSIZE, NULL, &limit) == 0 &&
		    limit.rlim_cur > BACKGROUND_FSIZE) {
			limit.rlim_cur = BACKGROUND_FSIZE;
			prlimit(job->pid, RLIMIT_FSIZE, &limit, NULL);
		}
	}
	job->running = true;
	job->next = ctx->jobs;
	ctx->jobs = job;
	*ret = job;
	return 0;
}

void job_drop(struct tool_context *ctx, struct job *job)
{
	for (struct job **p = &ctx->jobs; *p; p = &(*p)->next)
		if (*p == job) {
			*p = job->next;
			job_free(job);
			return;
		}
}

struct job *job_find(struct tool_context *ctx, const char *id)
{
	for (struct job *job = ctx->jobs; job; job = job->next)
		if (*id && strcmp(job->id, id) == 0)
			return job;
	return NULL;
}

/* --- end --- */

/* Kills what descends from us and belongs to no running job. */
static void kill_leftovers(struct tool_context *ctx, struct job *job)
{
	siginfo_t info;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
		return; /* the usual case costs no look at the process table */
	AUTO_FREE pid_t *keep = NULL;
	size_t n_keep = procs_of_running_jobs(ctx->jobs, &keep);
	job->n_left = procs_name_others(keep, n_keep, &job->left);
	spawn_kill_descendants(keep, n_keep, clock_mono_ms() + KILL_WAIT_MS);
}

/* The leader is dead and not reaped yet. */
static void job_finish(struct tool_context *ctx, struct job *job, const siginfo_t *info)
{
	job->running = false;
	job->ended_ms = clock_mono_ms();
	job->signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
	job->exit_code = job->signal ? 128 + job->signal : info->si_status;
	kill(-job->pid, SIGKILL);
	waitpid(job->pid, NULL, 0);
	close(job->pidfd);
	job->pidfd = -1;
	kill_leftovers(ctx, job);
	/* All writers are dead: what was written above the bound goes. */
	if (job->over_size && ftruncate(job->out_fd, ctx->settings.shell_output_max) < 0)
		job->over_size = true;
}

static bool job_collect(struct tool_context *ctx, struct job *job)
{
	siginfo_t info = {0};
	if (!job->running)
		return true;
	int rc = waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	if (rc < 0 && errno == ECHILD) {
		/* Somebody else reaped it: its status is lost, its end is not. */
		info.si_code = CLD_KILLED;
		info.si_status = SIGKILL;
	} else if (rc < 0 || info.si_pid == 0) {
		return false;
	}
	job_finish(ctx, job, &info);
	return true;
}

/* Ends a job whose output passed the bound; sets the pause until the next look from its speed. */
static void job_check_size(struct tool_context *ctx, struct job *job)
{
	off_t max = ctx->settings.shell_output_max, size = output_size(job->out_fd);
	off_t grown = size - job->last_size;
	if (size > max && !job->over_size) {
		job->over_size = true;
		kill(-job->pid, SIGKILL);
	}
	job->last_size = size;
	if (grown > 0 && grown * CHECK_MAX_MS / job->check_ms > max / 4)
		job->check_ms = CHECK_MIN_MS;
	else
		job->check_ms = MIN(job->check_ms * 2, CHECK_MAX_MS);
}

int job_wait(struct tool_context *ctx, struct job *job, int64_t deadline_ms, struct err *err)
{
	while (!job_collect(ctx, job)) {
		struct pollfd fd = {.fd = job->pidfd, .events = POLLIN};
		struct err e = ERR_INIT;
		int64_t now = clock_mono_ms();
		if (now >= deadline_ms)
			return err_set(err, ERR_TIMEOUT, "the command is still running");
		jobs_collect(ctx); /* the others too: nobody else watches their output */
		if (!job->running)
			return 0;
		int rc = wait_poll(ctx->waiter, &fd, 1, MIN(deadline_ms, now + job->check_ms), &e);
		if (rc >= 0 || e.code == ERR_TIMEOUT)
			continue;
		if (err)
			*err = e;
		return -1;
	}
	return 0;
}

/* After KILL: a process that is stuck in the kernel is left to the reaper of the next call. */
static void job_wait_dead(struct tool_context *ctx, struct job *job)
{
	kill(-job->pid, SIGKILL);
	int64_t deadline = clock_mono_ms() + KILL_WAIT_MS;
	while (!job_collect(ctx, job) && clock_mono_ms() < deadline) {
		struct pollfd fd = {.fd = job->pidfd, .events = POLLIN};
		poll(&fd, 1, CANCEL_GRACE_MS); /* bounded by the kernel's speed of killing */
	}
}

void job_stop(struct tool_context *ctx, struct job *job)
{
	if (job_collect(ctx, job))
		return;
	kill(-job->pid, SIGTERM);
	if (job_wait(ctx, job, clock_mono_ms() + GRACE_MS, NULL) < 0)
		job_wait_dead(ctx, job);
}

void job_kill_now(struct tool_context *ctx, struct job *job)
{
	if (job_collect(ctx, job))
		return;
	/* wait_poll would answer at once that we are cancelled, so this short wait is our own. */
	struct pollfd fd = {.fd = job->pidfd, .events = POLLIN};
	kill(-job->pid, SIGTERM);
	poll(&fd, 1, CANCEL_GRACE_MS);
	job_wait_dead(ctx, job);
}

/* What a running job orphaned comes to us, the subreaper, and its death too. Leaders are left
 * alone: their status is taken by job_collect. */
static void reap_orphans(const struct tool_context *ctx)
{
	siginfo_t info = {0};
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		for (const struct job *job = ctx->jobs; job; job = job->next)
			if (job->running && job->pid == info.si_pid)
				return;
		waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

void jobs_collect(struct tool_context *ctx)
{
	for (struct job *job = ctx->jobs; job; job = job->next) {
		if (job->running)
			job_check_size(ctx, job);
		job_collect(ctx, job);
	}
	reap_orphans(ctx);
}

void jobs_end_all(struct tool_context *ctx)
{
	for (struct job *job = ctx->jobs; job; job = job->next)
		if (job->running)
			kill(-job->pid, SIGTERM);
	for (struct job *job = ctx->jobs; job; job = job->next)
		if (job->running)
			job_kill_now(ctx, job);
	spawn_kill_descendants(NULL, 0, clock_mono_ms() + KILL_WAIT_MS);
	while (ctx->jobs)
		job_drop(ctx, ctx->jobs);
}

/* --- telling --- */

const char *job_where(const struct job *job)
{
	return job->output ? job->output : "memory only, since the disk is full";
}

void job_describe(const struct job *job, struct buf *out)
{
	char took[32];
	int64_t end = job->running ? clock_mono_ms() : job->ended_ms;
	clock_human(end - job->started_ms, took, sizeof(took));
	if (job->running)
		buf_addf(out, "running for %s", took);
	else if (job->over_size)
		buf_addf(out, "ended after %s: its output was too large", took);
	else if (job->signal)
		buf_addf(out, "ended by signal %d (%s) after %s", job->signal,
			 strsignal(job->signal), took);
	else
		buf_addf(out, "exit code %d after %s", job->exit_code, took);
}

size_t tool_context_running_jobs(const struct tool_context *ctx)
{
	size_t count = 0;
	for (const struct job *job = ctx->jobs; job; job = job->next)
		count += job->running && job->id[0];
	return count;
}

void tool_context_list_jobs(const struct tool_context *ctx, struct buf *out)
{
	for (const struct job *job = ctx->jobs; job; job = job->next) {
		if (job->running && job->id[0])
			buf_addf(out, "- %s: %s; output: %s\n", job->id, job->command,
				 job_where(job));
	}
}

bool tool_context_next_end(struct tool_context *ctx, struct job_end *ret)
{
	jobs_collect(ctx);
	for (struct job *job = ctx->jobs; job; job = job->next) {
		if (job->running || job->announced || !job->id[0])
			continue;
		*ret = (struct job_end){.exit_code = job->exit_code, .line = BUF_INIT};
		memcpy(ret->id, job->id, sizeof(ret->id));
		buf_addf(&ret->line, "background job %s ended: ", job->id);
		job_describe(job, &ret->line);
		buf_addf(&ret->line, "; command: %s; output: %s", job->command, job_where(job));
		job->announced = true;
		return true;
	}
	return false;
}
