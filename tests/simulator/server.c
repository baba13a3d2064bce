/*
 * server.c - the transport: calls are opened, read, answered step by step, one step a wait.
 *
 * Events come from within `wait` only, as the seam demands. Each wait moves the virtual clock, so a stall of ten
 * minutes costs nothing. Calls in the background are answered after some waits of their own.
 */
#include "server.h"

#include <stdio.h>

#include "base/memory.h"
#include "conduct.h"
#include "edits.h"
#include "mutants.h"
#include "refusal.h"
#include "session.h"

#define FULL_CHECK_EVERY 50

/* ---- steps ---- */

static struct step *add_step(struct server_call *c, enum step_kind kind)
{
	struct step *step = &c->steps[MIN(c->n_steps, (size_t)STEPS_MAX - 1)];

	*step = (struct step){.kind = kind};
	c->n_steps = MIN(c->n_steps + 1, (size_t)STEPS_MAX);
	return step;
}

void server_again(struct server_call *c, int status, const char *reason, int64_t delay_ms)
{
	struct step *step = add_step(c, STEP_AGAIN);

	step->status = status;
	step->reason = reason;
	step->delay_ms = delay_ms;
}

void server_say(struct server_call *c, size_t from, size_t to)
{
	struct step *step = add_step(c, STEP_DATA);

	step->from = from;
	step->to = to;
}

struct call_end *server_end(struct server_call *c, const char *outcome, enum call_class class,
			    int status, const char *message)
{
	struct step *step = add_step(c, STEP_END);

	step->end = (struct call_end){.outcome = outcome,
				      .class = class,
				      .status = status,
				      .ttft_ms = 300,
				      .message = message};
	return &step->end;
}

/* ---- one request ---- */

/* What the incremental reading holds must be what a reading of all of it gives. */
static void check_whole(struct session *s, const char *body, size_t n)
{
	struct server *v = &s->server;
	const struct reading *a = &v->main, *b = &v->side;

	s->tallies->count[TALLY_FULL_CHECKS]++;
	if (reading_take(&v->side, body, n, true) < 0)
		watch_fail(s, "I2", "a full check finds: %s", v->side.wrong);
	else if (a->n != b->n || reading_tokens(a) != reading_tokens(b) ||
		 (a->n && a->list[a->n - 1].hash != b->list[b->n - 1].hash))
		watch_fail(s, "I2", "the incremental reading differs from a full one");
}

static void refuse(struct session *s, const struct refusal *refusal)
{
	watch_fail(s, refusal->rule, "the server refuses: %s", refusal->text);
}

/* The body, as the mutant leaves it. */
static const char *take_body(struct session *s, struct server_call *c, struct buf *copy,
			     size_t *ret)
{
	const char *body = c->events.body(c->user, ret);

	if (!s->mutant || !s->mutant->body)
		return body;
	buf_add(copy, body, *ret);
	s->mutant->body(s, c, copy);
	*ret = copy->len;
	return copy->data;
}

/* H2: what the provider clears does not count. */
static void clear_results(struct session *s, struct server_call *c, const struct reading *r)
{
	struct edits_done done = edits_apply(r);

	if (r->edits.present && s->server.edits_refused && c->req > s->server.edits_refused)
		watch_fail(s, "H2", "the server is asked again to clear results by itself");
	if (s->plan.refuses_edits)
		return;
	c->cleared = done.tokens;
	c->cleared_uses = done.uses;
	c->prompt -= done.tokens;
	s->tallies->count[TALLY_PROVIDER_EDITS] += done.uses > 0;
}

static void read_request(struct session *s, struct server_call *c)
{
	struct server *v = &s->server;
	bool main = c->purpose == CALL_MAIN;
	struct reading *r = main ? &v->main : c->apart ? &v->apart : &v->side;
	size_t before = main ? v->main.n : 0, n = 0;
	struct refusal_rules rules = {.bound = s->plan.bound && !c->apart,
				      .reasoning = s->plan.demands_reasoning && !c->apart};
	struct refusal refusal;
	AUTO_BUF struct buf copy = BUF_INIT;
	const char *body = take_body(s, c, &copy, &n);

	v->requests++;
	s->tallies->count[TALLY_REQUESTS]++;
	s->tallies->count[TALLY_BODY_KIB] += (int64_t)(n >> 10);
	if (reading_take(r, body, n, !main) < 0)
		watch_fail(s, "I2", "the request is not well-formed: %s", r->wrong);
	/* A pass of the notes may stand on a prefix of its own, and asks for stale thinking to be dropped. */
	rules.bound = rules.bound && (c->purpose != CALL_BACKGROUND || !r->drops_thinking);
	if (!r->wrong[0] && refusal_check(r, r->kept, &rules, &refusal) < 0)
		refuse(s, &refusal);
	v->trail = hash_mix(hash_mix(v->trail, (uint64_t)c->purpose), hash_bytes(body, n));
	c->prompt = reading_tokens(r);
	c->window = c->apart ? s->plan.apart_window : v->window;
	clear_results(s, c, r);
	if (s->plan.fixed)
		v->hit = cache_take_any(&v->cache, r, s->now_us);
	else if (main)
		v->hit = cache_take(&v->cache, r, s->now_us);
	if (s->trace)
		printf("%s: %zu bytes, %zu messages, %lld tokens (estimate %lld) and %lld of "
		       "%lld\n",
		       call_purpose_name(c->purpose), n, r->n, (long long)c->prompt,
		       (long long)c->estimate, (long long)c->max_tokens, (long long)v->window);
	watch_request(s, c, r, before, body, n);
	if (main && v->requests % FULL_CHECK_EVERY == 0)
		check_whole(s, body, n);
	if (!s->watch.finding.found)
		conduct_answer(s, c, r, body, n);
}

/* ---- the transport ---- */

static int64_t start(void *arg, const struct call_request *request,
		     const struct call_events *events, void *user, struct err *err)
{
	struct session *s = arg;
	struct server *v = &s->server;
	struct server_call *c;

	if (v->n_open == CALL_PER_PEER)
		return err_set(err, ERR_BUSY, "too many calls are open");
	c = mem_alloc(sizeof(*c));
	*c = (struct server_call){.req = ++v->next_req,
				  .events = *events,
				  .user = user,
				  .purpose = request->purpose,
				  .estimate = request->estimate,
				  .max_tokens = request->max_tokens,
				  .apart = !strcmp(request->model, MODEL_APART)};
	if (c->purpose == CALL_BACKGROUND)
		c->patience = (int)random_between(&s->random, 0, 6);
	v->open[v->n_open++] = c;
	session_hear(s);
	watch_call(s, c);
	v->starting++;
	if (s->mutant && s->mutant->call)
		s->mutant->call(s, c);
	v->starting--;
	return c->req;
}

static void drop(struct server *v, size_t index)
{
	speech_release(&v->open[index]->speech);
	free(v->open[index]);
	v->open[index] = v->open[--v->n_open];
}

static void cancel(void *arg, int64_t req)
{
	struct session *s = arg;

	for (size_t i = 0; i < s->server.n_open; i++) {
		if (s->server.open[i]->req == req) {
			drop(&s->server, i);
			return;
		}
	}
}

static void settle(void *arg, int64_t req, const struct transport_usage *usage)
{
	struct session_cost *cost = &((struct session *)arg)->cost;

	cost->calls++;
	cost->fresh += usage->input;
	cost->read += usage->cache_read;
	cost->written += usage->cache_write;
	cost->output += usage->output;
}

/* Bytes in pieces of any size: the parser must not care. */
static int feed(struct session *s, struct server_call *c, const struct step *step, struct err *err)
{
	size_t at = step->from;
	bool small = random_chance(&s->random, 100);

	while (at < step->to) {
		size_t n = (size_t)random_between(&s->random, 1, small ? 7 : 16384);

		n = MIN(n, step->to - at);
		if (c->events.on_data(c->user, c->speech.out.data + at, n, err) < 0)
			return -1;
		at += n;
	}
	return 0;
}

static void end_cancelled(struct server_call *c, const struct err *why)
{
	struct call_end end = {.outcome = "cancelled", .ttft_ms = -1, .message = why->message};

	c->ended = true;
	c->events.on_end(c->user, &end);
}

static void run_step(struct session *s, struct server_call *c)
{
	const struct step *step = &c->steps[c->at++];
	struct err e = ERR_INIT;

	s->now_us += step->delay_ms * 1000;
	s->server.serving++;
	switch (step->kind) {
	case STEP_AGAIN:
		c->events.on_again(c->user, (int)c->at, step->status, step->reason, 0);
		break;
	case STEP_WAITING: c->events.on_waiting(c->user, step->reason, 0); break;
	case STEP_DATA:
		if (feed(s, c, step, &e) < 0)
			end_cancelled(c, &e);
		break;
	case STEP_END:
		c->ended = true;
		watch_call_ends(s, c);
		c->events.on_end(c->user, &step->end);
		break;
	}
	s->server.serving--;
}

static void serve(struct session *s, struct server_call *c)
{
	if (c->patience-- > 0)
		return;
	if (!c->answered) {
		c->answered = true;
		read_request(s, c);
	}
	if (s->watch.finding.found)
		return;
	if (c->at < c->n_steps)
		run_step(s, c);
	else
		watch_fail(s, "X1", "bug of the simulator: a call without an end");
}

static int wait_events(void *arg, int64_t deadline_ms, struct err *err)
{
	struct session *s = arg;
	struct server *v = &s->server;

	s->now_us += 20000;
	if (!v->n_open)
		watch_fail(s, "X1", "the agent waits for nothing");
	if (s->plan.interrupt && random_chance(&s->random, s->plan.interrupt / 8)) {
		session_control(s, "stop", "");
		s->tallies->count[TALLY_STOPS]++;
	}
	for (size_t i = 0; i < v->n_open && !s->watch.finding.found; i++) {
		serve(s, v->open[i]);
		if (v->open[i]->ended)
			drop(v, i--);
	}
	if (s->watch.finding.found)
		return err_set(err, ERR_CLOSED, "the simulator has found something");
	if (s->stopping)
		return err_set(err, ERR_CANCELLED, "the agent is to stop");
	return 0;
}

struct transport server_transport(struct session *s)
{
	return (struct transport){
		.start = start, .cancel = cancel, .wait = wait_events, .settle = settle, .arg = s};
}

void server_init(struct session *s)
{
	struct server *v = &s->server;

	*v = (struct server){.window = s->plan.true_window,
			     .requests = v->requests,
			     .next_req = v->next_req,
			     .trail = v->trail};
	tokenizer_make(&s->tokenizer, &s->random, s->plan.stubborn);
	reading_init(&v->main, s->plan.api, &s->tokenizer);
	reading_init(&v->side, s->plan.api, &s->tokenizer);
	tokenizer_make(&s->tokenizer_apart, &s->random, false);
	reading_init(&v->apart, s->plan.apart_api, &s->tokenizer_apart);
}

void server_release(struct session *s)
{
	while (s->server.n_open)
		drop(&s->server, 0);
	reading_release(&s->server.main);
	reading_release(&s->server.side);
	reading_release(&s->server.apart);
	cache_release(&s->server.cache);
}
