/*
 * ask.c - makes one model call and waits for its end.
 *
 * The body is one buffer of the agent, filled anew for each request by copying rendered messages;
 * it stays until the answer is whole, because the gateway may ask for it again at any time (again).
 * An attempt (attempt.h) that broke off is asked for again here; the gateway has retried before that.
 * What says that the prompt does not fit, in whatever form, leads to a compaction and another request
 * (H9).
 */
#include "agent/ask.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/attempt.h"
#include "agent/compact.h"
#include "agent/context/epoch.h"
#include "agent/events.h"
#include "agent/room.h"
#include "agent/model/overflow.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define ASK_RETRIES	  3
#define OVERFLOW_TRIES	  2    /* in a row */
#define ASK_OVERFLOW	  2    /* of ask_prepared: compact, then again */
#define ASK_REBUILT	  3    /* again */
#define SERVER_ERRORS	  3    /* in a row, ... */
#define BUDGET_LEAST_ROOM 1024 /* W12: a shorter answer is not worth a call */

/* Reached only when no rung of the ladder freed enough. */
static int end_for_room(struct agent *a, const char *what)
{
	return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
			 "the context window is full: %lld of %lld tokens are used, %s",
			 (long long)ledger_used(&a->ledger), (long long)a->budget.effective, what);
}

static int render_list(struct agent *a, struct message *const *list, size_t n, struct ask_result *r,
		       const char **ret_beta, struct err *err)
{
	struct model_client *client = r->apart.client ? r->apart.client : a->client;
	int64_t pinned = r->apart.client ? -1 : a->view.pinned;

	buf_clear(&a->body);
	if (client_render_request(client, list, n, r->max_tokens, pinned, &a->body, ret_beta, err) <
	    0)
		return -1;
	r->request_bytes = a->body.len;
	return 0;
}

static int render(struct agent *a, struct ask_result *r, const char **ret_beta, struct err *err)
{
	return render_list(a, a->view.list, a->view.n, r, ret_beta, err);
}

/* X2: after each rewrite the presence of every constraint is proved on the bytes that leave. */
static int prove_words(struct agent *a, struct err *err)
{
	struct user_words_check check = {.request = a->body.data, .request_len = a->body.len};
	struct user_words_findings found = {0};

	if (a->view.epoch == a->proved_epoch)
		return 0;
	a->proved_epoch = a->view.epoch;
	bool whole = user_words_check(&a->words, &check, &found) || !found.missing;
	size_t missing = found.missing;
	user_words_findings_release(&found);
	return whole ? 0
		     : err_set(err, ERR_INVALID,
			       "%zu of the user's constraints are not in the request: a bug of "
			       "baton",
			       missing);
}

/* Limits, validation, body. */
static int prepare(struct agent *a, struct ask_result *r, const char **ret_beta, struct err *err)
{
	view_sync(&a->view, &a->conversation);
	r->estimate = ledger_used(&a->ledger);
	occupancy_look(a, r->estimate);
	if (r->estimate > a->budget.blocking)
		return end_for_room(a, "above the blocking limit no request is made");
	/* W12 takes the whole of what is used, also what the provider has not counted yet. */
	r->max_tokens = budget_answer_room(&a->budget, a->settings->max_output, r->estimate);
	if (!r->max_tokens)
		return end_for_room(a, "there is no room for an answer");
	if (validator_check(&a->validator, a->view.list, a->view.n, err) < 0)
		return -1;
	if (render(a, r, ret_beta, err) < 0)
		return -1;
	return prove_words(a, err);
}

/* The one sync before a request: it carries the results of the round before (I5). The first request
 * has none, and the task is in the journal, which is synced before the call is granted. */
static int put_on_record(struct agent *a, const struct ask_result *r, struct err *err)
{
	struct transcript_request request = {
		.round = a->conversation.round + 1,
		.bytes = r->request_bytes,
		.messages = a->view.n,
		.used = r->estimate,
		.max_tokens = r->max_tokens,
	};

	transcript_request(a->transcript, &request, &a->budget, &a->ledger);
	occupancy_sent(a);
	return a->conversation.round ? transcript_sync(a->transcript, err)
				     : transcript_write(a->transcript, err);
}

/* Trap 11: servers that answer a prompt that is too long with a bare 500, each time. */
static bool looks_like_overflow(const struct agent *a, const struct attempt *at,
				const struct ask_result *r)
{
	return r->purpose == CALL_MAIN && attempt_server_errors(at) >= SERVER_ERRORS &&
	       r->estimate >= a->budget.full && !a->tried_500;
}

/* Runs one attempt to its end. A stop cancels it, and so does what looks like an overflow: then
 * *ret_overflow. */
static int run_attempt(struct agent *a, const struct ask_result *r, struct attempt *at,
		       bool *ret_overflow, struct err *err)
{
	checkpoint_maybe(a);
	while (!attempt_over(at)) {
		if (attempt_granted(at) && a->toolbox.context)
			tool_context_idle(a->toolbox.context);
		if (a->transport.wait(a->transport.arg, INT64_MAX, err) < 0)
			return -1;
		if (looks_like_overflow(a, at, r)) {
			*ret_overflow = true;
			return 0;
		}
	}
	return 0;
}

/* The end of the work, or of a call on the side. */
static void end_call(struct agent *a, struct ask_result *r, enum outcome_status status,
		     enum call_class class, const char *fmt, ...)
{
	char text[480];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->class = class;
	snprintf(r->why, sizeof(r->why), "%.*s", (int)sizeof(r->why) - 1, text);
	if (r->purpose == CALL_MAIN)
		agent_end(a, status, class, "%s", text);
}

/* Overflow and budget are limits: the work so far is worth a report. The others say that nothing of
 * this kind can work now, and the parent decides what that means for the run. */
static void end_by_class(struct agent *a, struct ask_result *r, const struct attempt_outcome *o)
{
	enum outcome_status status = OUTCOME_FAILED;
	const struct call_end *end = &o->end;
	const char *name = call_class_name(end->class);
	const char *message = *o->why ? o->why : "no reason was given";

	if (end->class == CALL_OVERFLOW || end->class == CALL_BUDGET)
		status = OUTCOME_LIMIT;
	if (r->purpose == CALL_MAIN)
		a->outcome.until = end->until;
	if (end->status)
		end_call(a, r, status, end->class, "the model call failed (%s, HTTP %d): %.400s",
			 name, end->status, message);
	else
		end_call(a, r, status, end->class, "the model call failed (%s): %.400s", name,
			 message);
}

enum verdict {
	VERDICT_DONE,
	VERDICT_ENDED,
	VERDICT_AGAIN,
	VERDICT_SMALLER,
	VERDICT_OVERFLOW,
	VERDICT_REBUILT, /* the view is another one now: a new request */
};

/* X8: the budget does not cover the answer that was asked for, but a shorter one. */
static bool can_be_smaller(const struct call_end *end, const struct ask_result *r)
{
	return end->class == CALL_BUDGET && end->limit >= BUDGET_LEAST_ROOM &&
	       end->limit < r->max_tokens;
}

/* What the error says of the window is kept for the rest of the run. */
static bool make_room_after_overflow(struct agent *a, int64_t limit)
{
	struct model *model = a->settings->model;

	if (!a->settings->knobs.compact_auto || a->overflows >= OVERFLOW_TRIES ||
	    !compact_possible(a))
		return false;
	a->overflows++;
	if (limit > 0 && limit < model->window) {
		model->window = limit;
		agent_set_budget(a, NULL);
		occupancy_start(a);
	}
	return true;
}

/* X1, wire.md 1.6: a server that binds thinking to its prefix, of which the model table does not know, refuses
 * such a request for ever. From now on the model is taken for one that does. */
static bool learn_binding(struct agent *a, const struct attempt_outcome *o)
{
	struct model *model = a->settings->model;
	size_t n = strlen(o->why);

	if (o->end.class != CALL_BAD_REQUEST || model->preserved_thinking ||
	    !text_find_nocase(o->why, n, "thinking") || !text_find_nocase(o->why, n, "signature"))
		return false;
	model->preserved_thinking = true;
	event_warning(a->channel, "the server binds thinking to what stood before it: thinking of "
				  "earlier rounds is left out from now on");
	return true;
}

/* The gateway's word is final, but for an overflow that room can mend. */
static enum verdict judge_failure(struct agent *a, const struct attempt_outcome *o,
				  struct ask_result *r)
{
	bool main = r->purpose == CALL_MAIN;

	if (can_be_smaller(&o->end, r)) {
		r->max_tokens = o->end.limit;
		return VERDICT_SMALLER;
	}
	/* H9: we thought that it fits, and the server knows better. */
	if (main && o->end.class == CALL_OVERFLOW && make_room_after_overflow(a, o->end.limit))
		return VERDICT_OVERFLOW;
	/* wire.md 4: a member that the server does not know is left out from now on. */
	if (o->end.class == CALL_BAD_REQUEST &&
	    text_find_nocase(o->why, strlen(o->why), "context_management") &&
	    client_drop_edits(a->client)) {
		event_warning(a->channel,
			      "the server clears no results by itself: not asked again");
		if (main)
			return VERDICT_REBUILT;
	}
	if (learn_binding(a, o) && main) {
		epoch_unbind(&a->view, &a->ledger, &a->conversation);
		a->validator = (struct validator){.n = 0};
		return VERDICT_REBUILT;
	}
	end_by_class(a, r, o);
	return VERDICT_ENDED;
}

/* Rows 16, 26, 39 and 40 of wire.md 3: the numbers say that the prompt did not fit. */
static enum verdict judge_numbers(struct agent *a, struct ask_result *r)
{
	const struct model *model = r->apart.model ? r->apart.model : a->settings->model;
	int64_t learned = 0;

	if (!answer_hints_overflow(&r->answer, model->window, r->estimate - r->answer.cleared,
				   &learned))
		return VERDICT_DONE;
	if (!message_is_blank(r->answer.message)) {
		event_warning(
			a->channel,
			"the server seems to read only a part of the prompt%s; set --window to "
			"what it really has",
			learned ? " (its window is smaller than told)" : "");
		return VERDICT_DONE;
	}
	if (r->purpose == CALL_MAIN && make_room_after_overflow(a, learned))
		return VERDICT_OVERFLOW;
	end_call(a, r, OUTCOME_LIMIT, CALL_OVERFLOW,
		 "the server answered nothing and its counts say that the prompt did not fit (%lld "
		 "tokens by our count)",
		 (long long)r->estimate);
	return VERDICT_ENDED;
}

/* What an attempt that is over gives. `why` says why it must be repeated. */
static enum verdict judge(struct agent *a, struct attempt *at, struct ask_result *r,
			  struct err *why)
{
	struct attempt_outcome o;
	enum verdict verdict;

	attempt_take(at, &o);
	r->ttft_ms = o.ttft_ms;
	switch (o.kind) {
	case ATTEMPT_FAILED: return judge_failure(a, &o, r);
	case ATTEMPT_REFUSED:
		end_call(a, r, OUTCOME_FAILED, CALL_BAD_REQUEST,
			 "the server refused the request: %.400s", o.why);
		return VERDICT_ENDED;
	case ATTEMPT_BROKEN: err_set(why, ERR_INVALID, "%s", o.why); return VERDICT_AGAIN;
	case ATTEMPT_ANSWER: break;
	}
	r->answer = o.answer;
	verdict = judge_numbers(a, r);
	if (verdict == VERDICT_DONE)
		return verdict;
	stream_answer_release(&r->answer);
	r->answer = (struct stream_answer){.message = NULL};
	return verdict;
}

/* A verdict, or -1. `why` says why it must be repeated. */
static int try_once(struct agent *a, struct ask_result *r, const char *beta, struct err *why,
		    struct err *err)
{
	struct attempt_spec spec = {
		.client = r->apart.client ? r->apart.client : a->client,
		.model = r->apart.model,
		.purpose = r->purpose,
		.body = &a->body,
		.beta = beta,
		.estimate = r->estimate,
		.max_tokens = r->max_tokens,
	};
	struct attempt *at = attempt_start(a, &spec, err);
	enum verdict verdict = VERDICT_ENDED;
	bool overflow = false;

	if (!at)
		return -1;
	if (run_attempt(a, r, at, &overflow, err) < 0) {
		attempt_free(at);
		return -1;
	}
	if (!overflow)
		verdict = judge(a, at, r, why);
	attempt_free(at);
	if (!overflow)
		return (int)verdict;
	a->tried_500 = true;
	if (make_room_after_overflow(a, 0))
		return VERDICT_OVERFLOW;
	err_set(why, ERR_INVALID, "the server fails on this prompt");
	return VERDICT_AGAIN;
}

static int ask_prepared(struct agent *a, struct ask_result *ret, struct err *err)
{
	struct ask_result r = {.ttft_ms = -1};
	struct err why = ERR_INIT;
	const char *beta = NULL;
	int64_t began;
	int rc = prepare(a, &r, &beta, err);

	if (rc || put_on_record(a, &r, err) < 0)
		return rc ? rc : -1;
	event_state(a->channel, ACTIVITY_MODEL, a->settings->model->name);
	began = clock_mono_ms();
	for (int attempt = 1;; attempt++) {
		rc = try_once(a, &r, beta, &why, err);
		if (rc < VERDICT_AGAIN)
			break;
		if (rc == VERDICT_OVERFLOW || rc == VERDICT_REBUILT)
			return rc == VERDICT_OVERFLOW ? ASK_OVERFLOW : ASK_REBUILT;
		if (rc == VERDICT_SMALLER && render(a, &r, &beta, err) < 0)
			return -1;
		if (rc == VERDICT_SMALLER && attempt <= ASK_RETRIES)
			continue;
		/* Others took what was offered, each time. */
		if (rc == VERDICT_SMALLER)
			return agent_end(a, OUTCOME_LIMIT, CALL_BUDGET,
					 "the run's budget does not cover this call");
		if (attempt > ASK_RETRIES)
			return agent_end(a, OUTCOME_FAILED, CALL_NETWORK,
					 "the model's answer broke off %d times: %.300s", attempt,
					 why.message);
		event_retry(a->channel, attempt + 1, why.message, 0);
	}
	if (rc)
		return rc;
	r.duration_ms = clock_mono_ms() - began;
	*ret = r;
	a->counts.requests++;
	a->asked_ms = began;
	a->sent_n = a->view.n;
	a->sent_taken = a->view.taken;
	a->sent_epoch = a->view.epoch;
	a->overflows = 0;
	a->tried_500 = false;
	return 0;
}

static int end_too_long(struct agent *a)
{
	room_tell_breaker(a);
	if (a->breaker.state == BREAKER_OPEN)
		return agent_end(
			a, OUTCOME_LIMIT, CALL_OVERFLOW,
			"the prompt is too long for the model, and a reset of the context is "
			"wanted: %s",
			a->breaker.why);
	return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
			 "the prompt is too long for the model, and nothing of it can go");
}

int ask_model(struct agent *a, struct ask_result *ret, struct err *err)
{
	const struct compact_request reactive = {.trigger = COMPACT_REACTIVE};

	for (;;) {
		int rc = ask_prepared(a, ret, err);

		if (rc == ASK_REBUILT)
			continue;
		if (rc != ASK_OVERFLOW)
			return rc;
		/* The first request after a compaction was refused: the provider counts as much as before. */
		breaker_judged(&a->breaker, true);
		rc = compact_now(a, &reactive, NULL, err);
		if (rc < 0)
			return -1;
		if (rc > 0)
			return end_too_long(a);
	}
}

int ask_side(struct agent *a, enum call_purpose purpose, struct message *const *list, size_t n,
	     int64_t estimate, int64_t max_tokens, struct ask_result *ret, struct err *err)
{
	const struct ask_apart own = {.client = NULL};

	return ask_apart(a, &own, purpose, list, n, estimate, max_tokens, ret, err);
}

int ask_apart(struct agent *a, const struct ask_apart *apart, enum call_purpose purpose,
	      struct message *const *list, size_t n, int64_t estimate, int64_t max_tokens,
	      struct ask_result *ret, struct err *err)
{
	struct ask_result r = {.purpose = purpose,
			       .estimate = estimate,
			       .max_tokens = max_tokens,
			       .ttft_ms = -1,
			       .apart = *apart};
	struct err why = ERR_INIT;
	const char *beta = NULL;
	int64_t began = clock_mono_ms();
	int rc;

	if (validate_all(list, n, err) < 0 || render_list(a, list, n, &r, &beta, err) < 0)
		return -1;
	rc = try_once(a, &r, beta, &why, err);
	if (rc < 0)
		return -1;
	r.duration_ms = clock_mono_ms() - began;
	if (rc == VERDICT_SMALLER)
		snprintf(r.why, sizeof(r.why), "the run's budget does not cover it");
	else if (rc == VERDICT_AGAIN)
		snprintf(r.why, sizeof(r.why), "%.290s", why.message);
	*ret = r;
	return rc != VERDICT_DONE;
}
