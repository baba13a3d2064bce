/*
 * gate.c - gates as boxed jobs. Runs in the parent's loop.
 *
 * A gate has a TMPDIR of its own, which goes when it is over, and shares a folder for caches with the earlier gates of
 * its name: the second build of a queue should be quicker than the first. No agent reaches either.
 */
#include "orchestrator/gate.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/box_job.h"
#include "orchestrator/run.h"

#define TAIL_BYTES 4000
#define NUMBER_MAX 1000000 /* of gates of one name */

struct gate {
	struct run *run;
	gate_done_fn done;
	void *arg;
	struct box_job *job;
	char *log, *scratch;
};

bool gate_passed(const struct gate_result *result)
{
	return result->exit_code == 0 && !result->timed_out && !result->cancelled;
}

const char *gate_describe(const struct gate_result *result, char *buf, size_t size)
{
	if (result->cancelled)
		snprintf(buf, size, "was stopped");
	else if (result->timed_out)
		snprintf(buf, size, "reached its time limit");
	else if (result->signalled)
		snprintf(buf, size, "was killed by a signal");
	else
		snprintf(buf, size, "exited with status %d", result->exit_code);
	return buf;
}

static void gate_free(struct gate *gate)
{
	free(gate->log);
	free(gate->scratch);
	free(gate);
}

static void on_removed(struct child *child, int wait_status, const char *failure)
{
}

static const struct child_handler remove_handler = {.on_exit = on_removed};

/* By a process: a build leaves more in its TMPDIR than this loop could remove while others wait. It never follows a
 * link, and what is left goes with the run's folder. */
static void drop_scratch(struct gate *gate)
{
	const char *const argv[] = {"/bin/rm", "-rf",	      "--one-file-system",
				    "--",      gate->scratch, NULL};
	struct child_spec spec = {.kind = CHILD_JOB,
				  .name = "gate-end",
				  .handler = &remove_handler,
				  .opts = SPAWN_OPTS_INIT};
	struct child *child;
	struct err err = ERR_INIT;

	spec.opts.path = argv[0];
	spec.opts.argv = argv;
	spec.opts.death_signal = SIGKILL;
	if (children_spawn(gate->run->children, &spec, &child, &err) < 0)
		log_warn("'%s' stays: %s", gate->scratch, err.message);
}

static void on_gate_over(const struct box_job_end *end, void *arg)
{
	struct gate *gate = arg;
	AUTO_BUF struct buf tail = BUF_INIT;
	bool exited = WIFEXITED(end->wait_status);

	box_job_tail(&tail, gate->log, TAIL_BYTES);
	struct gate_result result = {
		.exit_code = exited ? WEXITSTATUS(end->wait_status) : -1,
		.timed_out = end->timed_out,
		.signalled = !exited,
		.cancelled = end->stopped,
		.ms = end->ms,
		.tail = buf_str(&tail),
		.path = gate->log,
	};
	drop_scratch(gate);
	gate->run->pending--;
	gate->done(gate->arg, &result);
	gate_free(gate);
}

/* A name from a file of the user's becomes one of ours. */
static char *folder_name(const char *name)
{
	char *out = mem_strdup(name);

	for (char *c = out; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			*c = '-';
	}
	return out;
}

/* Numbered on from what is there: a run that goes on keeps the outputs of before. */
static int make_places(struct gate *gate, const char *name, char **ret_cache, struct err *err)
{
	AUTO_FREE char *plain = folder_name(name);
	AUTO_FREE char *folder = run_path(gate->run, "gates/%s", plain);

	*ret_cache = file_join(folder, "cache");
	if (file_mkdirs(*ret_cache, 0700, err) < 0)
		return -1;
	for (int i = 1; i < NUMBER_MAX; i++) {
		free(gate->scratch);
		free(gate->log);
		gate->scratch = mem_printf("%s/%d.tmp", folder, i);
		gate->log = mem_printf("%s/%d.log", folder, i);
		if (file_exists(gate->log))
			continue;
		if (mkdir(gate->scratch, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return err_sys(err, "cannot make '%s'", gate->scratch);
	}
	return err_set(err, ERR_TOO_LARGE, "too many gates of the name '%s'", name);
}

static int start(struct gate *gate, const struct gate_spec *spec, struct err *err)
{
	struct run *run = gate->run;
	AUTO_FREE char *cache = NULL;

	if (make_places(gate, spec->name, &cache, err) < 0)
		return -1;
	char **read_paths = run_read_paths(run, spec->git_dir != NULL);
	struct box_command box = {
		.network = spec->network ? spec->network : settings_str(run->settings, OPT_NETWORK),
		.read_only = !spec->write,
		.worktree = spec->tree,
		.git_dir = spec->git_dir,
		.scratch = gate->scratch,
		.cache = cache,
		.read_paths = (const char *const *)read_paths,
		.pass_env = settings_list(run->settings, OPT_PASS_ENV),
	};
	struct box_job_spec job = {
		.name = "gate",
		.command = spec->command,
		.box = &box,
		.log = gate->log,
		.timeout_ms = spec->timeout_ms > 0 ? spec->timeout_ms : GATE_TIMEOUT_MS,
	};
	gate->job = box_job_start(run, &job, on_gate_over, gate, err);
	env_list_free(read_paths);
	return gate->job ? 0 : -1;
}

struct gate *gate_start(struct run *run, const struct gate_spec *spec, gate_done_fn done, void *arg,
			struct err *err)
{
	struct gate *gate = mem_alloc(sizeof(*gate));

	gate->run = run;
	gate->done = done;
	gate->arg = arg;
	if (start(gate, spec, err) < 0) {
		gate_free(gate);
		return NULL;
	}
	run->pending++;
	return gate;
}

void gate_cancel(struct gate *gate)
{
	box_job_stop(gate->job);
}
