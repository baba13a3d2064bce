/*
 * collect.c - see collect.h. Runs in the parent; a chain of callbacks from baton-git.
 *
 * Nothing is ever deleted here before its state is reachable from a ref (I7): removal is an
 * operation of baton-git that checks for itself, and it is asked for only after a whole chain
 * without a failure.
 */
#include "orchestrator/collect.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/agent_resume.h"
#include "orchestrator/agent_start.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"
#include "orchestrator/subagents.h"

/* DONE, and the driver hears of it. */
static void collect_over(struct agent_record *agent)
{
	struct run *run = agent->run;

	agent->state = AGENT_DONE;
	run->agents.live--;
	agent_over(agent);
	agents_pump(run);
}

static void collect_done(struct agent_record *agent)
{
	struct run *run = agent->run;

	journal_add(run->journal, RECORD_AGENT_DONE,
		    "agent:s status:s branch:s commit:s kept:s incomplete:b rounds:i fresh:i "
		    "cache_read:i "
		    "cache_write:i output:i cost:d",
		    agent->name, outcome_name(agent->status), agent->branch, agent->merged_tip,
		    agent->kept, (int)(agent->collect_failed || agent->kept_for_room),
		    agent->rounds, agent->usage.fresh, agent->usage.cache_read,
		    agent->usage.cache_write, agent->usage.output,
		    run_cost(run, agent->usage.cost));
	collect_over(agent);
}

/* What stood in the way does not last: there was no room, or somebody killed a git, a worker or the service. */
static bool is_passing(const char *why)
{
	return agent_ended_for_room(why) || strstr(why, "was killed by signal") ||
	       strstr(why, "the worktree service ended");
}

static void collect_keep(struct agent_record *agent, const char *step, const char *why)
{
	if (agent->kept)
		return; /* the first reason says it */
	agent->kept = mem_printf("%s: %s", step, why);
	agent->kept_for_room = is_passing(why);
	journal_add(agent->run->journal, RECORD_WORKTREE_KEPT, "agent:s path:s reason:s",
		    agent->name, agent->worktree, agent->kept);
}

static void git_step(struct agent_record *agent, const char *op, struct json_object *request,
		     git_done_fn fn)
{
	git_client_call(agent->run->git_client, op, request, fn, agent);
}

static void on_removed(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure)
		collect_keep(agent, "remove", failure->message);
	else if (!json_flag(answer, "removed", false))
		collect_keep(agent, "remove", json_str(answer, "kept", "no reason given"));
	collect_done(agent);
}

/* A worktree is removed when its work is home, its agent ended as it should, and nobody wants it.
 */
static void maybe_remove(struct agent_record *agent)
{
	bool untouched = agent->status != OUTCOME_LOST && agent->changes &&
			 json_len(json_arr(agent->changes, "commits")) == 0 &&
			 json_len(json_arr(agent->changes, "files")) == 0;

	if (!agent->kept && settings_flag(agent->run->settings, OPT_KEEP))
		agent->kept = mem_strdup("--keep");
	else if (!agent->kept && !untouched && agent->status != OUTCOME_DONE)
		agent->kept = mem_strdup("the agent did not end with a report");
	if (agent->kept) {
		collect_done(agent);
		return;
	}
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	git_step(agent, "remove", request, on_removed);
}

static void on_final_status(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure) {
		collect_keep(agent, "status", failure->message);
	} else {
		json_object_put(agent->changes);
		agent->changes = json_object_get(answer);
		free(agent->diff_stat);
		agent->diff_stat = mem_strdup(json_str(answer, "stat", ""));
		if (json_str(answer, "in_progress", NULL))
			collect_keep(agent, json_str(answer, "in_progress", ""), "is in progress");
	}
	maybe_remove(agent);
}

static void ask_final_status(struct agent_record *agent)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	json_set_bool(request, "stat", true);
	git_step(agent, "status", request, on_final_status);
}

/* Of a run that goes on it may be on record already: then nothing moved now. */
static void add_imported(struct agent_record *agent, struct json_object *answer)
{
	free(agent->merged_tip);
	agent->merged_tip = mem_strdup(json_str(answer, "new", NULL));
	if (agent->past && agent->past->tip && agent->merged_tip &&
	    strcmp(agent->past->tip, agent->merged_tip) == 0)
		return;
	journal_add(agent->run->journal, RECORD_BRANCH_IMPORTED,
		    "agent:s branch:s old:s new:s commits:j", agent->name, agent->branch,
		    json_str(answer, "old", NULL), agent->merged_tip, json_arr(answer, "commits"));
}

static void on_imported(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure) {
		agent->collect_failed = true;
		collect_keep(agent, "import", failure->message);
	} else {
		add_imported(agent, answer);
	}
	ask_final_status(agent);
}

static void import_branch(struct agent_record *agent)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	git_step(agent, "import", request, on_imported);
}

static void on_rest_saved(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure) {
		agent->collect_failed = true;
		collect_keep(agent, "saving uncommitted work", failure->message);
	} else if (json_str(answer, "kept", NULL)) {
		collect_keep(agent, "checkpoint", json_str(answer, "kept", ""));
	} else if (json_str(answer, "commit", NULL)) {
		journal_add(agent->run->journal, RECORD_WORKTREE_SAVED, "agent:s commit:s",
			    agent->name, json_str(answer, "commit", NULL));
	}
	import_branch(agent);
}

/* First line of the report for the commit that baton makes of uncommitted work. */
static void add_rest_message(const struct agent_record *agent, struct json_object *request)
{
	AUTO_BUF struct buf text = BUF_INIT;
	const char *summary = json_str(agent->report, "summary", NULL);

	if (!summary)
		summary = agent->task;
	size_t n = strcspn(summary, "\n");
	n = text_floor(summary, strlen(summary), MIN(n, (size_t)68));
	buf_addf(&text, "%.*s\n\nUncommitted work of agent %s in run %s, committed by baton.\n",
		 (int)n, summary, agent->name, agent->run->id);
	json_set_str(request, "message", buf_str(&text));
}

/* What it left is saved beside its branch, not on it: it never said that it was whole, and it goes on from there when the
 * run is resumed. */
static bool left_in_the_middle(const struct agent_record *agent)
{
	return agent->status == OUTCOME_LOST ||
	       (agent->status != OUTCOME_DONE && agent_ended_for_room(agent->reason));
}

static void on_status(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure) {
		/* Trap 118: an inspection that fails is never taken for clean. */
		collect_keep(agent, "status", failure->message);
		import_branch(agent);
		return;
	}
	if (!json_flag(answer, "uncommitted", false)) {
		import_branch(agent);
		return;
	}
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	bool aside = json_str(answer, "in_progress", NULL) || left_in_the_middle(agent);
	add_rest_message(agent, request);
	git_step(agent, aside ? "checkpoint" : "commit_rest", request, on_rest_saved);
}

/* The short way, which nearly always goes through: one operation commits what is uncommitted and imports. What
 * stands against it is found out step by step. */
static void on_taken(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (failure) {
		AUTO_JSON struct json_object *request = agent_git_entry(agent);

		log_debug("%s: %s", agent->name, failure->message);
		git_step(agent, "status", request, on_status);
		return;
	}
	if (json_str(answer, "commit", NULL))
		journal_add(agent->run->journal, RECORD_WORKTREE_SAVED, "agent:s commit:s",
			    agent->name, json_str(answer, "commit", NULL));
	add_imported(agent, answer);
	ask_final_status(agent);
}

void collect_start(struct agent_record *agent)
{
	if (agent->create_pending || agent->setup || agent->hook || agent->effects.open > 0)
		return; /* each of them comes back here at its end */
	if (agent->succeed) {
		agent_next(agent);
		return;
	}
	if (subagents_has_live(agent))
		return; /* they may look at its worktree; the last one comes back here */
	if (agent->view || !agent->worktree_made) {
		collect_done(agent);
		return;
	}
	AUTO_JSON struct json_object *request = agent_git_entry(agent);
	if (left_in_the_middle(agent)) {
		git_step(agent, "status", request, on_status);
		return;
	}
	add_rest_message(agent, request);
	git_step(agent, "commit_rest", request, on_taken);
}

/* ---- of a run that goes on ---- */

static void take_changes(struct agent_record *agent, struct json_object *answer)
{
	json_object_put(agent->changes);
	agent->changes = json_object_get(answer);
	agent->diff_stat = mem_strdup(json_str(answer, "stat", ""));
	if (!agent->merged_tip)
		agent->merged_tip = mem_strdup(json_str(answer, "branch_tip", NULL));
}

/* The worktree where it is there, else the branch. */
static void ask_what_is_left(struct agent_record *agent, git_done_fn fn)
{
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	json_set_bool(request, "or_branch", true);
	json_set_bool(request, "stat", true);
	git_step(agent, "status", request, fn);
}

static void on_gone(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;
	AUTO_JSON struct json_object *request = agent_git_entry(agent);

	if (failure) {
		agent->collect_failed = true;
		collect_keep(agent, "status", failure->message);
	} else {
		take_changes(agent, answer);
	}
	if (agent->half_removed)
		git_step(agent, "remove", request, on_removed);
	else
		collect_done(agent);
}

void collect_gone(struct agent_record *agent, bool half)
{
	agent->half_removed = half;
	ask_what_is_left(agent, on_gone);
}

static void on_look(struct json_object *answer, const struct err *failure, void *arg)
{
	struct agent_record *agent = arg;

	if (!failure)
		take_changes(agent, answer);
	collect_over(agent);
}

void collect_look(struct agent_record *agent)
{
	if (agent->view || !agent->worktree_made)
		collect_over(agent);
	else
		ask_what_is_left(agent, on_look);
}
