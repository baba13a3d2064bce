/*
 * calls.c - see calls.h. Runs in the parent's loop; keeps no bodies.
 *
 * An agent's struct agent_call lives from its request to its settlement: that may be after the
 * gateway's `end`, since the usage comes from the agent, which has to read the answer's last bytes
 * first.
 */
#include "orchestrator/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/pause.h"
#include "orchestrator/run.h"
#include "orchestrator/run_limits.h"

#define BYTES_PER_TOKEN_MAX 8		  /* X8: no tokenizer does better on text */
#define COUNT_MAX	    1000000000000 /* tokens or bytes of one call; more is a broken agent */

static struct agent_call *call_by_req(struct agent_record *agent, int64_t req)
{
	for (size_t i = 0; i < agent->n_calls; i++) {
		if (agent->calls[i].req == req)
			return &agent->calls[i];
	}
	return NULL;
}

static void call_forget(struct agent_record *agent, struct agent_call *call)
{
	*call = agent->calls[--agent->n_calls];
}

/* For the records: NULL leaves it out, since nearly all calls are of the agent's own model. */
static const char *other_model(const struct agent_record *agent, const struct agent_call *call)
{
	return call->model == agent->model ? NULL : call->model->name;
}

static void journal_settled(struct agent_record *agent, const struct agent_call *call,
			    const struct budget_usage *before, bool estimated)
{
	const struct budget_usage *u = &agent->usage;

	journal_add(agent->run->journal, RECORD_CALL_SETTLED,
		    "agent:s req:i fresh:i cache_read:i cache_write:i output:i cost:d estimated:b "
		    "total_cost:d model:s",
		    agent->name, call->req, u->fresh - before->fresh,
		    u->cache_read - before->cache_read, u->cache_write - before->cache_write,
		    u->output - before->output, run_cost(agent->run, u->cost - before->cost),
		    (int)estimated, run_cost(agent->run, agent->run->budget.used.cost),
		    other_model(agent, call));
}

/* Books an attempt that ended without usage: nothing if no byte came, else what its bytes suggest.
 */
static void settle_by_estimate(struct agent_record *agent, struct agent_call *call)
{
	struct run *run = agent->run;
	struct budget_usage before = agent->usage;

	if (call->bytes_down == 0) {
		if (call->reservation.open)
			journal_add(run->journal, RECORD_CALL_RELEASED, "agent:s req:i",
				    agent->name, call->req);
		run_budget_release(&agent->budget, &call->reservation);
		return;
	}
	int64_t output = call->bytes_down / STREAM_BYTES_PER_TOKEN + 1;
	run_budget_settle(&agent->budget, &call->reservation, call->model, call->estimate, 0, 0, 0,
			  output, true, &agent->usage);
	journal_settled(agent, call, &before, true);
}

struct release {
	struct agent_record *agent;
	int64_t req;
};

static void on_reserved(void *arg)
{
	struct release *release = arg;
	struct agent_record *agent = release->agent;
	struct call_entry *entry = NULL;

	if (agent->child && agent->child->channel)
		entry = call_relay_find(agent->run->relay, agent->child->channel, release->req);
	if (entry && entry->held)
		call_relay_release(agent->run->relay, entry);
	free(release);
}

/* I11: with a limit the reservation is on disk before the money can be spent. */
static void release_when_durable(struct agent_record *agent, struct call_entry *entry)
{
	struct run *run = agent->run;

	if (!run_budget_is_limited(&agent->budget)) {
		call_relay_release(run->relay, entry);
		return;
	}
	struct release *release = mem_alloc(sizeof(*release));
	release->agent = agent;
	release->req = entry->req;
	journal_defer(run->journal, on_reserved, release);
}

/* Whose budget is this obstacle? NULL: the run's, or a stage's. */
static const struct agent_record *budget_owner(const struct agent_record *agent,
					       const struct run_budget *obstacle)
{
	while (agent && obstacle != &agent->budget)
		agent = agent->family.spawner;
	return agent;
}

/* The agent asks for less (X8), or ends at its own limit and the one that started it hears of that (trap 156). */
static void call_refuse(struct agent_record *agent, struct agent_call *call,
			struct call_entry *entry, const char *owner, int64_t affordable)
{
	struct run *run = agent->run;
	char text[200];

	snprintf(text, sizeof(text),
		 "the budget of %s does not cover this call (%lld input tokens, room for %lld "
		 "output tokens is left)",
		 owner, (long long)entry->estimate, (long long)affordable);
	journal_add(run->journal, RECORD_BUDGET_REACHED,
		    "agent:s estimate:i max_tokens:i affordable:i", agent->name, entry->estimate,
		    entry->max_tokens, affordable);
	call_relay_refuse(run->relay, entry, CALL_BUDGET, affordable, text);
	call_forget(agent, call);
}

/* Told once: a call may be tried again at each settlement of others. */
static void call_wait(struct agent_call *call, struct call_entry *entry, const char *reason)
{
	if (call->waits_for == reason)
		return;
	call->waits_for = reason;
	channel_sendf(entry->from, FRAME_WAITING, NULL, 0, "\"req\":%lld,\"reason\":\"%s\"",
		      (long long)entry->req, reason);
}

static void call_reserved(struct agent_record *agent, struct agent_call *call,
			  struct call_entry *entry)
{
	struct run *run = agent->run;

	call->waits_for = NULL;
	call->short_of = NULL;
	journal_add(run->journal, RECORD_CALL_RESERVED, "agent:s req:i tokens:i cost:d model:s",
		    agent->name, entry->req, call->reservation.tokens,
		    run_cost(run, call->reservation.cost), other_model(agent, call));
	if (run_budget_is_limited(&agent->budget))
		journal_sync(run->journal);
	release_when_durable(agent, entry);
}

enum admission { ADMITTED, HELD, HELD_FOR_SETTLEMENTS };

/* Reserves and releases, waits, or refuses (then it is gone, as ADMITTED). */
static enum admission call_admit(struct agent_record *agent, struct call_entry *entry)
{
	struct agent_call *call = call_by_req(agent, entry->req);
	int64_t affordable = 0;

	if (agent_is_paused(agent)) {
		call_wait(call, entry, "pause");
		return HELD;
	}
	enum budget_answer answer =
		run_budget_reserve(&agent->budget, call->model, entry->estimate, entry->max_tokens,
				   &call->reservation, &affordable);
	if (answer == BUDGET_OK) {
		call_reserved(agent, call, entry);
		return ADMITTED;
	}
	const struct run_budget *obstacle = run_budget_obstacle(&agent->budget, call->model,
								entry->estimate, entry->max_tokens);
	const struct agent_record *owner = budget_owner(agent, obstacle);
	/* X8: what nobody waits for takes nothing from what somebody waits for. */
	if (answer == BUDGET_WAIT && !call->background) {
		call_wait(call, entry, "budget");
		return owner ? HELD : HELD_FOR_SETTLEMENTS;
	}
	if (call->background || owner || affordable > 0) {
		call_refuse(agent, call, entry, owner ? owner->name : "the run",
			    call->background ? 0 : affordable);
		return ADMITTED;
	}
	call_wait(call, entry, "budget");
	call->short_of = obstacle;
	run_limits_reached(agent->run, agent, entry, obstacle);
	return HELD;
}

bool calls_wait(const struct agent_record *agent)
{
	for (size_t i = 0; i < agent->n_calls; i++) {
		if (agent->calls[i].waits_for)
			return true;
	}
	return false;
}

/* Counts come from the agent, whose model read hostile text: a negative one would give budget back.
 */
static int check_counts(const struct frame *frame, const char *const *names, size_t n,
			struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int64_t value = json_i64(frame->header, names[i], 0);
		if (value < 0 || value > COUNT_MAX)
			return err_set(err, ERR_INVALID,
				       "field '%s' of a '%s' frame is out of range", names[i],
				       frame_name(frame->type));
	}
	return 0;
}

/* The value of a header: what the model clients send are names and dates, joined by commas. */
static bool is_beta(const char *value)
{
	return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-_.,")] == '\0';
}

/* By whose prices it is booked. NULL: a model that this agent was not given. */
static const struct model *model_of(const struct agent_record *agent, const struct frame *frame)
{
	const struct model *models[] = {agent->model, agent->compact_model};

	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i] &&
		    strcmp(json_str(frame->header, "model", ""), models[i]->name) == 0 &&
		    strcmp(json_str(frame->header, "provider", ""), models[i]->provider) == 0)
			return models[i];
	return NULL;
}

static int on_request(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	static const char *const counts[] = {"estimate", "max_tokens", "length"};
	struct run *run = agent->run;

	if (check_counts(frame, counts, ARRAY_SIZE(counts), err) < 0)
		return -1;
	const struct model *model = model_of(agent, frame);
	if (!model)
		return err_set(err, ERR_INVALID, "request for another model than its own");
	const char *api = model->api == MODEL_API_ANTHROPIC ? "anthropic" : "openai";
	if (strcmp(json_str(frame->header, "api", ""), api) != 0 ||
	    !is_beta(json_str(frame->header, "beta", "")))
		return err_set(err, ERR_INVALID, "request for another service than its own");
	if (agent->n_calls == ARRAY_SIZE(agent->calls))
		return err_set(err, ERR_INVALID, "agent opened more than %zu calls at once",
			       ARRAY_SIZE(agent->calls));
	struct call_entry *entry =
		call_relay_open(run->relay, agent->child->channel, agent, frame, agent->name, err);
	if (!entry)
		return -1;
	if (call_by_req(agent, entry->req))
		return err_set(err, ERR_INVALID, "request number %lld is taken",
			       (long long)entry->req);
	/* An estimator that is far off must not spend what is not there. */
	entry->estimate =
		MAX(entry->estimate, json_i64(frame->header, "length", 0) / BYTES_PER_TOKEN_MAX);
	agent->calls[agent->n_calls++] =
		(struct agent_call){.req = entry->req,
				    .estimate = entry->estimate,
				    .background = strcmp(json_str(frame->header, "class", ""),
							 call_purpose_name(CALL_BACKGROUND)) == 0,
				    .model = model};
	call_admit(agent, entry);
	return 0;
}

static int on_usage(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	static const char *const counts[] = {"input", "cache_read", "cache_write", "cache_write_1h",
					     "output"};
	struct json_object *h = frame->header;

	if (check_counts(frame, counts, ARRAY_SIZE(counts), err) < 0)
		return -1;
	struct agent_call *call = call_by_req(agent, json_i64(h, "req", 0));
	struct budget_usage before = agent->usage;
	struct run *run = agent->run;

	if (!call)
		return 0; /* settled by estimate already */
	int64_t output = json_i64(h, "output", 0);
	run_budget_settle(&agent->budget, &call->reservation, call->model, json_i64(h, "input", 0),
			  json_i64(h, "cache_read", 0), json_i64(h, "cache_write", 0),
			  json_i64(h, "cache_write_1h", 0), output,
			  json_flag(h, "estimated", false), &agent->usage);
	journal_settled(agent, call, &before, json_flag(h, "estimated", false));
	call_forget(agent, call);
	calls_retry_held(run);
	return 0;
}

/* The relay answers a cancel itself and closes the entry: settle what the attempt cost before that.
 */
static void settle_cancelled(struct agent_record *agent, int64_t req)
{
	struct call_entry *entry = call_relay_find(agent->run->relay, agent->child->channel, req);
	struct agent_call *call = call_by_req(agent, req);

	if (!entry || !call)
		return;
	call->bytes_down = entry->bytes_down;
	settle_by_estimate(agent, call);
	call_forget(agent, call);
}

int calls_from_agent(struct agent_record *agent, const struct frame *frame, struct err *err)
{
	switch (frame->type) {
	case FRAME_REQUEST: return on_request(agent, frame, err);
	case FRAME_USAGE: return on_usage(agent, frame, err);
	case FRAME_CANCEL:
		settle_cancelled(agent, json_i64(frame->header, "req", 0));
		return call_relay_from_agent(agent->run->relay, agent->child->channel, frame, err);
	default: return call_relay_from_agent(agent->run->relay, agent->child->channel, frame, err);
	}
}

/* The gateway ended a call: keep it until its usage comes, or settle it now. */
static void call_over(struct agent_record *agent, struct call_entry *entry,
		      const struct frame *frame)
{
	struct agent_call *call = call_by_req(agent, entry->req);

	if (!call)
		return;
	call->bytes_down = entry->bytes_down;
	call->over = true;
	if (strcmp(json_str(frame->header, "outcome", ""), "ok") == 0)
		return;
	settle_by_estimate(agent, call);
	call_forget(agent, call);
}

/* An attempt is void: what it cost is booked, and the next one is reserved anew. */
static void call_again(struct agent_record *agent, struct call_entry *entry)
{
	struct agent_call *call = call_by_req(agent, entry->req);
	struct run *run = agent->run;
	int64_t affordable;

	/* Nothing came of it, so nothing was spent: the reservation holds for the next attempt. */
	if (!call || entry->bytes_down == 0)
		return;
	call->bytes_down = entry->bytes_down;
	settle_by_estimate(agent, call);
	if (!call->reservation.open &&
	    run_budget_reserve(&agent->budget, call->model, entry->estimate, entry->max_tokens,
			       &call->reservation, &affordable) != BUDGET_OK) {
		call_forget(agent, call);
		call_relay_refuse(run->relay, entry, CALL_BUDGET, 0,
				  "the budget does not cover another attempt of this call");
	}
}

int calls_from_gateway(struct run *run, const struct frame *frame, struct err *err)
{
	struct call_entry *entry = NULL;
	bool over = false;

	if (call_relay_from_gateway(run->relay, frame, &entry, &over, err) < 0)
		return -1;
	if (!entry)
		return 0;
	struct agent_record *agent = entry->peer;
	agent->last_progress_ms = clock_mono_ms();
	if (over) {
		call_over(agent, entry, frame);
		call_relay_close(run->relay, entry);
		calls_retry_held(run);
	} else if (frame->type == FRAME_AGAIN) {
		call_again(agent, entry);
	}
	return 0;
}

void calls_note(struct run *run, const struct frame *frame)
{
	AUTO_JSON struct json_object *body = NULL;
	const char *name = json_str(frame->header, "name", "");

	if (!run->journal || json_parse(frame->body, frame->len, &body, NULL) < 0)
		return;
	AUTO_FREE char *word = mem_printf("gateway.%s", name);
	enum record_type type = record_find(word);
	if (type != RECORD_TYPES)
		journal_add(run->journal, type, "data:j", body);
}

static void on_lost_call(struct call_entry *entry, void *arg)
{
	struct agent_record *agent = entry->peer;
	struct agent_call *call = call_by_req(agent, entry->req);

	if (!call)
		return;
	call->bytes_down = entry->bytes_down;
	settle_by_estimate(agent, call);
	call_forget(agent, call);
}

/* The attempt that died with the gateway is booked, and the next one is reserved anew. */
static void settle_dead_attempt(struct call_entry *entry, void *arg)
{
	struct agent_record *agent = entry->peer;
	struct agent_call *call = call_by_req(agent, entry->req);
	int64_t affordable;

	if (!call || call->over || !call->reservation.open || entry->bytes_down == 0)
		return;
	call->bytes_down = entry->bytes_down;
	settle_by_estimate(agent, call);
	/* If the budget does not cover it, the attempt is made all the same: at most one a call. */
	run_budget_reserve(&agent->budget, call->model, entry->estimate, entry->max_tokens,
			   &call->reservation, &affordable);
}

void calls_gateway_died(struct run *run)
{
	call_relay_each(run->relay, settle_dead_attempt, run);
	call_relay_gateway_died(run->relay, on_lost_call, run);
}

void calls_drop_agent(struct agent_record *agent)
{
	if (agent->child && agent->child->channel)
		call_relay_drop_agent(agent->run->relay, agent->child->channel, on_lost_call,
				      agent);
	while (agent->n_calls > 0) {
		settle_by_estimate(agent, &agent->calls[0]);
		call_forget(agent, &agent->calls[0]);
	}
	calls_retry_held(agent->run);
}

const struct run_budget *calls_short_of(const struct agent_record *agent)
{
	for (size_t i = 0; i < agent->n_calls; i++) {
		if (agent->calls[i].short_of)
			return agent->calls[i].short_of;
	}
	return NULL;
}

/* False: what stands behind it waits for the same settlements. */
static bool retry_agent(struct agent_record *agent)
{
	struct run *run = agent->run;

	for (size_t k = 0; agent->child && agent->child->channel && k < agent->n_calls; k++) {
		struct agent_call *call = &agent->calls[k];
		if (call->reservation.open || call->over)
			continue;
		struct call_entry *entry =
			call_relay_find(run->relay, agent->child->channel, call->req);
		size_t before = agent->n_calls;
		if (entry && entry->held && call_admit(agent, entry) == HELD_FOR_SETTLEMENTS)
			return false;
		k -= agent->n_calls < before; /* refused: another one has its place */
	}
	return true;
}

void calls_retry_held(struct run *run)
{
	for (size_t i = 0; i < run->agents.count; i++) {
		if (!retry_agent(run->agents.list[i]))
			return;
	}
}
