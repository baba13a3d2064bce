/*
 * replay_agents.c - see replay.h and replay_fold.h: what a journal says of agents, what they asked for, and their calls.
 */
#include "orchestrator/replay_fold.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define BY_RULE "by-rule" /* key of a report that no model gave (docs/journal.md) */

void replay_set(char **to, const char *text)
{
	if (!text)
		return;
	free(*to);
	*to = mem_strdup(text);
}

void replay_keep(struct json_object **to, struct json_object *value)
{
	json_object_put(*to);
	*to = json_object_get(value);
}

static struct replay_agent *agent_named(struct replay *out, const char *name)
{
	for (size_t i = 0; i < out->n_agents; i++) {
		if (strcmp(out->agents[i]->name, name) == 0)
			return out->agents[i];
	}
	MEM_GROW(out->agents, out->cap_agents, out->n_agents + 1);
	struct replay_agent *a = mem_alloc(sizeof(*a));
	out->agents[out->n_agents++] = a;
	a->name = mem_strdup(name);
	a->generation = 1;
	if (sscanf(name, "a%d", &a->number) != 1)
		a->number = 0;
	return a;
}

static struct replay_agent *agent_of(struct replay *out, struct json_object *r)
{
	return agent_named(out, json_str(r, "agent", ""));
}

/* What its process had asked for and what nobody settled: the money may be gone. */
static void book_open_calls(struct replay *out, struct replay_agent *a)
{
	for (size_t i = 0; i < a->n_calls; i++) {
		struct budget_usage *books[] = {&a->usage, &out->used};
		for (size_t k = 0; k < ARRAY_SIZE(books); k++) {
			books[k]->fresh += a->calls[i].tokens;
			books[k]->cost += a->calls[i].cost;
			books[k]->calls++;
			books[k]->estimated_calls++;
		}
		out->unsettled++;
	}
	a->n_calls = 0;
}

static void effect_free(struct replay_effect *e)
{
	free(e->call);
	free(e->body);
}

/* A report by rule said how the process ended that is gone; its successor may end otherwise. */
static void forget_end(struct replay_agent *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_effects; i++) {
		if (strcmp(a->effects[i].call, BY_RULE) == 0)
			effect_free(&a->effects[i]);
		else
			a->effects[n++] = a->effects[i];
	}
	a->n_effects = n;
	replay_keep(&a->report, NULL);
	mem_free_ptr(&a->report_call);
	a->status = OUTCOME_NONE;
	mem_free_ptr(&a->reason);
	mem_free_ptr(&a->class);
	mem_free_ptr(&a->kept);
	a->ended = a->done = a->incomplete = false;
}

/* Of one that died with its parent the last record is the last sign of life. */
static void process_ends(struct replay_agent *a, int64_t ms)
{
	if (a->from_ms > 0 && ms > a->from_ms)
		a->worked_ms += ms - a->from_ms;
	a->from_ms = 0;
}

static void on_spawned(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);
	int64_t generation = json_i64(r, "generation", 1);

	process_ends(a, generation != a->generation ? f->out->last_ms : f->part_ended_ms);
	a->from_ms = f->out->last_ms;
	replay_set(&a->stage, json_str(r, "stage", NULL));

	book_open_calls(f->out, a);
	if (a->ended || generation != a->generation)
		forget_end(a);
	if (generation != a->generation) {
		a->reset = false;
		a->rounds_before = a->rounds;
	}
	a->generation = generation;
	a->spawned = true;
	a->pid = (pid_t)json_i64(r, "pid", 0);
	replay_set(&a->key, json_str(r, "key", NULL));
	replay_set(&a->role, json_str(r, "role", NULL));
	replay_set(&a->branch, json_str(r, "branch", NULL));
	replay_set(&a->worktree, json_str(r, "worktree", NULL));
	replay_set(&a->base, json_str(r, "base", NULL));
	replay_set(&a->task, json_str(r, "task", NULL));
}

static struct replay_effect *add_effect(struct replay_agent *a, enum frame_type type,
					struct json_object *r)
{
	MEM_GROW(a->effects, a->cap_effects, a->n_effects + 1);
	struct replay_effect *e = &a->effects[a->n_effects++];

	*e = (struct replay_effect){.type = type,
				    .generation = json_i64(r, "generation", 1),
				    .call = mem_strdup(json_str(r, "call", "")),
				    .ok = true};
	return e;
}

static void on_report(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);
	struct json_object *report = json_obj(json_obj(r, "body"), "report");

	if (!report)
		return;
	replay_keep(&a->report, report);
	replay_set(&a->report_call, json_str(r, "call", ""));
	add_effect(a, FRAME_REPORT, r)->body = mem_strdup("{}");
}

static char *json_body(struct json_object *body)
{
	AUTO_BUF struct buf out = BUF_INIT;

	json_write(&out, body);
	return mem_strdup(buf_str(&out));
}

static void on_checkpoint(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);
	struct replay_effect *e = add_effect(a, FRAME_CHECKPOINT, r);
	AUTO_JSON struct json_object *body = json_object_new_object();
	const char *message = json_str(r, "message", NULL);

	replay_set(&a->checkpoint, json_str(r, "commit", NULL));
	json_set(body, "commit", NULL);
	json_set_str(body, "commit", json_str(r, "commit", NULL));
	json_set_str(body, "message", message);
	e->ok = message == NULL;
	e->body = json_body(body);
}

static void on_reset(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);
	struct agent_reset *reset = resets_add(&a->resets);
	AUTO_JSON struct json_object *body = json_object_new_object();

	reset->generation = json_i64(r, "generation", 1);
	reset->reason = mem_strdup(json_str(r, "reason", NULL));
	reset->why = mem_strdup(json_str(r, "why", NULL));
	reset->handoff = mem_strdup(json_str(r, "handoff", NULL));
	reset->checkpoint = mem_strdup(json_str(r, "checkpoint", NULL));
	reset->first_action = mem_strdup(json_str(r, "first_action", NULL));
	reset->head = mem_strdup(json_str(r, "head", NULL));
	reset->tree = mem_strdup(json_str(r, "tree", NULL));
	reset->facts_only = json_flag(r, "facts_only", false);
	reset->progress = json_flag(r, "progress", false);
	reset->chain = json_i64(r, "chain", 1);
	a->reset = reset->generation == a->generation;
	json_set_bool(body, "accepted", true);
	json_set_str(body, "file", reset->handoff);
	add_effect(a, FRAME_RESET, r)->body = json_body(body);
}

static void on_reset_refused(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_effect *e = add_effect(agent_of(f->out, r), FRAME_RESET, r);
	AUTO_JSON struct json_object *body = json_object_new_object();

	json_set_bool(body, "accepted", false);
	json_set_bool(body, "final", json_flag(r, "final", false));
	json_set(body, "reasons", json_object_get(json_arr(r, "reasons")));
	e->ok = false;
	e->body = json_body(body);
}

/* The one that asked is answered in the same way again; the other one has its name, spawned or not. */
static void on_asked(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *child = agent_named(f->out, json_str(r, "child", ""));
	AUTO_JSON struct json_object *body = json_object_new_object();

	replay_keep(&child->asked, r);
	replay_set(&child->key, json_str(r, "key", NULL));
	json_set_str(body, "agent", child->name);
	add_effect(agent_of(f->out, r), FRAME_SPAWN, r)->body = json_body(body);
}

static void on_message(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	add_effect(agent_of(f->out, r), FRAME_MESSAGE, r)->body = mem_strdup("{}");
	if (strcmp(json_str(r, "action", ""), "stop") == 0)
		agent_named(f->out, json_str(r, "to", ""))->unwanted = true;
}

static void on_stop_asked(struct json_object *r, void *arg)
{
	agent_of(((struct fold *)arg)->out, r)->unwanted = true;
}

static void on_child(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	const char *name = json_str(json_obj(r, "data"), "child", "");

	/* The agent's own words: only of one that it asked for are they believed. */
	for (size_t i = 0; i < f->out->n_agents; i++) {
		struct replay_agent *child = f->out->agents[i];
		child->told |=
			strcmp(child->name, name) == 0 &&
			strcmp(json_str(child->asked, "agent", ""), json_str(r, "agent", "-")) == 0;
	}
}

static void take_status(struct replay_agent *a, struct json_object *r)
{
	enum outcome_status status = outcome_find(json_str(r, "status", NULL));

	if (status != OUTCOME_NONE)
		a->status = status;
}

static void on_ended(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);

	process_ends(a, f->out->last_ms);
	a->ended = true;
	a->pid = 0;
	a->status = OUTCOME_LOST; /* a word that we do not know */
	take_status(a, r);
	replay_set(&a->reason, json_str(r, "reason", NULL));
	replay_set(&a->class, json_str(r, "class", NULL));
	if (json_obj(r, "memory"))
		replay_keep(&a->memory, json_obj(r, "memory"));
	a->rounds = json_i64(r, "rounds", a->rounds);
	a->tool_calls = json_i64(r, "tool_calls", a->tool_calls);
	a->failed_calls = json_i64(r, "failed_calls", a->failed_calls);
}

static void on_done(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);

	a->ended = a->done = true;
	a->incomplete = json_flag(r, "incomplete", false);
	take_status(a, r);
	replay_set(&a->kept, json_str(r, "kept", NULL));
	replay_set(&a->tip, json_str(r, "commit", NULL));
}

static void on_worktree(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	agent_of(f->out, r)->worktree_made = true;
}

static void on_imported(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	replay_set(&agent_of(f->out, r)->tip, json_str(r, "new", NULL));
}

static void on_round(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);

	a->rounds = a->rounds_before + json_i64(json_obj(r, "data"), "round", 0);
}

static void on_compact(struct json_object *r, void *arg)
{
	agent_of(((struct fold *)arg)->out, r)->compactions +=
		!record_room_made_by(json_obj(r, "data"));
}

static void on_tool(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);

	a->tool_calls++;
	a->failed_calls += !json_flag(json_obj(r, "data"), "ok", true);
}

/* ---- calls ---- */

static void close_call(struct replay_agent *a, int64_t req)
{
	for (size_t i = 0; i < a->n_calls; i++) {
		if (a->calls[i].req == req) {
			a->calls[i] = a->calls[--a->n_calls];
			return;
		}
	}
}

static void on_reserved(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);

	close_call(a, json_i64(r, "req", 0));
	MEM_GROW(a->calls, a->cap_calls, a->n_calls + 1);
	a->calls[a->n_calls++] = (struct replay_call){.req = json_i64(r, "req", 0),
						      .tokens = json_i64(r, "tokens", 0),
						      .cost = json_double(r, "cost", 0)};
}

static void on_released(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	close_call(agent_of(f->out, r), json_i64(r, "req", 0));
}

static void on_settled(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay_agent *a = agent_of(f->out, r);
	struct budget_usage *books[] = {&a->usage, &f->out->used};

	close_call(a, json_i64(r, "req", 0));
	for (size_t k = 0; k < ARRAY_SIZE(books); k++) {
		books[k]->fresh += json_i64(r, "fresh", 0);
		books[k]->cache_read += json_i64(r, "cache_read", 0);
		books[k]->cache_write += json_i64(r, "cache_write", 0);
		books[k]->output += json_i64(r, "output", 0);
		books[k]->cost += json_double(r, "cost", 0);
		books[k]->estimated_calls += json_flag(r, "estimated", false);
		books[k]->calls++;
	}
}

const struct record_fold replay_agents = {
	.on =
		{
			[RECORD_AGENT_SPAWNED] = on_spawned,
			[RECORD_AGENT_REPORT] = on_report,
			[RECORD_AGENT_CHECKPOINT] = on_checkpoint,
			[RECORD_AGENT_RESET] = on_reset,
			[RECORD_AGENT_RESET_REFUSED] = on_reset_refused,
			[RECORD_AGENT_ENDED] = on_ended,
			[RECORD_AGENT_DONE] = on_done,
			[RECORD_AGENT_ASKED] = on_asked,
			[RECORD_AGENT_MESSAGE] = on_message,
			[RECORD_AGENT_STOP_ASKED] = on_stop_asked,
			[RECORD_AGENT_CHILD] = on_child,
			[RECORD_AGENT_ROUND] = on_round,
			[RECORD_AGENT_TOOL] = on_tool,
			[RECORD_AGENT_COMPACT] = on_compact,
			[RECORD_WORKTREE_CREATED] = on_worktree,
			[RECORD_WORKTREE_REOPENED] = on_worktree,
			[RECORD_BRANCH_IMPORTED] = on_imported,
			[RECORD_CALL_RESERVED] = on_reserved,
			[RECORD_CALL_RELEASED] = on_released,
			[RECORD_CALL_SETTLED] = on_settled,
		},
};

void replay_agents_end(struct replay *out)
{
	for (size_t i = 0; i < out->n_agents; i++) {
		book_open_calls(out, out->agents[i]);
		process_ends(out->agents[i], out->last_ms);
	}
}

void replay_agent_free(struct replay_agent *a)
{
	char *strings[] = {a->name, a->key,	   a->role,	   a->branch, a->worktree,
			   a->base, a->task,	   a->reason,	   a->class,  a->kept,
			   a->tip,  a->checkpoint, a->report_call, a->stage};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < a->n_effects; i++)
		effect_free(&a->effects[i]);
	free(a->effects);
	free(a->calls);
	resets_release(&a->resets);
	json_object_put(a->report);
	json_object_put(a->memory);
	json_object_put(a->asked);
	free(a);
}
