/*
 * cmd_run.c - `baton run TASK`: one agent, to its report.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/launch.h"
#include "orchestrator/outcome.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"
#include "orchestrator/run_base.h"
#include "orchestrator/run_handoff.h"

#define TASK_MAX (4 << 20)

struct run_work {		 /* the driver's */
	struct handoff *handoff; /* --handoff; NULL */
	char *told;		 /* what of it is not here; NULL */
};

/* The task from the argument, from stdin (`-`), from --file, or the goal of --handoff. Caller frees. */
static int read_task(struct settings *s, const struct handoff *handoff, char **ret, struct err *err)
{
	const char *file = settings_str(s, OPT_FILE);
	struct buf text = BUF_INIT_MAX(TASK_MAX);

	if (file && settings_n_args(s) == 1)
		return err_set(err, ERR_USAGE, "give TASK or --file, not both");
	if (!file && settings_n_args(s) == 0 && handoff) {
		*ret = run_handoff_task(handoff);
		return *ret ? 0 : err_set(err, ERR_USAGE, "the handoff names no goal: give a TASK");
	}
	if (!file && settings_n_args(s) == 0)
		return err_set(err, ERR_USAGE,
			       "run needs a TASK: baton run 'fix the failing test'");
	if (file && file_read(AT_FDCWD, file, TASK_MAX, &text, err) < 0)
		return -1;
	if (!file && strcmp(settings_arg(s, 0), "-") == 0) {
		ssize_t n;
		while ((n = buf_read(&text, STDIN_FILENO, 65536)) > 0)
			;
		if (n < 0)
			return err_sys(err, "cannot read the task from standard input");
	} else if (!file) {
		buf_adds(&text, settings_arg(s, 0));
	}
	struct buf clean = BUF_INIT;
	text_sanitize(&clean, buf_str(&text), text.len);
	buf_release(&text);
	*ret = buf_take(&clean);
	if (*ret && (*ret)[strspn(*ret, " \t\r\n")])
		return 0;
	mem_free_ptr(ret);
	return err_set(err, ERR_USAGE, "the task is empty");
}

static void queue_agent(struct run *run, const char *base)
{
	struct err err = ERR_INIT;

	run_base_record(run, base);
	struct agent_spec spec = {
		.key = "lead",
		.role = settings_str(run->settings, OPT_ROLE),
		.task = run->task,
		.task_of_user = true,
		.base = base,
	};
	struct agent_record *agent = agent_queue(run, &spec, &err);

	if (!agent || run_box_check(run, agent, &err) < 0) {
		run_fail(run, &err);
		return;
	}
	const struct run_work *work = run->driver_arg;
	if (work->told)
		journal_add(run->journal, RECORD_AGENT_WARNING, "agent:s message:s", agent->name,
			    work->told);
	agents_pump(run);
}

static void on_placed(struct run *run, const char *base, const char *told,
		      const struct err *failure)
{
	struct run_work *work = run->driver_arg;

	if (told) {
		AUTO_FREE char *before = take_ptr(work->told);
		work->told = before ? mem_printf("%s; %s", before, told) : mem_strdup(told);
	}
	if (failure)
		run_fail(run, failure);
	else if (!run->stopping)
		queue_agent(run, base);
}

/* The base is known. */
static void go_from(struct run *run, const char *base)
{
	struct run_work *work = run->driver_arg;

	if (work->handoff)
		run_handoff_place(run, work->handoff, base, on_placed);
	else
		queue_agent(run, base);
}

/* The commit at which the document's work stood may never have come to this clone. */
static void on_handoff_head(struct json_object *answer, const struct err *failure, void *arg)
{
	struct run *run = arg;
	struct run_work *work = run->driver_arg;

	if (run->stopping)
		return;
	if (failure) {
		work->told = mem_printf("the handoff's commit %.12s is not in this repository: the "
					"work begins from HEAD",
					work->handoff->head);
		go_from(run, json_str(run->repository, "head", NULL));
	} else {
		go_from(run, json_str(answer, "commit", NULL));
	}
}

/* Where nobody says otherwise the work begins at the document's commit. */
static void choose_base(struct run *run)
{
	const struct run_work *work = run->driver_arg;
	bool chosen =
		settings_flag(run->settings, OPT_DIRTY) || settings_str(run->settings, OPT_BASE);

	if (chosen || !work->handoff || !work->handoff->head) {
		run_base_choose(run, go_from);
		return;
	}
	AUTO_JSON struct json_object *request = json_object_new_object();
	json_set_str(request, "rev", work->handoff->head);
	git_client_call(run->git_client, "resolve", request, on_handoff_head, run);
}

static int run_start(struct run *run, void *arg, struct err *err)
{
	if (run->replay && run->replay->base)
		queue_agent(run, run->replay->base);
	else
		choose_base(run);
	return 0;
}

/* Why a run with this agent did not succeed; NULL if it did. */
static const char *reason_of(const struct agent_record *agent, const char *contradiction)
{
	if (agent->status != OUTCOME_DONE)
		return agent->reason;
	if (agent->collect_failed)
		return agent->kept;
	if (json_flag(agent->report, "by_rule", false))
		return "the agent gave no usable report";
	if (contradiction)
		return contradiction;
	return agent_exit_status(agent) == EXIT_OK ? NULL
						   : "the agent reports that the task is not done";
}

static void run_agent_done(struct run *run, struct agent_record *agent, void *arg)
{
	AUTO_FREE char *contradiction = outcome_contradiction(agent);

	run_finish(run, agent_exit_status(agent), reason_of(agent, contradiction));
}

static const struct run_driver run_driver = {
	.command = "run",
	.branches = true,
	.start = run_start,
	.agent_done = run_agent_done,
};

static void work_release(struct run_work *work)
{
	handoff_free(work->handoff);
	free(work->told);
}

int cmd_run(struct settings *s)
{
	__attribute__((cleanup(work_release))) struct run_work work = {.handoff = NULL};
	AUTO_FREE char *task = NULL;
	struct err err = ERR_INIT;

	if (run_base_check(s, &err) < 0 || run_handoff_read(s, &work.handoff, &err) < 0 ||
	    read_task(s, work.handoff, &task, &err) < 0)
		return command_fail(&err);
	struct run *run = run_new(s, &run_driver, &work);
	run->task = task;
	return run_launch(run);
}

int cmd_run_go_on(struct settings *s, const char *id, struct replay *replay, int lock_fd)
{
	__attribute__((cleanup(work_release))) struct run_work work = {.handoff = NULL};
	struct err err = ERR_INIT;

	/* With a base on record the document is where its agent finds it. */
	if (!replay->base && run_handoff_read(s, &work.handoff, &err) < 0)
		return command_fail(&err);
	struct run *run = run_new(s, &run_driver, &work);
	run_take_up(run, id, replay, lock_fd);
	return run_launch(run);
}
