/*
 * box_job.c - a job of the parent. Runs in the parent's loop.
 *
 * A session of its own: the command may start what it likes, and the child's group is all that ends with it; what leaves
 * the group falls to the sweep.
 */
#include "orchestrator/box_job.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/run.h"

#define GRACE_MS 1000 /* from TERM to KILL */

struct box_job {
	struct run *run;
	box_job_done_fn done;
	void *arg;
	struct child *child;
	struct event *ev_limit;
	int64_t began;
	bool timed_out, stopped;
};

static void job_free(struct box_job *job)
{
	if (job->ev_limit)
		event_free(job->ev_limit);
	free(job);
}

static void on_job_exit(struct child *child, int wait_status, const char *failure)
{
	struct box_job *job = child->arg;
	struct box_job_end end = {
		.wait_status = wait_status,
		.timed_out = job->timed_out,
		.stopped = job->stopped || (job->run->stopping && !job->timed_out),
		.ms = clock_mono_ms() - job->began,
	};

	job->run->sweep_wanted = true;
	job->done(&end, job->arg);
	job_free(job);
}

static const struct child_handler job_handler = {.on_exit = on_job_exit};

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct box_job *job = arg;

	job->timed_out = true;
	child_stop(job->child, GRACE_MS);
}

void box_job_stop(struct box_job *job)
{
	job->stopped = true;
	child_stop(job->child, GRACE_MS);
}

static int spawn(struct box_job *job, const struct box_job_spec *spec,
		 const struct box_command *box, struct err *err)
{
	struct words argv = {0};
	AUTO_FD int out = open(spec->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct child_spec child = {
		.kind = CHILD_JOB,
		.name = spec->name,
		.handler = &job_handler,
		.arg = job,
		.opts = SPAWN_OPTS_INIT,
	};

	if (out < 0)
		return err_sys(err, "cannot create '%s'", spec->log);
	char **env = box_command_env(box);
	box_command_argv(box, &argv);
	words_add(&argv, "/bin/bash");
	words_add(&argv, "-c");
	words_add(&argv, spec->command);
	child.opts.path = argv.items[0];
	child.opts.argv = argv.items;
	child.opts.envp = (const char *const *)env;
	child.opts.cwd = box->worktree;
	child.opts.fd_out = out;
	child.opts.fd_err = out;
	child.opts.new_session = true;
	child.opts.death_signal = SIGKILL;
	child.opts.restore_nofile = true;
	int rc = children_spawn(job->run->children, &child, &job->child, err);
	env_list_free(env);
	words_release(&argv);
	return rc;
}

struct box_job *box_job_start(struct run *run, const struct box_job_spec *spec,
			      box_job_done_fn done, void *arg, struct err *err)
{
	bool confined = run->box_level != BOX_NONE;
	AUTO_FREE char *program = confined ? file_find_program("baton-box", err) : NULL;
	struct timeval limit = clock_timeval(spec->timeout_ms);
	struct box_command box = *spec->box;

	/* A box that was promised and cannot be found is no reason to work without one. */
	if (confined && !program)
		return NULL;
	box.program = program;
	struct box_job *job = mem_alloc(sizeof(*job));
	job->run = run;
	job->done = done;
	job->arg = arg;
	job->began = clock_mono_ms();
	if (spawn(job, spec, &box, err) < 0) {
		job_free(job);
		return NULL;
	}
	job->ev_limit = evtimer_new(run->base, on_limit, job);
	evtimer_add(job->ev_limit, &limit);
	return job;
}

/* ---- output ---- */

/* The last bytes of a file that may be of any size, and may not be what was made: the command had its descriptor only. */
static int read_end(const char *path, size_t max, struct buf *out, bool *ret_cut)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	*ret_cut = st.st_size > (off_t)max;
	if (*ret_cut && lseek(fd, st.st_size - (off_t)max, SEEK_SET) < 0)
		return -1;
	while (out->len < max && buf_read(out, fd, max - out->len) > 0)
		continue;
	return 0;
}

void box_job_tail(struct buf *out, const char *log, size_t max)
{
	AUTO_BUF struct buf text = BUF_INIT;
	bool cut = false;

	if (read_end(log, max, &text, &cut) < 0 || text.len == 0)
		return;
	size_t from = cut ? text_ceil(text.data, text.len, 1) : 0;
	const char *line = cut ? memchr(text.data, '\n', text.len) : NULL;
	if (line && (size_t)(line + 1 - text.data) < text.len)
		from = (size_t)(line + 1 - text.data);
	text_printable(out, text.data + from, text.len - from, false);
}
