/*
 * service.c - the loop of baton-git.
 *
 * One process per run that keeps libgit2 and the repository open (loading them costs 9 to 16 ms,
 * facts K). Quick operations are done at once. Long ones run in forked workers, so that sixteen
 * creates go on with two checkouts at a time while an import is answered in between; a fork and not
 * a fresh program, because the worker inherits the open repository. A worker answers through a pipe
 * and ends; it never touches the channel. All workers die with this process (death signal), and
 * this process ends when the parent closes the channel.
 *
 * A worker is finished when its pipe is closed and its status is in.
 */
#include "worktrees/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "handoff/channel.h"
#include "worktrees/ops.h"
#include "worktrees/repo.h"

#define LANE_WORKERS 2
#define WORKERS_MAX  (2 * LANE_WORKERS)
#define ANSWER_MAX   ((size_t)32 << 20)

struct job {
	int64_t id;
	const struct op *op;
	struct json_object *body;
	pid_t pid; /* 0: waits for a worker */
	int fd;	   /* the worker's answer */
	struct buf answer;
	bool again; /* its worker died once */
	struct job *next;
};

struct service {
	struct channel *channel;
	struct repo *repo;
	char *git;
	bool prepared;
	struct job *jobs; /* in the order of arrival */
};

static void job_free(struct job *job)
{
	json_object_put(job->body);
	mem_close_fd(&job->fd);
	buf_release(&job->answer);
	free(job);
}

/* --- answers --- */

static void answer_fail(struct service *s, int64_t id, const struct err *why)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;

	json_set_str(body, "message", why->message);
	json_write(&text, body);
	channel_sendf(s->channel, FRAME_GIT_DONE, text.data, text.len,
		      "\"id\":%" PRId64 ",\"ok\":false,\"code\":\"%s\"", id,
		      err_code_name(why->code));
}

static void answer_ok(struct service *s, int64_t id, const char *body, size_t len)
{
	struct err large = ERR_INIT;

	if (len > ANSWER_MAX) {
		err_set(&large, ERR_TOO_LARGE, "the answer has %zu bytes", len);
		answer_fail(s, id, &large);
		return;
	}
	channel_sendf(s->channel, FRAME_GIT_DONE, body, len, "\"id\":%" PRId64 ",\"ok\":true", id);
}

/* --- workers --- */

/* What goes through the pipe: "1" and the answer, or "0", the code's number as a character, the
 * text. */
static void worker_body(struct service *s, const struct job *job, int out)
{
	AUTO_JSON struct json_object *answer = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;

	if (job->op->run(s->repo, job->body, answer, &err) == 0) {
		buf_addc(&text, '1');
		json_write(&text, answer);
	} else {
		buf_addf(&text, "0%c%s", 'A' + (int)err.code, err.message);
	}
	file_write_all(out, text.data, text.len, NULL);
}

static int worker_start(struct service *s, struct job *job, struct err *err)
{
	int ends[2];
	pid_t self = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "cannot make a pipe");
	pid_t pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_sys(err, "cannot start a worker");
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		close(channel_fd_in(s->channel));
		if (channel_fd_out(s->channel) != channel_fd_in(s->channel))
			close(channel_fd_out(s->channel));
		worker_body(s, job, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	job->pid = pid;
	job->fd = ends[0];
	return 0;
}

static size_t lane_busy(const struct service *s, enum op_lane lane)
{
	size_t n = 0;

	for (const struct job *job = s->jobs; job; job = job->next)
		n += job->pid > 0 && job->op->lane == lane;
	return n;
}

static void job_drop(struct service *s, struct job *job)
{
	for (struct job **at = &s->jobs; *at; at = &(*at)->next) {
		if (*at == job) {
			*at = job->next;
			job_free(job);
			return;
		}
	}
}

/* Starts what may start, oldest first in each lane. */
static void jobs_start(struct service *s)
{
	struct job *next;

	for (struct job *job = s->jobs; job; job = next) {
		struct err err = ERR_INIT;

		next = job->next;
		if (job->pid || lane_busy(s, job->op->lane) >= LANE_WORKERS)
			continue;
		if (worker_start(s, job, &err) < 0) {
			answer_fail(s, job->id, &err);
			job_drop(s, job);
		}
	}
}

/* A worker that was killed (for memory, by a person) leaves what a killed run leaves, and each operation can be begun
 * again from there: so it is, once, before the work of an agent stays where it is. */
static bool job_retry(struct job *job, int status)
{
	if (job->again || !WIFSIGNALED(status))
		return false;
	log_warn("the worker for '%s' was killed by signal %d: once more", job->op->name,
		 WTERMSIG(status));
	job->again = true;
	json_set_bool(job->body, "again", true); /* what is there is the first one's half */
	job->pid = 0;
	mem_close_fd(&job->fd);
	buf_clear(&job->answer);
	return true;
}

static void job_finish(struct service *s, struct job *job)
{
	struct err err = ERR_INIT;
	int status = 0;

	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (job_retry(job, status))
		return; /* jobs_start follows */
	const char *text = buf_str(&job->answer);
	if (status == 0 && text[0] == '1') {
		answer_ok(s, job->id, text + 1, job->answer.len - 1);
	} else if (status == 0 && text[0] == '0' && job->answer.len > 1) {
		err_set(&err, (enum err_code)(text[1] - 'A'), "%s", text + 2);
		answer_fail(s, job->id, &err);
	} else {
		/* The parent tells by these words that the step can be made again by a resume. */
		if (WIFSIGNALED(status))
			err_set(&err, ERR_IO, "the worker for '%s' was killed by signal %d",
				job->op->name, WTERMSIG(status));
		else
			err_set(&err, ERR_IO, "the worker for '%s' ended with status %d",
				job->op->name, WEXITSTATUS(status));
		answer_fail(s, job->id, &err);
	}
	job_drop(s, job);
}

/* --- requests --- */

static int open_repo(struct service *s, const char *path, struct err *err)
{
	struct repo *repo;

	if (repo_open(path, s->git, &repo, err) < 0)
		return -1;
	repo_free(s->repo);
	s->repo = repo;
	s->prepared = false;
	return 0;
}

/* The git program runs in folders of ours. They are made before the first operation that takes a
 * worker: the quick ones of a start go without, and the first request does not wait for the disk. */
static int prepare(struct service *s, struct err *err)
{
	if (!s->prepared && repo_prepare(s->repo, err) < 0)
		return -1;
	s->prepared = true;
	return 0;
}

/* The repository for an operation: discover names one, the others use what was found. */
static int need_repo(struct service *s, const struct op *op, struct json_object *body,
		     struct err *err)
{
	bool discover = op->run == op_discover;
	const char *path = json_str(body, "path", NULL);

	if (discover && path)
		return open_repo(s, path, err);
	if (!s->repo)
		return err_set(err, ERR_NOT_FOUND, "no repository was discovered yet");
	/* Without a handle everything is asked of the git program. */
	return discover || s->repo->handle ? 0 : prepare(s, err);
}

/* In the service itself. 1: done; 0: it takes a worker. */
static int run_here(struct service *s, const struct op *op, int64_t id, struct json_object *body)
{
	AUTO_JSON struct json_object *answer = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	op_fn fn = op->lane == OP_INLINE ? op->run : op->quick;

	if (!fn)
		return 0;
	if (fn(s->repo, body, answer, &err) < 0) {
		if (fn == op->quick && err.code == ERR_BUSY)
			return 0;
		answer_fail(s, id, &err);
		return 1;
	}
	json_write(&text, answer);
	answer_ok(s, id, text.data, text.len);
	return 1;
}

static void enqueue(struct service *s, const struct op *op, int64_t id, struct json_object *body)
{
	struct job *job = mem_alloc(sizeof(*job));
	struct job **at = &s->jobs;

	*job = (struct job){.id = id,
			    .op = op,
			    .body = json_object_get(body),
			    .fd = -1,
			    .answer = BUF_INIT_MAX(ANSWER_MAX + 4096)};
	while (*at)
		at = &(*at)->next;
	*at = job;
	jobs_start(s);
}

static int on_git(struct service *s, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *name = json_str(frame->header, "op", "");
	int64_t id = json_i64(frame->header, "id", -1);
	const struct op *op = op_find(name);
	struct err why = ERR_INIT;

	log_debug("operation %" PRId64 ": %s", id, name);
	if (json_parse(frame->body, frame->len, &body, err) < 0)
		return err_prefix(err, "request '%s'", name);
	if (!op) {
		err_set(&why, ERR_UNSUPPORTED, "there is no operation '%s'", name);
		answer_fail(s, id, &why);
	} else if (need_repo(s, op, body, &why) < 0) {
		answer_fail(s, id, &why);
	} else if (!run_here(s, op, id, body)) {
		if (prepare(s, &why) < 0)
			answer_fail(s, id, &why);
		else
			enqueue(s, op, id, body);
	}
	return 0;
}

static int on_start(struct service *s, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *git;
	struct err why = ERR_INIT;

	if (json_parse(frame->body, frame->len, &body, err) < 0 ||
	    json_need_str(body, "git", &git, err) < 0)
		return err_prefix(err, "start");
	if (json_flag(body, "verbose", false))
		log_be_verbose();
	free(s->git);
	s->git = mem_strdup(git);
	const char *path = json_str(body, "repository", NULL);
	/* No repository there is no failure of ours: discover says so to whoever asks. */
	if (path && open_repo(s, path, &why) < 0)
		log_debug("no repository at start: %s", why.message);
	channel_send(s->channel, FRAME_READY, NULL, "{}", 2);
	return 0;
}

static int on_frame(struct channel *channel, const struct frame *frame, void *arg, struct err *err)
{
	struct service *s = arg;

	switch (frame->type) {
	case FRAME_START: return on_start(s, frame, err);
	case FRAME_GIT:
		if (!s->git)
			return err_set(err, ERR_INVALID, "an operation came before start");
		return on_git(s, frame, err);
	default: return 0;
	}
}

/* --- the loop --- */

static void read_workers(struct service *s, const struct pollfd *polls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct job *job = s->jobs;

		if (!polls[i].revents)
			continue;
		while (job && (!job->pid || job->fd != polls[i].fd))
			job = job->next;
		if (!job)
			continue;
		ssize_t got = buf_read(&job->answer, job->fd, 1 << 18);
		if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN)))
			continue;
		if (got < 0) {
			job->again = true;	 /* it would be no shorter the next time */
			kill(job->pid, SIGKILL); /* it says more than any answer may have */
		}
		job_finish(s, job);
	}
	jobs_start(s);
}

static int turn(struct service *s, struct err *err)
{
	struct pollfd polls[WORKERS_MAX + 2];
	size_t n = 0;

	for (const struct job *job = s->jobs; job && n < WORKERS_MAX; job = job->next) {
		if (job->pid)
			polls[n++] = (struct pollfd){.fd = job->fd, .events = POLLIN};
	}
	struct pollfd *in = &polls[n], *out = &polls[n + 1];
	*in = (struct pollfd){.fd = channel_fd_in(s->channel), .events = POLLIN};
	*out = (struct pollfd){.fd = channel_wants_write(s->channel) ? channel_fd_out(s->channel)
								     : -1,
			       .events = POLLOUT};
	if (poll(polls, n + 2, -1) < 0)
		return errno == EINTR ? 0 : err_sys(err, "cannot wait");
	if (out->revents && channel_on_writable(s->channel, err) < 0)
		return -1;
	if (in->revents && channel_on_readable(s->channel, err) < 0)
		return -1;
	read_workers(s, polls, n);
	return 0;
}

int service_run(int fd, struct err *err)
{
	struct service s = {0};
	struct err why = ERR_INIT;

	s.channel = channel_new(fd, fd, FROM_P, on_frame, &s);
	channel_keep(s.channel, NULL);
	channel_send_hello(s.channel, "git");
	while (turn(&s, &why) == 0)
		;
	for (struct job *job = s.jobs; job; job = job->next) {
		if (job->pid)
			kill(job->pid, SIGKILL);
	}
	while (s.jobs) {
		if (s.jobs->pid)
			waitpid(s.jobs->pid, NULL, 0);
		job_drop(&s, s.jobs);
	}
	channel_free(s.channel);
	repo_free(s.repo);
	free(s.git);
	if (why.code == ERR_CLOSED)
		return 0;
	if (err)
		*err = why;
	return -1;
}
