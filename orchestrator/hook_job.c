/*
 * hook_job.c - runs one hook command (M6). Runs in the parent's loop.
 *
 * The boundary is that of the agent's shells (handoff/box_command.h), less the right to write: worktree and
 * private repository are there to be read, and TMPDIR is a folder of the hooks alone, so that no shell of
 * the agent can lay anything in a hook's way. It works in the folder of the configuration file that
 * names it, which is the user's checkout or home and never an agent's worktree (M5): an agent that edits
 * .baton/hooks edits its own copy.
 *
 * The input is a memory file: nobody has to feed a pipe, and a command that never reads it holds up nothing.
 * The output comes by pipes and not by files, because it has a maximum: what is beyond is read and
 * dropped, so that a command which prints too much ends as it would have, and its status counts.
 *
 * A job is over when its process is reaped; child.c has killed its group by then. What left the group may
 * still hold a pipe: it is not waited for, and falls to the sweep.
 */
#include "orchestrator/hook_job.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "handoff/box_command.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/run.h"

#define GRACE_MS   1000	      /* from TERM to KILL */
#define READ_BYTES (64 << 10) /* of one read */
#define LAST_READS 64	      /* at most so many after the end: a stray may print for ever */

struct stream {
	struct event *event;
	int fd;
	struct buf text;
	size_t max;
	int64_t bytes; /* all that came */
};

struct hook_job {
	struct agent_record *agent;
	const struct hook_setting *hook;
	hook_job_done_fn done;
	void *arg;
	struct child *child;
	struct event *ev_limit;
	struct stream out, err;
	int64_t limit_ms, began;
	bool timed_out;
};

/* ---- output ---- */

/* 1: there may be more; 0: nothing more now; -1: the other end is closed. */
static int stream_read(struct stream *s)
{
	char bytes[READ_BYTES];
	ssize_t n = read(s->fd, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -1;
	s->bytes += n;
	buf_add(&s->text, bytes, MIN((size_t)n, s->max - s->text.len));
	return n ? 1 : -1;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	if (stream_read(s) < 0)
		event_del(s->event);
}

static void stream_finish(struct stream *s)
{
	for (int i = 0; s->fd >= 0 && i < LAST_READS && stream_read(s) > 0; i++)
		continue;
}

/* *ret_theirs is the end that the command writes; the caller closes it. Only ours does not block. */
static int stream_open(struct stream *s, struct event_base *base, size_t max, int *ret_theirs,
		       struct err *err)
{
	int ends[2];

	s->max = max;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "cannot make a pipe");
	s->fd = ends[0];
	*ret_theirs = ends[1];
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "cannot set up a pipe");
	s->event = event_new(base, s->fd, EV_READ | EV_PERSIST, on_readable, s);
	event_add(s->event, NULL);
	return 0;
}

static void stream_close(struct stream *s)
{
	if (s->event)
		event_free(s->event);
	if (s->fd >= 0)
		close(s->fd);
	buf_release(&s->text);
}

void hook_job_free(struct hook_job *job)
{
	if (!job)
		return;
	if (job->ev_limit)
		event_free(job->ev_limit);
	stream_close(&job->out);
	stream_close(&job->err);
	free(job);
}

/* ---- the end ---- */

static void on_exit_of(struct child *child, int status, const char *failure)
{
	struct hook_job *job = child->arg;
	struct hook_job_end end = {.result = {.event = job->hook->event}};

	job->child = NULL;
	stream_finish(&job->out);
	stream_finish(&job->err);
	job->agent->run->sweep_wanted = true;
	end.result.wait_status = status;
	end.result.timed_out = job->timed_out;
	end.result.limit_ms = job->limit_ms;
	end.result.required = job->hook->required;
	end.result.out = buf_str(&job->out.text);
	end.result.out_len = job->out.text.len;
	end.result.err = buf_str(&job->err.text);
	end.result.err_len = job->err.text.len;
	end.duration_ms = clock_mono_ms() - job->began;
	end.out_bytes = job->out.bytes;
	job->done(&end, job->arg);
	hook_job_free(job);
}

static const struct child_handler hook_handler = {.on_exit = on_exit_of};

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct hook_job *job = arg;

	job->timed_out = true;
	child_stop(job->child, GRACE_MS);
}

void hook_job_stop(struct hook_job *job)
{
	if (job->child)
		child_stop(job->child, GRACE_MS);
}

/* ---- the start ---- */

static int make_input(const char *input, size_t n, struct err *err)
{
	AUTO_FD int fd = memfd_create("baton-hook", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "cannot make a memory file");
	for (size_t at = 0; at < n;) {
		ssize_t wrote = write(fd, input + at, n - at);
		if (wrote < 0 && errno != EINTR)
			return err_sys(err, "cannot write a memory file");
		at += wrote > 0 ? (size_t)wrote : 0;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "cannot rewind a memory file");
	return take_fd(fd);
}

/* The folder of scripts beside the configuration. One that is a link to elsewhere is not opened: who wrote
 * the repository does not choose what of the user's files a command can read. */
static char *scripts_folder(const struct hook_setting *hook)
{
	AUTO_FREE char *path = file_join(hook->folder, "hooks");

	return file_is_dir(path) && file_lies_in(hook->folder, path) ? take_ptr(path) : NULL;
}

/* NAME=VALUE; NULL-terminated, free with env_list_free. */
static char **own_variables(const struct agent_record *agent, const struct hook_setting *hook)
{
	const char *top = agent->run->toplevel;
	char **list = mem_array(NULL, 4, sizeof(*list));
	size_t n = 0;

	list[n++] = mem_printf("BATON_WORKTREE=%s", agent->worktree);
	list[n++] = mem_printf("BATON_HOOK_EVENT=%s", hook_event_name(hook->event));
	if (top)
		list[n++] = mem_printf("BATON_PROJECT_DIR=%s", top);
	list[n] = NULL;
	return list;
}

static void spawn_options(const struct hook_job *job, const struct words *argv, char **env,
			  struct spawn_opts *opts)
{
	*opts = (struct spawn_opts)SPAWN_OPTS_INIT;
	opts->path = argv->items[0];
	opts->argv = argv->items;
	opts->envp = (const char *const *)env;
	opts->cwd = job->hook->folder;
	opts->new_session = true;
	opts->death_signal = SIGKILL;
	opts->restore_nofile = true;
}

/* theirs: stdin, stdout, stderr of the command. */
static int spawn_in(struct hook_job *job, const struct box_command *box, const int theirs[3],
		    struct err *err)
{
	struct words argv = {0};
	struct child_spec spec = {
		.kind = CHILD_JOB, .name = "hook", .handler = &hook_handler, .arg = job};
	char **env = box_command_env(box);

	box_command_argv(box, &argv);
	words_add(&argv, "/bin/bash");
	words_add(&argv, "-c");
	words_add(&argv, job->hook->command);
	spawn_options(job, &argv, env, &spec.opts);
	spec.opts.fd_in = theirs[0];
	spec.opts.fd_out = theirs[1];
	spec.opts.fd_err = theirs[2];
	int rc = children_spawn(job->agent->run->children, &spec, &job->child, err);
	env_list_free(env);
	words_release(&argv);
	return rc;
}

static int spawn_boxed(struct hook_job *job, const int theirs[3], struct err *err)
{
	struct agent_record *agent = job->agent;
	bool confined = agent->run->box_level != BOX_NONE;
	AUTO_FREE char *program = confined ? file_find_program("baton-box", err) : NULL;
	AUTO_FREE char *scratch = file_join(agent->gen_dir, "hooks");
	AUTO_FREE char *scripts = scripts_folder(job->hook);
	char **paths = agent_read_paths(agent), **own = own_variables(agent, job->hook);
	struct words read = {0};
	int rc = -1;

	for (size_t i = 0; paths[i]; i++)
		words_add(&read, paths[i]);
	words_add(&read, agent->gen_dir); /* its transcript */
	if (scripts)
		words_add(&read, scripts);
	struct box_command box = {
		.program = program,
		.network = agent_network(agent),
		.read_only = true,
		.worktree = agent->worktree,
		.git_dir = agent->git_dir,
		.scratch = scratch,
		.read_paths = read.items,
		.pass_env = settings_list(agent->run->settings, OPT_PASS_ENV),
		.set_env = (const char *const *)own,
	};
	/* A box that was promised and cannot be found is no reason to run without one. */
	if (confined && !program)
		rc = -1;
	else if (mkdir(scratch, 0700) < 0 && errno != EEXIST)
		rc = err_sys(err, "cannot make '%s'", scratch);
	else
		rc = spawn_in(job, &box, theirs, err);
	words_release(&read);
	env_list_free(paths);
	env_list_free(own);
	return rc;
}

static int start(struct hook_job *job, const char *input, size_t n, struct err *err)
{
	struct event_base *base = job->agent->run->base;
	struct timeval limit = clock_timeval(job->limit_ms);
	AUTO_FD int in = make_input(input, n, err);
	AUTO_FD int out = -1;
	AUTO_FD int error = -1;

	if (in < 0 || stream_open(&job->out, base, HOOK_OUTPUT_MAX, &out, err) < 0 ||
	    stream_open(&job->err, base, HOOK_ERROR_MAX, &error, err) < 0)
		return -1;
	if (spawn_boxed(job, (const int[]){in, out, error}, err) < 0)
		return -1;
	job->ev_limit = evtimer_new(base, on_limit, job);
	evtimer_add(job->ev_limit, &limit);
	return 0;
}

int hook_job_start(struct agent_record *agent, const struct hook_setting *hook, const char *input,
		   size_t n, hook_job_done_fn done, void *arg, struct hook_job **ret,
		   struct err *err)
{
	struct hook_job *job = mem_alloc(sizeof(*job));

	job->agent = agent;
	job->hook = hook;
	job->done = done;
	job->arg = arg;
	job->out.fd = job->err.fd = -1;
	job->began = clock_mono_ms();
	job->limit_ms = hook->timeout_ms ? hook->timeout_ms
					 : settings_i64(agent->run->settings, OPT_HOOK_TIMEOUT);
	if (start(job, input, n, err) < 0) {
		hook_job_free(job);
		return -1;
	}
	*ret = job;
	return 0;
}
