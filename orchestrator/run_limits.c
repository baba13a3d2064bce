/*
 * run_limits.c - see run_limits.h. Runs in the parent.
 */
#include "orchestrator/run_limits.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "orchestrator/calls.h"
#include "orchestrator/pause.h"
#include "orchestrator/run.h"
#include "orchestrator/subagents.h"

static int64_t tokens_of(const struct budget_usage *u)
{
	return u->fresh + u->cache_read + u->cache_write + u->output;
}

/* For people: what is spent of which limit. */
static char *describe(const struct run_budget *b)
{
	struct buf text = BUF_INIT;

	if (b->name)
		buf_addf(&text, "the budget of stage '%s' does not cover another call: ", b->name);
	else
		buf_adds(&text, "the budget does not cover another call: ");
	if (b->max_cost >= 0)
		buf_addf(&text, "%.4f USD of %s %.4g are spent", b->used.cost,
			 b->name ? "max_cost" : "--max-cost", b->max_cost);
	if (b->max_tokens)
		buf_addf(&text, "%s%lld tokens of %s %lld are used", b->max_cost >= 0 ? ", " : "",
			 (long long)tokens_of(&b->used), b->name ? "max_tokens" : "--max-tokens",
			 (long long)b->max_tokens);
	return buf_take(&text);
}

void run_limits_reached(struct run *run, const struct agent_record *agent,
			const struct call_entry *entry, const struct run_budget *budget)
{
	AUTO_FREE char *why = describe(budget);

	if (!run_pause(run, PAUSE_BUDGET, why))
		return;
	journal_add(run->journal, RECORD_BUDGET_REACHED,
		    "agent:s estimate:i max_tokens:i affordable:i kind:s", agent->name,
		    entry->estimate, entry->max_tokens, (int64_t)0, "run");
}

/* Does something of it go on without a further call? Its end and the bringing home of its work count too. */
static bool works(const struct agent_record *agent)
{
	if (agent->state == AGENT_QUEUED || agent->state == AGENT_DONE)
		return false;
	return agent->state != AGENT_WORKING || agent->hook ||
	       !(calls_wait(agent) || subagents_waits(agent));
}

/* How to go on, as a command line: "baton resume RUN --max-cost 0.12". Caller frees. */
static char *way_on(const struct run *run)
{
	const struct run_budget *b = &run->budget;
	struct buf line = BUF_INIT;

	buf_addf(&line, "baton resume %s", run->id);
	if (b->max_cost >= 0)
		buf_addf(&line, " --max-cost %.4g", 2 * b->max_cost);
	if (b->max_tokens)
		buf_addf(&line, " --max-tokens %lld", (long long)(2 * b->max_tokens));
	return buf_take(&line);
}

void run_limits_look(struct run *run)
{
	const struct run_budget *short_one = NULL;

	if (!(run->pause.why & PAUSE_BUDGET) || run->pause.why & ~(unsigned)PAUSE_BUDGET ||
	    run->stopping)
		return;
	for (size_t i = 0; i < run->agents.count; i++) {
		if (works(run->agents.list[i]))
			return;
		if (!short_one)
			short_one = calls_short_of(run->agents.list[i]);
	}
	if (!short_one) { /* what could not be paid has been paid since, or is wanted no more */
		run_unpause(run, PAUSE_BUDGET);
		return;
	}
	AUTO_FREE char *why = describe(short_one);
	free(run->way_on);
	run->way_on = short_one->name ? NULL : way_on(run);
	run_stop(run, EXIT_BUDGET, why);
}

int run_limits_raise(struct run *run, struct json_object *request, struct err *err)
{
	struct run_budget *b = &run->budget;
	bool has_cost = json_has(request, "max_cost"), has_tokens = json_has(request, "max_tokens");
	double cost = json_double(request, "max_cost", 0);
	int64_t tokens = json_i64(request, "max_tokens", 0);

	if (!has_cost && !has_tokens)
		return 0;
	if (has_cost && !run->model->price.known)
		return err_set(err, ERR_USAGE, "the prices of %s are not known: use --max-tokens",
			       run->model_name);
	if (has_cost && !(isfinite(cost) && cost > b->used.cost))
		return err_set(err, ERR_USAGE, "the run has cost %.4f USD so far: give it more",
			       b->used.cost);
	if (has_tokens && tokens <= tokens_of(&b->used))
		return err_set(err, ERR_USAGE, "the run has used %lld tokens so far: give it more",
			       (long long)tokens_of(&b->used));
	journal_add(run->journal, RECORD_RUN_LIMITS, "max_cost:d max_tokens:i",
		    has_cost ? cost : b->max_cost, has_tokens ? tokens : b->max_tokens);
	if (has_cost)
		b->max_cost = cost;
	if (has_tokens)
		b->max_tokens = tokens;
	if (!run_unpause(run, PAUSE_BUDGET))
		calls_retry_held(run);
	return 1;
}
