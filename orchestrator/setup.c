/*
 * setup.c - a job of the parent: bash in a box, output to a file, TERM and KILL at the time limit.
 */
#include "orchestrator/setup.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/run.h"

#define SETUP_TAIL 1500 /* bytes of output told with a failure */

struct setup {
	struct agent_record *agent;
	setup_done_fn done;
	struct child *child;
	struct event *ev_limit;
	char *log;
	bool timed_out;
};

static void setup_free(struct setup *setup)
{
	if (setup->ev_limit)
		event_free(setup->ev_limit);
	free(setup->log);
	free(setup);
}

/* The end of the command's output, printable. */
static void append_tail(struct buf *out, const char *path)
{
	struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, 1 << 20, &text, NULL) == 0 && text.len > 0) {
		size_t from = text.len > SETUP_TAIL
				      ? text_ceil(text.data, text.len, text.len - SETUP_TAIL)
				      : 0;
		buf_adds(out, ": ");
		text_printable(out, text.data + from, text.len - from, false);
	}
	buf_release(&text);
}

static void on_setup_exit(struct child *child, int status, const char *failure)
{
	struct setup *setup = child->arg;
	struct buf text = BUF_INIT;

	setup->agent->setup = NULL;
	char how[64];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		setup->done(setup->agent, NULL);
	} else {
		child_describe_exit(status, how, sizeof(how));
		buf_addf(&text, "the setup command %s",
			 setup->timed_out ? "reached its time limit" : how);
		append_tail(&text, setup->log);
		setup->done(setup->agent, buf_str(&text));
	}
	buf_release(&text);
	setup_free(setup);
}

static const struct child_handler setup_handler = {.on_exit = on_setup_exit};

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct setup *setup = arg;

	setup->timed_out = true;
	child_stop(setup->child, 1000);
}

static int setup_spawn(struct setup *setup, const char *command, struct err *err)
{
	static const char *const allow[] = {"PATH", "HOME", "LANG", "LC_*", "TZ", "USER", NULL};
	struct agent_record *agent = setup->agent;
	struct run *run = agent->run;
	AUTO_FREE char *box = file_find_program("baton-box", err);
	AUTO_FREE char *scratch = file_join(agent->gen_dir, "scratch");
	AUTO_FREE char *tmp = mem_printf("TMPDIR=%s", scratch);
	const char *extra[] = {tmp, "TERM=dumb", "GIT_TERMINAL_PROMPT=0", NULL};
	AUTO_FD int out = open(setup->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	AUTO_FREE char *objects = file_join(run->common_dir, "objects");
	const char *level = run->box_level == BOX_NONE ? "unconfined" : "auto";
	const char *argv[] = {"baton-box",
			      "--level",
			      level,
			      "--network",
			      settings_str(run->settings, OPT_NETWORK),
			      "--write",
			      agent->worktree,
			      "--write",
			      agent->git_dir,
			      "--write",
			      scratch,
			      "--read",
			      objects,
			      "--",
			      "/bin/bash",
			      "-c",
			      command,
			      NULL};
	struct child_spec spec = {
		.kind = CHILD_JOB,
		.name = "setup",
		.handler = &setup_handler,
		.arg = setup,
		.opts = SPAWN_OPTS_INIT,
	};

	if (!box)
		return -1;
	if (out < 0)
		return err_sys(err, "cannot create '%s'", setup->log);
	char **env = env_filter_more(allow, settings_list(run->settings, OPT_PASS_ENV), extra);
	spec.opts.path = box;
	spec.opts.argv = argv;
	spec.opts.envp = (const char *const *)env;
	spec.opts.cwd = agent->worktree;
	spec.opts.fd_out = out;
	spec.opts.fd_err = out;
	spec.opts.new_session = true;
	spec.opts.death_signal = SIGKILL;
	spec.opts.restore_nofile = true;
	int rc = children_spawn(run->children, &spec, &setup->child, err);
	env_list_free(env);
	return rc;
}

void setup_run(struct agent_record *agent, const char *command, setup_done_fn done)
{
	struct setup *setup = mem_alloc(sizeof(*setup));
	struct err err = ERR_INIT;
	int64_t ms = settings_i64(agent->run->settings, OPT_SETUP_TIMEOUT);
	struct timeval limit = {ms / 1000, (ms % 1000) * 1000};

	setup->agent = agent;
	setup->done = done;
	setup->log = file_join(agent->gen_dir, "setup.log");
	if (setup_spawn(setup, command, &err) < 0) {
		done(agent, err.message);
		setup_free(setup);
		return;
	}
	agent->setup = setup->child;
	setup->ev_limit = evtimer_new(agent->run->base, on_limit, setup);
	evtimer_add(setup->ev_limit, &limit);
}
