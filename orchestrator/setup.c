/*
 * setup.c - the setup command of a worktree as a boxed job. Runs in the parent's loop.
 *
 * The command is the user's or the project's, and runs before the agent sees its worktree. It is a
 * child of the parent and not of the agent, because the agent's process starts at the same moment
 * and must not begin to spend before the setup has succeeded (trap 126). So the record of the agent
 * owns it: an agent that ends first takes its setup with it, and its work is collected only after
 * both are gone, or the command would still write into a worktree that is being read.
 */
#include "orchestrator/setup.h"

#include <sys/wait.h>

#include "base/env.h"
#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/box_job.h"
#include "orchestrator/run.h"

#define SETUP_TAIL 1500 /* bytes of output told with a failure */

struct setup {
	struct agent_record *agent;
	setup_done_fn done;
	char *log;
};

static void setup_free(struct setup *setup)
{
	free(setup->log);
	free(setup);
}

static void on_setup_over(const struct box_job_end *end, void *arg)
{
	struct setup *setup = arg;
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf tail = BUF_INIT;
	char how[64];

	setup->agent->setup = NULL;
	if (WIFEXITED(end->wait_status) && WEXITSTATUS(end->wait_status) == 0) {
		setup->done(setup->agent, NULL);
	} else {
		child_describe_exit(end->wait_status, how, sizeof(how));
		buf_addf(&text, "the setup command %s",
			 end->timed_out ? "reached its time limit" : how);
		box_job_tail(&tail, setup->log, SETUP_TAIL);
		if (tail.len > 0)
			buf_addf(&text, ": %s", buf_str(&tail));
		setup->done(setup->agent, buf_str(&text));
	}
	setup_free(setup);
}

/* Where a setup command works: exactly as the shells that come after it (docs/configuration.md). */
static int setup_start(struct setup *setup, const char *command, struct err *err)
{
	struct agent_record *agent = setup->agent;
	const struct settings *settings = agent->run->settings;
	AUTO_FREE char *scratch = file_join(agent->gen_dir, "scratch");
	AUTO_FREE char *cache = file_join(agent->dir, "cache");
	char **read_paths = agent_read_paths(agent);
	struct box_command box = {
		.network = agent_network(agent),
		.worktree = agent->worktree,
		.git_dir = agent->git_dir,
		.scratch = scratch,
		.cache = cache,
		.read_paths = (const char *const *)read_paths,
		.pass_env = settings_list(settings, OPT_PASS_ENV),
	};
	struct box_job_spec spec = {
		.name = "setup",
		.command = command,
		.box = &box,
		.log = setup->log,
		.timeout_ms = settings_i64(settings, OPT_SETUP_TIMEOUT),
	};
	agent->setup = box_job_start(agent->run, &spec, on_setup_over, setup, err);
	env_list_free(read_paths);
	return agent->setup ? 0 : -1;
}

void setup_run(struct agent_record *agent, const char *command, setup_done_fn done)
{
	struct setup *setup = mem_alloc(sizeof(*setup));
	struct err err = ERR_INIT;

	setup->agent = agent;
	setup->done = done;
	setup->log = file_join(agent->gen_dir, "setup.log");
	if (setup_start(setup, command, &err) < 0) {
		done(agent, err.message);
		setup_free(setup);
	}
}
