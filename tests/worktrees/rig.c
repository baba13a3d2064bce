/*
 * rig.c - see rig.h. Assertions are cmocka's fail(), so that a broken rig names its line.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/spawn.h"

#define RIG_WAIT_MS 60000

void rig_make(struct rig *rig, const char *init)
{
	const char *tmp = env_get("TMPDIR") ? env_get("TMPDIR") : "/tmp";

	*rig = (struct rig){.pid = -1};
	AUTO_FREE char *made = mem_printf("%s/baton-git-XXXXXX", tmp);
	if (!mkdtemp(made))
		fail_msg("mkdtemp: %s", strerror(errno));
	rig->dir = realpath(made, NULL);
	rig->repo = file_join(rig->dir, "repo");
	AUTO_FREE char *script =
		mem_printf("mkdir home state && printf '[user]\\n\\tname = User\\n"
			   "\\temail = user@example.org\\n[init]\\n\\tdefaultBranch = main\\n"
			   "[advice]\\n\\tdetachedHead = false\\n' >home/.gitconfig && %s",
			   init);
	free(rig_sh(rig, "", script));
}

static char **rig_env(struct rig *rig)
{
	static const char *const allow[] = {"PATH",	     "TMPDIR",	     "ASAN_OPTIONS",
					    "UBSAN_OPTIONS", "LSAN_OPTIONS", NULL};
	AUTO_FREE char *home = mem_printf("HOME=%s/home", rig->dir);
	AUTO_FREE char *state = mem_printf("XDG_STATE_HOME=%s/state", rig->dir);
	const char *const extra[] = {home,
				     state,
				     "GIT_CONFIG_NOSYSTEM=1",
				     "GIT_TERMINAL_PROMPT=0",
				     "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
				     "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
				     NULL};

	return env_filter(allow, extra);
}

/* /bin/sh -e -c SCRIPT; its stderr goes to ours. */
int rig_sh_output(struct rig *rig, const char *folder, const char *script, struct buf *out)
{
	AUTO_FREE char *cwd = file_join(rig->dir, folder);
	const char *const argv[] = {"sh", "-e", "-c", script, NULL};
	char **env = rig_env(rig);
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	struct err err = ERR_INIT;
	int ends[2], status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		fail_msg("pipe: %s", strerror(errno));
	opts.path = "/bin/sh";
	opts.argv = argv;
	opts.envp = (const char *const *)env;
	opts.cwd = cwd;
	opts.fd_out = ends[1];
	opts.fd_err = STDERR_FILENO;
	if (spawn_process(&opts, &pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	close(ends[1]);
	env_list_free(env);
	while (buf_read(out, ends[0], 65536) > 0)
		;
	close(ends[0]);
	waitpid(pid, &status, 0);
	return status;
}

char *rig_sh(struct rig *rig, const char *folder, const char *script)
{
	AUTO_BUF struct buf out = BUF_INIT;
	int status = rig_sh_output(rig, folder, script, &out);

	if (status != 0)
		fail_msg("script failed (%d): %s", status, script);
	while (out.len && out.data[out.len - 1] == '\n')
		buf_truncate(&out, out.len - 1);
	return out.len ? buf_take(&out) : mem_strdup("");
}

int rig_sh_status(struct rig *rig, const char *folder, const char *script)
{
	AUTO_BUF struct buf out = BUF_INIT;

	return rig_sh_output(rig, folder, script, &out);
}

static int on_frame(struct channel *channel, const struct frame *frame, void *arg, struct err *err)
{
	struct rig *rig = arg;

	if (frame->type == FRAME_READY)
		rig->ready = true;
	return frame->type == FRAME_GIT_DONE ? git_client_frame(rig->client, frame, err) : 0;
}

bool rig_turn(struct rig *rig, int64_t deadline)
{
	struct pollfd p = {.fd = channel_fd_in(rig->channel), .events = POLLIN};
	struct err err = ERR_INIT;
	int64_t left = deadline - clock_mono_ms();

	if (left <= 0)
		return false;
	if (channel_wants_write(rig->channel))
		p.events |= POLLOUT;
	if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
		fail_msg("poll: %s", strerror(errno));
	if ((p.revents & POLLOUT) && channel_on_writable(rig->channel, &err) < 0)
		fail_msg("channel: %s", err.message);
	if ((p.revents & (POLLIN | POLLHUP)) && channel_on_readable(rig->channel, &err) < 0)
		fail_msg("channel: %s", err.message);
	return true;
}

void rig_start(struct rig *rig, const char *repository)
{
	const char *program = env_get("BATON_GIT");
	const char *const argv[] = {"baton-git", NULL};
	AUTO_JSON struct json_object *start = json_object_new_object();
	AUTO_BUF struct buf text = BUF_INIT;
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	struct err err = ERR_INIT;
	char **env = rig_env(rig);
	int pair[2];

	if (!program || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		fail_msg("BATON_GIT is not set, or no socketpair");
	opts.path = program;
	opts.argv = argv;
	opts.envp = (const char *const *)env;
	opts.fd_channel = pair[1];
	opts.fd_err = STDERR_FILENO;
	if (spawn_process(&opts, &rig->pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	env_list_free(env);
	close(pair[1]);
	rig->ready = false;
	rig->channel = channel_new(pair[0], pair[0], FROM_W, on_frame, rig);
	channel_keep(rig->channel, "git");
	rig->client = git_client_new(rig->channel);
	json_set_str(start, "git", rig->git ? rig->git : "/usr/bin/git");
	json_set_str(start, "repository", repository);
	json_write(&text, start);
	channel_send(rig->channel, FRAME_START, NULL, text.data, text.len);
	int64_t deadline = clock_mono_ms() + RIG_WAIT_MS;
	while (!rig->ready) {
		if (!rig_turn(rig, deadline))
			fail_msg("baton-git is not ready in time");
	}
}

static int end(struct rig *rig)
{
	int status = 0;

	if (rig->pid <= 0)
		return 0;
	git_client_free(rig->client);
	channel_free(rig->channel);
	waitpid(rig->pid, &status, 0);
	rig->pid = -1;
	rig->client = NULL;
	rig->channel = NULL;
	return status;
}

void rig_stop(struct rig *rig)
{
	int status = end(rig);

	if (status != 0)
		fail_msg("baton-git ended with status %d", status);
}

void rig_kill(struct rig *rig)
{
	kill(rig->pid, SIGKILL);
	end(rig);
}

void rig_free(struct rig *rig)
{
	if (rig->pid > 0)
		rig_stop(rig);
	if (rig->dir)
		file_remove_tree(rig->dir, NULL);
	free(rig->dir);
	free(rig->repo);
}

struct wait {
	bool done;
	struct json_object *answer;
	struct err failure;
};

static void on_done(struct json_object *answer, const struct err *failure, void *arg)
{
	struct wait *wait = arg;

	wait->done = true;
	if (failure)
		wait->failure = *failure;
	else
		wait->answer = json_object_get(answer);
}

struct json_object *rig_call(struct rig *rig, const char *op, struct json_object *body,
			     struct err *err)
{
	struct wait wait = {.done = false};
	int64_t deadline = clock_mono_ms() + RIG_WAIT_MS;

	git_client_call(rig->client, op, body, on_done, &wait);
	json_object_put(body);
	while (!wait.done) {
		if (!rig_turn(rig, deadline))
			fail_msg("no answer to '%s' in time", op);
	}
	if (!wait.answer && err)
		*err = wait.failure;
	return wait.answer;
}

struct json_object *rig_ok(struct rig *rig, const char *op, struct json_object *body)
{
	struct err err = ERR_INIT;
	struct json_object *answer = rig_call(rig, op, body, &err);

	if (!answer)
		fail_msg("'%s' failed: %s: %s", op, err_code_name(err.code), err.message);
	return answer;
}

char *rig_worktree(struct rig *rig, const char *run, const char *agent)
{
	return mem_printf("%s/state/baton/worktrees/repo-1/%s/%s", rig->dir, run, agent);
}

struct json_object *rig_entry(struct rig *rig, const char *run, const char *agent, const char *base)
{
	struct json_object *body = json_object_new_object();
	AUTO_FREE char *worktree = rig_worktree(rig, run, agent);
	AUTO_FREE char *common =
		rig_sh(rig, "repo", "git rev-parse --path-format=absolute --git-common-dir");
	AUTO_FREE char *git_dir = mem_printf("%s/baton/runs/%s/agents/%s/git", common, run, agent);
	AUTO_FREE char *branch = mem_printf("baton/%s/%s", run, agent);
	AUTO_FREE char *head = base ? mem_strdup(base) : rig_sh(rig, "repo", "git rev-parse HEAD");

	json_set_str(body, "run", run);
	json_set_str(body, "agent", agent);
	json_set_str(body, "base", head);
	json_set_str(body, "branch", branch);
	json_set_str(body, "worktree", worktree);
	json_set_str(body, "git_dir", git_dir);
	return body;
}

struct json_object *rig_create(struct rig *rig, const char *run, const char *agent)
{
	return rig_ok(rig, "create", rig_entry(rig, run, agent, NULL));
}
