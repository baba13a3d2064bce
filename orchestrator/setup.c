/*
 * setup.c - a job of the parent: bash in a box, output to a file, TERM and KILL at the time limit.
 *
 * The command is the user's or the project's, and runs before the agent sees its worktree. It is a
 * child of the parent and not of the agent, because the agent's process starts at the same moment
 * and must not begin to spend before the setup has succeeded (trap 126). So the record of the agent
 * owns it: an agent that ends first takes its setup with it, and its work is collected only after
 * both are gone, or the command would still write into a worktree that is being read.
 *
 * Its output is a file and no pipe: nobody has to read while it runs, and it may be as long as it
 * likes without filling anybody's memory.
 */
#include "orchestrator/setup.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/run.h"
#include "handoff/box_command.h"

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

/* Where a setup command works: exactly as the shells that come after it (docs/configuration.md). */
static int setup_start(struct setup *setup, const struct box_command *box, const char *command,
		       struct err *err)
{
	struct words argv = {0};
	AUTO_FD int out = open(setup->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct child_spec spec = {
		.kind = CHILD_JOB,
		.name = "setup",
		.handler = &setup_handler,
		.arg = setup,
		.opts = SPAWN_OPTS_INIT,
	};

	if (out < 0)
		return err_sys(err, "cannot create '%s'", setup->log);
	char **env = box_command_env(box);
	box_command_argv(box, &argv);
	words_add(&argv, "/bin/bash");
	words_add(&argv, "-c");
	words_add(&argv, command);
	spec.opts.path = argv.items[0];
	spec.opts.argv = argv.items;
	spec.opts.envp = (const char *const *)env;
	spec.opts.cwd = box->worktree;
	spec.opts.fd_out = out;
	spec.opts.fd_err = out;
	/* A session of its own: the command may start what it likes, and the child's group is all
	 * that ends with it; what leaves the group falls to the sweep, once the agent is gone. */
	spec.opts.new_session = true;
	spec.opts.death_signal = SIGKILL;
	spec.opts.restore_nofile = true;
	int rc = children_spawn(setup->agent->run->children, &spec, &setup->child, err);
	env_list_free(env);
	words_release(&argv);
	return rc;
}

static int setup_spawn(struct setup *setup, const char *command, struct err *err)
{
	struct agent_record *agent = setup->agent;
	struct run *run = agent->run;
	bool confined = run->box_level != BOX_NONE;
	AUTO_FREE char *program = confined ? file_find_program("baton-box", err) : NULL;
	AUTO_FREE char *scratch = file_join(agent->gen_dir, "scratch");
	AUTO_FREE char *cache = file_join(agent->dir, "cache");
	char **read_paths = agent_read_paths(agent);
	struct box_command box = {
		.program = program,
		.network = agent_network(agent),
		.worktree = agent->worktree,
		.git_dir = agent->git_dir,
		.scratch = scratch,
		.cache = cache,
		.read_paths = (const char *const *)read_paths,
		.pass_env = settings_list(run->settings, OPT_PASS_ENV),
	};
	/* A box that was promised and cannot be found is no reason to work without one. */
	int rc = confined && !program ? -1 : setup_start(setup, &box, command, err);

	env_list_free(read_paths);
	return rc;
}

void setup_run(struct agent_record *agent, const char *command, setup_done_fn done)
{
	struct setup *setup = mem_alloc(sizeof(*setup));
	struct err err = ERR_INIT;
	int64_t ms = settings_i64(agent->run->settings, OPT_SETUP_TIMEOUT);
	struct timeval limit = clock_timeval(ms);

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
