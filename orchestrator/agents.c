/*
 * agents.c - the life of agents in the parent; see agents.h for states. Frames are in
 * agent_frames.c, the start document in agent_start.c, collection in collect.c.
 */
#include "orchestrator/agents.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "handoff/call.h"
#include "orchestrator/agent_frames.h"
#include "orchestrator/agent_resume.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/box_job.h"
#include "orchestrator/calls.h"
#include "orchestrator/collect.h"
#include "orchestrator/compact_model.h"
#include "orchestrator/hooks.h"
#include "orchestrator/outcome.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"
#include "orchestrator/run_open.h"
#include "orchestrator/spare.h"
#include "orchestrator/subagents.h"

#define TERM_GRACE_MS 3000 /* from TERM to KILL */
#define LOADING_MAX   16   /* processes that have not said hello */

enum exit_status agent_exit_status(const struct agent_record *agent)
{
	const char *class = json_str(agent->result, "class", "");
	bool whole = strcmp(json_str(agent->report, "status", ""), "done") == 0;

	AUTO_FREE char *contradiction = outcome_contradiction(agent);

	if (agent->status == OUTCOME_DONE)
		return whole && !agent->collect_failed && !contradiction ? EXIT_OK : EXIT_FAILED;
	/* A limit without a class is that of rounds (I11); with overflow it is the window. */
	if (strcmp(class, "budget") == 0 || (agent->status == OUTCOME_LIMIT && !*class))
		return EXIT_BUDGET;
	return call_class_unreachable(call_class_parse(class)) ? EXIT_UNREACHABLE : EXIT_FAILED;
}

/* A role may ask for less than the run's limit; for more only if it is not the repository's own and
 * the user set no limit. */
static int64_t choose_max_rounds(const struct run *run, const struct role *role, int64_t wanted)
{
	int64_t limit = settings_i64(run->settings, OPT_MAX_ROUNDS);
	int64_t rounds = wanted ? wanted : role->max_rounds;
	bool bound = settings_is_set(run->settings, OPT_MAX_ROUNDS) ||
		     (run->toplevel && file_lies_in(run->toplevel, role->path));

	if (!rounds)
		return limit;
	return bound ? MIN(rounds, limit) : rounds;
}

/* What it spent in an earlier life is in the run's books already (run_take_up), and in its stage's. */
static void agent_open_budget(struct agent_record *agent)
{
	struct run *run = agent->run;
	struct agent_record *spawner = agent->family.spawner;
	struct run_budget *known = agent->stage ? stage_budget(run, agent->stage) : &run->budget;
	double max_cost = agent->family.max_cost;

	run_budget_init(&agent->budget, max_cost > 0 ? max_cost : -1, agent->family.max_tokens);
	agent->budget.above = spawner ? &spawner->budget : known;
	run_budget_add(&agent->budget, known, &agent->usage);
}

struct agent_record *agent_queue(struct run *run, const struct agent_spec *spec, struct err *err)
{
	struct agent_pool *pool = &run->agents;
	struct role *role;
	struct model *own_model = NULL, *compact_model = NULL;

	if (role_load(spec->role, spec->foreign_role ? NULL : run->toplevel, &role, err) < 0)
		return NULL;
	if ((role->model && run_role_model(run, role->model, &own_model, err) < 0) ||
	    compact_model_choose(run, role, own_model ? own_model : run->model, &compact_model,
				 err) < 0) {
		model_free(own_model);
		role_free(role);
		return NULL;
	}
	struct agent_record *agent = mem_alloc(sizeof(*agent));
	agent->run = run;
	agent->key = mem_strdup(spec->key);
	agent_recall(agent);
	agent->role = role;
	agent->own_model = own_model;
	agent->model = own_model ? own_model : run->model;
	agent->compact_model = compact_model;
	snprintf(agent->name, sizeof(agent->name), "a%d", agent->number);
	agent->task = mem_strdup(spec->task);
	agent->task_of_user = spec->task_of_user;
	agent->brief = mem_strdup(spec->brief);
	agent->view = mem_strdup(spec->view);
	agent->base = mem_strdup(spec->base);
	agent->output_schema =
		json_object_get(spec->output_schema ? spec->output_schema : role->output_schema);
	agent->max_rounds = choose_max_rounds(run, role, spec->max_rounds);
	agent->arg = spec->arg;
	agent->family = spec->family;
	agent->family.foreign_role = spec->foreign_role;
	agent->stage =
		mem_strdup(agent->family.spawner ? agent->family.spawner->stage : spec->stage);
	agent_open_budget(agent);
	MEM_GROW(pool->list, pool->cap, pool->count + 1);
	pool->list[pool->count++] = agent;
	compact_model_warn(agent);
	for (char **note = role->notes; note && *note; note++)
		journal_add(run->journal, RECORD_AGENT_WARNING, "agent:s message:s", agent->name,
			    *note);
	return agent;
}

/* ---- starting ---- */

static void on_agent_closed(struct child *child)
{
	struct agent_record *agent = child->arg;

	calls_drop_agent(agent);
	/* Without a channel it can do no more work: if it does not end by itself, it is ended. */
	child_stop(child, TERM_GRACE_MS);
}

/* A status for an agent that ended without saying one. */
static void agent_set_lost(struct agent_record *agent, int wait_status, const char *failure)
{
	char text[64];

	if (agent->status || agent->succeed)
		return;
	child_describe_exit(wait_status, text, sizeof(text));
	/* Its report is on record and acknowledged: no work is lost with a process that had only to say goodbye. */
	if (agent->report && !json_flag(agent->report, "by_rule", false) && !agent->stop_step) {
		agent->status = OUTCOME_DONE;
		journal_add(agent->run->journal, RECORD_AGENT_WARNING, "agent:s message:s",
			    agent->name, "it died after its report was acknowledged");
		return;
	}
	agent->status = agent->stop_step ? OUTCOME_STOPPED : OUTCOME_LOST;
	if (!agent->reason || !agent->stop_step) {
		free(agent->reason);
		agent->reason = failure ? mem_printf("%s (%s)", failure, text) : mem_strdup(text);
	}
}

/* An agent ends its own descendants before its result, and is believed for the second until the next
 * tick: a sweep reads the whole process table, which hundreds of agents in a row would feel. Of one
 * that died otherwise something may still write into the worktree that is now collected. */
static void sweep_after(struct agent_record *agent, int wait_status)
{
	struct run *run = agent->run;
	bool clean = wait_status == 0 && agent->result;

	if (clean || !children_sweep(run->children))
		run->sweep_wanted = true;
}

void agent_journal_ended(const struct agent_record *agent)
{
	journal_add(agent->run->journal, RECORD_AGENT_ENDED,
		    "agent:s generation:i status:s reason:s class:s rounds:i tool_calls:i "
		    "failed_calls:i memory:j",
		    agent->name, agent->generation, outcome_name(agent->status), agent->reason,
		    json_str(agent->result, "class", NULL), agent->rounds, agent->tool_calls,
		    agent->failed_calls, json_obj(agent->result, "memory"));
}

static void on_agent_exit(struct child *child, int wait_status, const char *failure)
{
	struct agent_record *agent = child->arg;
	struct run *run = agent->run;

	agent->child = NULL;
	agent->worked_ms += clock_mono_ms() - agent->began_ms;
	if (agent->ev_deadline)
		event_del(agent->ev_deadline);
	if (run->stopping)
		agent->succeed = false; /* `baton resume` starts the successor */
	agent_set_lost(agent, wait_status, failure);
	sweep_after(agent, wait_status);
	if (!agent->succeed)
		agent_journal_ended(agent); /* else agent.reset stands for it */
	agent->state = AGENT_COLLECTING;
	if (!agent->succeed)
		subagents_stop_children(agent);
	if (agent->setup)
		box_job_stop(agent->setup); /* collecting waits for its end */
	hooks_agent_gone(agent);
	collect_start(agent);
}

static const struct child_handler agent_handler = {
	.on_frame = agent_on_frame,
	.on_closed = on_agent_closed,
	.on_exit = on_agent_exit,
};

/* Where its things are, whatever the generation. */
static void agent_place(struct agent_record *agent)
{
	struct run *run = agent->run;

	agent->dir = run_path(run, "agents/%s", agent->name);
	agent->worktree = agent->view ? mem_strdup(agent->view)
				      : mem_printf("%s/%s", run->worktrees_dir, agent->name);
	if (agent->view)
		return;
	agent->git_dir = mem_printf("%s/git", agent->dir);
	agent->branch = mem_printf("%s/%s/%s", settings_str(run->settings, OPT_BRANCH_PREFIX),
				   run->id, agent->name);
}

static int agent_make_dirs(struct agent_record *agent, struct err *err)
{
	static const char *const below[] = {"results", "scratch", "../cache"};

	free(agent->gen_dir);
	agent->gen_dir = mem_printf("%s/%lld", agent->dir, (long long)agent->generation);
	/* The agent syncs the way to its transcript, with the first answer's records: nobody waits
	 * for it before the first request. */
	struct file_syncs above = {0};
	int rc = file_mkdirs_later(agent->gen_dir, 0700, &above, err);
	file_syncs_release(&above);
	if (rc < 0)
		return -1;
	/* Not synced one by one: the transcript's creation syncs their folder before anything is in
	 * them. */
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		AUTO_FREE char *path = file_join(agent->gen_dir, below[i]);
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_sys(err, "cannot make '%s'", path);
	}
	return 0;
}

/* The first agent finds a process that is loaded already. */
static int agent_get_process(struct agent_record *agent, struct err *err)
{
	struct run *run = agent->run;

	agent->child = spare_take(run, agent->name, &agent_handler, agent, &agent->said_hello);
	if (agent->child)
		return 0;
	return spare_spawn(run, agent->name, &agent_handler, agent, &agent->child, err);
}

/* An agent that could not even be started: its work so far is brought home, as its own recorded failure. */
static void agent_start_failed(struct agent_record *agent, const struct err *err)
{
	agent->status = OUTCOME_FAILED;
	free(agent->reason);
	agent->reason = mem_strdup(err->message);
	agent_journal_ended(agent);
	agent->state = AGENT_COLLECTING;
	collect_start(agent);
}

static void agent_open_worktree(struct agent_record *agent)
{
	if (agent->view)
		return;
	if (agent->worktree_made)
		agent->ready = READY_OK; /* of the generation before */
	else if (agent->past && agent->past->spawned)
		agent_reopen_worktree(agent);
	else
		agent_make_worktree(agent);
}

void agent_launch(struct agent_record *agent)
{
	struct err err = ERR_INIT;

	if (agent_make_dirs(agent, &err) < 0 || agent_get_process(agent, &err) < 0) {
		agent_start_failed(agent, &err);
		return;
	}
	journal_add(agent->run->journal, RECORD_AGENT_SPAWNED,
		    "agent:s key:s role:s stage:s generation:i pid:i branch:s worktree:s base:s "
		    "task:s",
		    agent->name, agent->key, agent->role->name, agent->stage, agent->generation,
		    (int64_t)agent->child->pid, agent->branch, agent->worktree, agent->base,
		    agent->task);
	agent->began_ms = clock_mono_ms();
	if (!agent->said_hello)
		agent_arm(agent, AGENT_HELLO_MS);
	agent_open_worktree(agent);
	agent_start_if_ready(agent);
}

static void agent_start(struct agent_record *agent)
{
	agent->state = AGENT_PREPARING;
	agent->last_progress_ms = clock_mono_ms();
	agent->run->agents.live++;
	agent_place(agent);
	subagents_restore(agent);
	if (agent->past)
		agent_resume(agent);
	else
		agent_launch(agent);
}

/* What was said of the process that is gone says nothing of the next one. */
void agent_next(struct agent_record *agent)
{
	agent->succeed = false;
	agent->generation++;
	agent->state = AGENT_PREPARING;
	agent->last_progress_ms = clock_mono_ms();
	agent->said_hello = agent->sent_start = agent->resume = agent->asked_report = false;
	agent->stop_step = 0;
	agent->activity = ACTIVITY_NONE;
	agent->rounds_before = agent->rounds;
	agent->status = OUTCOME_NONE;
	mem_free_ptr(&agent->reason);
	json_object_put(agent->report);
	json_object_put(agent->result);
	agent->report = agent->result = NULL;
	agent_launch(agent);
}

/* Processes that are being loaded share the processors: of hundreds at once the last would be heard of after its
 * deadline, though nothing is wrong with it. */
static size_t loading(const struct agent_pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < pool->count; i++)
		n += pool->list[i]->child && !pool->list[i]->said_hello;
	return n;
}

/* One that only waits for those that it started leaves its place to them: else a run with one place would wait
 * for itself. */
static bool has_place(const struct agent_pool *pool)
{
	size_t waiting = 0;

	if (pool->live < pool->limit)
		return true; /* nearly always */
	for (size_t i = 0; i < pool->count; i++)
		waiting += pool->list[i]->child && subagents_waits(pool->list[i]);
	return pool->live < pool->limit + waiting;
}

void agent_over(struct agent_record *agent)
{
	if (agent->family.spawner)
		subagents_child_over(agent);
	else
		agent->run->driver->agent_done(agent->run, agent, agent->run->driver_arg);
}

void agents_pump(struct run *run)
{
	struct agent_pool *pool = &run->agents;
	size_t n = loading(pool);

	if (pool->pumping || run->stopping || run_is_paused(run))
		return;
	pool->pumping = true; /* a start that fails at once comes back here */
	for (size_t i = 0; i < pool->count && n < LOADING_MAX; i++) {
		struct agent_record *agent = pool->list[i];

		if (agent->state != AGENT_QUEUED)
			continue;
		if (subagents_drop_orphan(agent) || agent_is_paused(agent))
			continue;
		if (!has_place(pool))
			break;
		agent_start(agent);
		n += agent->child && !agent->said_hello;
	}
	pool->pumping = false;
}

static void agent_release(struct agent_record *agent)
{
	char *strings[] = {agent->key,	     agent->task,	   agent->brief,
			   agent->view,	     agent->base,	   agent->worktree,
			   agent->git_dir,   agent->branch,	   agent->dir,
			   agent->gen_dir,   agent->ready_message, agent->reason,
			   agent->diff_stat, agent->merged_tip,	   agent->kept,
			   agent->no_reset,  agent->stage};
	struct json_object *trees[] = {agent->output_schema, agent->report,  agent->seen,
				       agent->result,	     agent->changes, agent->notes};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
		json_object_put(trees[i]);
	if (agent->ev_deadline)
		event_free(agent->ev_deadline);
	effects_release(&agent->effects);
	resets_release(&agent->resets);
	hooks_free(agent->hook);
	role_free(agent->role);
	model_free(agent->own_model);
	model_free(agent->compact_model);
	free(agent);
}

void agents_release(struct agent_pool *pool)
{
	for (size_t i = 0; i < pool->count; i++)
		agent_release(pool->list[i]);
	free(pool->list);
	*pool = (struct agent_pool){0};
}
