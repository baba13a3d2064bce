/*
 * git_session.c - see git_session.h. Runs in commands such as diff, clean and adopt.
 *
 * A command has no event loop and wants one answer after another, so this is the service's channel
 * with a poll of its own: the same program and the same frames as in a run. Linking libgit2 into
 * `baton` instead was rejected: every command would pay for loading it, and what a box planted in a
 * repository would be parsed in the user's own process.
 */
#include "orchestrator/git_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "handoff/channel.h"
#include "orchestrator/project.h"
#include "worktrees/client.h"

#define CALL_MS 600000

struct git_session {
	struct channel *channel;
	struct git_client *client;
	pid_t pid;
	bool done;
	struct json_object *answer;
	struct err failure;
};

static int on_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct git_session *s = arg;

	switch (frame->type) {
	case FRAME_GIT_DONE: return git_client_frame(s->client, frame, err);
	default: return 0;
	}
}

/* Its stderr is ours: what it has to say is for the person who typed the command. The death signal
 * ends it with us; the end of its channel would too, but not in the middle of a long operation. */
static int start_program(struct git_session *s, struct err *err)
{
	static const char *const allow[] = {"PATH", "HOME",   "LANG",  "LC_*",
					    "TZ",   "TMPDIR", "XDG_*", NULL};
	AUTO_FREE char *path = file_find_program("baton-git", err);
	const char *argv[] = {"baton-git", NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	AUTO_FD int theirs = -1;
	int pair[2];

	if (!path)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "cannot make a channel");
	theirs = pair[1];
	char **env = env_filter(allow, NULL);
	opts.path = path;
	opts.argv = argv;
	opts.envp = (const char *const *)env;
	opts.fd_channel = theirs;
	opts.fd_err = STDERR_FILENO;
	opts.death_signal = SIGTERM;
	int rc = spawn_process(&opts, &s->pid, NULL, err);
	env_list_free(env);
	s->channel = channel_new(pair[0], pair[0], FROM_W, on_frame, s);
	channel_keep(s->channel, "git");
	return rc;
}

int git_session_open(const char *repository, struct git_session **ret, struct err *err)
{
	struct git_session *s = mem_alloc(sizeof(*s));

	if (start_program(s, err) < 0) {
		git_session_close(s);
		return -1;
	}
	AUTO_FREE char *start = project_git_start(repository);
	channel_send(s->channel, FRAME_START, NULL, start, strlen(start));
	s->client = git_client_new(s->channel);
	*ret = s;
	return 0;
}

void git_session_close(struct git_session *s)
{
	if (!s)
		return;
	git_client_free(s->client);
	channel_free(s->channel); /* the service ends with its channel */
	if (s->pid > 0)
		waitpid(s->pid, NULL, 0);
	json_object_put(s->answer);
	free(s);
}

static void on_done(struct json_object *answer, const struct err *failure, void *arg)
{
	struct git_session *s = arg;

	s->done = true;
	if (failure)
		s->failure = *failure;
	else
		s->answer = json_object_get(answer);
}

/* One turn. Writing and reading in the same poll: a large request and a large answer may cross. At
 * the end of the channel what came before it has been handled already (channel.c), so a service that
 * answers and dies has answered. */
static int pump(struct git_session *s, int64_t deadline, struct err *err)
{
	struct pollfd fd = {.fd = channel_fd_in(s->channel), .events = POLLIN};
	int64_t left = deadline - clock_mono_ms();

	if (left <= 0)
		return err_set(err, ERR_TIMEOUT, "the worktree service did not answer in time");
	if (channel_wants_write(s->channel))
		fd.events |= POLLOUT;
	if (poll(&fd, 1, (int)left) < 0 && errno != EINTR)
		return err_sys(err, "cannot wait for the worktree service");
	if ((fd.revents & POLLOUT) && channel_on_writable(s->channel, err) < 0)
		return -1;
	if ((fd.revents & (POLLIN | POLLHUP)) && channel_on_readable(s->channel, err) < 0)
		return err_prefix(err, "the worktree service ended");
	return 0;
}

/* One call at a time: `done` and `answer` are the session's. The limit is far above any operation on
 * a sound disk; it is there so that a command on a dead network mount ends with a message. */
int git_session_call(struct git_session *s, const char *op, struct json_object *body,
		     struct json_object **ret, struct err *err)
{
	int64_t deadline = clock_mono_ms() + CALL_MS;

	s->done = false;
	s->failure.code = ERR_NONE;
	git_client_call(s->client, op, body, on_done, s);
	while (!s->done) {
		if (pump(s, deadline, err) < 0)
			return -1;
	}
	if (s->failure.code != ERR_NONE)
		return err_set(err, s->failure.code, "%s", s->failure.message);
	*ret = take_ptr(s->answer);
	return 0;
}
