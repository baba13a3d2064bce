/*
 * watch.c - the assertions after every request, and those at a session's end.
 *
 * Nothing here asks the agent's own checks. What the agent is looked at for (the ledger's count, thresholds, the epoch's
 * number) is what a rule speaks of; everything else is taken from the bytes that left, from events, and from the plan.
 */
#include "watch.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "session.h"

#define FUTILE_MOST	 2
#define WORDS_EVERY	 16
#define PLACEHOLDER_MOST 200 /* bytes of the line that may stand in the place of a shorter text */

void watch_fail(struct session *s, const char *rule, const char *fmt, ...)
{
	struct finding *f = &s->watch.finding;
	va_list ap;

	if (f->found)
		return;
	f->found = true;
	f->request = s->server.requests;
	snprintf(f->rule, sizeof(f->rule), "%s", rule);
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void watch_keep(struct buf *list, const char *text, size_t n)
{
	buf_add(list, text, n);
	buf_addc(list, '\0');
}

void watch_release(struct watch *w)
{
	buf_release(&w->constraints);
	buf_release(&w->lies);
	buf_release(&w->refuse);
	free(w->results);
}

void watch_switch(struct watch *w)
{
	free(w->results);
	w->results = NULL;
	w->n_results = w->cap_results = 0;
	w->epoch = w->checked_epoch = -1;
	w->life_requests = w->breaks_told = w->compactions = w->side_calls = 0;
	w->wished = w->trouble = false;
	w->futile = 0;
}

/* ---- I3, W2, W12: thresholds ---- */

/* W1 and W2 for a model without an input limit and default knobs. */
static int64_t effective_of(const struct session *s)
{
	const struct model *m = s->agent.settings->model;
	int64_t output = m->max_output > 0 ? m->max_output : 8192;
	int64_t reserve = MIN(MIN(output, 20000), m->window / 4);

	return MIN(m->window - reserve, 400000);
}

static void check_thresholds(struct session *s)
{
	const struct window_budget *b = &s->agent.budget;
	int64_t effective = effective_of(s);
	int64_t blocking = effective - MAX(MIN(3000, effective * 3 / 100), 1);

	if (!(0 < b->warning && b->warning < b->compact && b->compact < b->blocking &&
	      b->blocking < b->effective && b->effective < b->window))
		watch_fail(s, "W2",
			   "thresholds out of order: warning %lld, compact %lld, blocking %lld, "
			   "effective %lld of %lld",
			   (long long)b->warning, (long long)b->compact, (long long)b->blocking,
			   (long long)b->effective, (long long)b->window);
	if (b->effective > effective || b->blocking > blocking)
		watch_fail(s, "W2", "effective %lld, blocking %lld: by W1 and W2 %lld and %lld",
			   (long long)b->effective, (long long)b->blocking, (long long)effective,
			   (long long)blocking);
}

static void check_size(struct session *s, const struct server_call *c, const struct reading *r)
{
	const struct agent *a = &s->agent;
	int64_t effective = effective_of(s);
	int64_t blocking = effective - MAX(MIN(3000, effective * 3 / 100), 1);
	int64_t most = c->purpose == CALL_MAIN ? blocking : effective;

	if (c->purpose == CALL_MAIN && c->estimate != ledger_used(&a->ledger))
		watch_fail(s, "I3", "the estimate %lld is not the ledger's count %lld",
			   (long long)c->estimate, (long long)ledger_used(&a->ledger));
	if (c->apart && c->estimate + c->max_tokens > s->plan.apart_window)
		watch_fail(s, "H16", "%lld tokens and %lld of answer in another model's %lld",
			   (long long)c->estimate, (long long)c->max_tokens,
			   (long long)s->plan.apart_window);
	if (!c->apart && c->estimate > most)
		watch_fail(s, "I3", "a request (%s) of %lld tokens above its limit of %lld",
			   call_purpose_name(c->purpose), (long long)c->estimate, (long long)most);
	if (r->max_tokens != c->max_tokens)
		watch_fail(s, "W12", "max_tokens is %lld in the body and %lld beside it",
			   (long long)r->max_tokens, (long long)c->max_tokens);
	if (c->purpose == CALL_MAIN && c->estimate + c->max_tokens > a->budget.window)
		watch_fail(s, "W12", "%lld tokens and %lld of answer in a window of %lld",
			   (long long)c->estimate, (long long)c->max_tokens,
			   (long long)a->budget.window);
}

/* ---- I4, W11: the prefix ---- */

static void check_prefix(struct session *s, const struct reading *r, size_t before)
{
	struct watch *w = &s->watch;
	int64_t epoch = s->agent.view.epoch;
	bool told = w->breaks_told > 0, counted = epoch != w->epoch;

	if (w->life_requests && !r->same_head)
		watch_fail(s, "I4", "system prompt or tools changed");
	if (r->kept < before && !told)
		watch_fail(s, "I4",
			   "message %zu of %zu is no longer what it was, and no break is recorded",
			   r->kept, before);
	if (counted != told && w->life_requests)
		watch_fail(s, "W11",
			   counted ? "an epoch ended without an event"
				   : "an event tells of a break that was none");
}

/* What was sent once and has not changed must be found in the provider's cache: markers must be where it looks. */
static void check_cache(struct session *s, const struct reading *r, size_t before)
{
	struct watch *w = &s->watch;

	if (!w->life_requests || r->kept < before || s->now_us - w->asked_us >= CACHE_LIFE_US)
		return;
	if (s->server.hit.messages < before)
		watch_fail(s, "H17",
			   "%zu of %zu messages that were sent before are found in the cache",
			   s->server.hit.messages, before);
}

/* ---- T3: results ---- */

static struct watch_result *find_result(struct watch *w, uint64_t id)
{
	size_t at;

	if ((w->n_results + 1) * 2 > w->cap_results) {
		struct watch_result *old = w->results;
		size_t cap = w->cap_results;

		w->cap_results = MAX(cap * 2, (size_t)64);
		w->results = mem_alloc(w->cap_results * sizeof(*w->results));
		w->n_results = 0;
		for (size_t i = 0; i < cap; i++)
			if (old[i].id)
				*find_result(w, old[i].id) = old[i];
		free(old);
	}
	at = (size_t)id & (w->cap_results - 1);
	while (w->results[at].id && w->results[at].id != id)
		at = (at + 1) & (w->cap_results - 1);
	if (!w->results[at].id) {
		w->results[at].id = id;
		w->n_results++;
	}
	return &w->results[at];
}

/* A result may become shorter where an epoch ends, and never anything else. */
static void check_result(struct session *s, const struct seen_block *b)
{
	struct watch_result *known = find_result(&s->watch, b->id);
	int64_t epoch = s->agent.view.epoch;

	if (known->hash && known->hash != b->hash) {
		if (known->epoch == epoch)
			watch_fail(s, "T3", "a result that was sent has changed within its epoch");
		else if (b->size >= MAX(known->size, (size_t)PLACEHOLDER_MOST))
			watch_fail(s, "T3", "a result of %zu bytes came back with %zu", known->size,
				   b->size);
	}
	known->hash = b->hash;
	known->size = b->size;
	known->epoch = epoch;
}

static void check_results(struct session *s, const struct reading *r)
{
	for (size_t i = r->kept; i < r->n; i++) {
		const struct seen_message *m = &r->list[i];

		for (size_t k = 0; k < m->n_blocks; k++)
			if (r->blocks[m->first_block + k].kind == SEEN_RESULT)
				check_result(s, &r->blocks[m->first_block + k]);
	}
}

/* ---- X2, X3: words ---- */

static const char *find_text(const char *body, size_t n, const char *text)
{
	return memmem(body, n, text, strlen(text));
}

/* The first text of a list that stands (or does not stand) in the body. */
static const char *first_of(const struct buf *list, const char *body, size_t n, bool stands)
{
	for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
		if ((find_text(body, n, list->data + at) != NULL) == stands)
			return list->data + at;
	return NULL;
}

static void check_words(struct session *s, const char *body, size_t n)
{
	struct watch *w = &s->watch;
	const char *text;

	if (w->checked_epoch == s->agent.view.epoch && w->main_requests % WORDS_EVERY)
		return;
	w->checked_epoch = s->agent.view.epoch;
	w->checked_request = w->main_requests;
	text = first_of(&w->constraints, body, n, false);
	if (text)
		watch_fail(s, "X2", "the user's words are not in the request: \"%s\"", text);
	text = first_of(&w->lies, body, n, true);
	if (text)
		watch_fail(s, "X2", "a rule that nobody gave is in the request: \"%s\"", text);
	text = first_of(&w->refuse, body, n, true);
	if (text)
		watch_fail(s, "X3", "a summary of no use was used: \"%s\"", text);
}

/* ---- X3, H10: compactions ---- */

static void check_compactions(struct session *s, const struct server_call *c)
{
	struct watch *w = &s->watch;
	/* Of a prompt that is cut silently the server tells only what is left, and the agent cannot know better. */
	bool silent = s->plan.overflow == FAULT_OVERFLOW_SILENT;
	int64_t told = silent ? MIN(c->prompt, c->window) : c->prompt;

	if (w->compactions && told > s->agent.budget.compact)
		w->futile += (int)w->compactions;
	else if (w->compactions)
		w->futile = 0;
	if (w->futile > FUTILE_MOST)
		watch_fail(s, "H10",
			   "%d compactions in a row after which %lld tokens were above the "
			   "threshold of %lld",
			   w->futile, (long long)c->prompt, (long long)s->agent.budget.compact);
}

void watch_unjudged(struct session *s, const struct server_call *c)
{
	if (c->purpose != CALL_MAIN)
		return;
	s->watch.futile -= s->watch.judged;
	s->watch.judged = 0;
}

/* ---- all of it ---- */

void watch_request(struct session *s, const struct server_call *c, const struct reading *r,
		   size_t before, const char *body, size_t n)
{
	struct watch *w = &s->watch;

	if (c->purpose == CALL_BACKGROUND)
		return;
	if (!s->plan.fixed) { /* its ceiling may be lifted */
		check_thresholds(s);
		check_size(s, c, r);
	}
	if (c->purpose != CALL_MAIN)
		return;
	check_prefix(s, r, before);
	check_cache(s, r, before);
	check_results(s, r);
	check_words(s, body, n);
	watch_world(s, r, body, n);
	check_compactions(s, c);
	if (w->main_requests > 4 * s->plan.max_rounds + 100)
		watch_fail(s, "X1", "%lld requests in a session of at most %lld rounds",
			   (long long)w->main_requests, (long long)s->plan.max_rounds);
	w->asked_us = s->now_us;
	w->epoch = s->agent.view.epoch;
	w->breaks_told = w->compactions = w->side_calls = 0;
	w->trouble = false;
	w->main_requests++;
	w->life_requests++;
}

/* X1: whatever happened, the session ended in one of the ways that its parent can go on from. */
void watch_end(struct session *s, int rc, const struct err *err)
{
	const struct outcome *o = &s->agent.outcome;
	bool may_lack_report;

	if (rc < 0) {
		if (!(s->stopping && err->code == ERR_CANCELLED))
			watch_fail(s, "X1", "the loop ended with an error: %s", err->message);
		return;
	}
	may_lack_report = o->status == OUTCOME_FAILED && !s->agent.record.tool_calls;
	if (o->class != CALL_CLASS_NONE && o->status == OUTCOME_FAILED)
		may_lack_report |= o->class == CALL_AUTH;
	if (o->status == OUTCOME_NONE)
		watch_fail(s, "X1", "the loop ended without an outcome");
	else if (o->status != OUTCOME_DONE && !*o->reason)
		watch_fail(s, "X1", "an end without a reason");
	else if (strstr(o->reason, "bug of baton"))
		watch_fail(s, "I2", "%s", o->reason);
	else if (o->class == CALL_BAD_REQUEST)
		watch_fail(s, "I2", "a request was refused: %s", o->reason);
	else if (!s->watch.reported && !may_lack_report)
		watch_fail(s, "X1", "an end without a report: %s", o->reason);
}
