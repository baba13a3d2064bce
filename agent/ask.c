/*
 * ask.c - makes one model call and waits for its end.
 *
 * The body is one buffer of the agent, filled anew for each request by copying rendered messages;
 * it stays until the answer is whole, because the gateway may ask for it again at any time (again).
 * The gateway retries what it sees fail; what only the parser can see (a stream that ends before
 * its stop reason, an error inside a 200) is asked for again here. Nothing of an answer enters the
 * conversation before it is whole, so a retry needs no undo.
 */
#include "agent/ask.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/compact.h"
#include "agent/events.h"
#include "agent/model/overflow.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define ASK_RETRIES	  3
#define OVERFLOW_TRIES	  2    /* in a row */
#define ASK_OVERFLOW	  2    /* of ask_prepared: compact, then again */
#define BUDGET_LEAST_ROOM 1024 /* W12: a shorter answer is not worth a call */

/* One attempt; lives until its end came, or until ask_release. */
struct attempt {
	struct agent *a;
	struct stream_parser *parser;
	bool over;
	int64_t received; /* bytes of the answer */
	/* An error inside the answer. The gateway watches the same bytes and decides on retries;
	 * ours counts only if it calls the answer whole. */
	struct err inside;
	bool granted; /* the body is on its way: what comes now is waiting */
	/* Copies of what call_end lends. */
	bool ok;
	struct call_end end;
	char *message;
};

static const char *on_body(void *arg, size_t *ret_len)
{
	struct attempt *at = arg;

	at->granted = true;
	*ret_len = at->a->body.len;
	return at->a->body.data;
}

/* Bytes that are not of this protocol cancel the call: they will not be read better later. */
static int on_data(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct attempt *at = arg;
	struct err failure = ERR_INIT;

	at->received += (int64_t)n;
	if (at->inside.code != ERR_NONE || stream_feed(at->parser, bytes, n, &failure) == 0)
		return 0;
	if (failure.code != ERR_BUSY && failure.code != ERR_DENIED)
		return err_set(err, failure.code, "%s", failure.message);
	at->inside = failure;
	return 0;
}

static void on_again(void *arg, int attempt, const char *reason, int64_t until_wall_ms)
{
	struct attempt *at = arg;

	stream_reset(at->parser);
	at->received = 0;
	at->inside.code = ERR_NONE;
	event_retry(at->a->channel, attempt, reason, until_wall_ms);
}

static void on_waiting(void *arg, const char *reason, int64_t until_wall_ms)
{
	struct attempt *at = arg;

	event_state(at->a->channel, "waiting", reason);
}

static void on_end(void *arg, const struct call_end *end)
{
	struct attempt *at = arg;

	at->over = true;
	at->ok = !strcmp(end->outcome, "ok");
	at->end = *end;
	at->message = mem_strdup(end->message ? end->message : "");
	at->end.message = at->message;
	at->end.outcome = NULL; /* borrowed: not valid after this call */
}

static const struct call_events call_handlers = {
	.body = on_body,
	.on_data = on_data,
	.on_again = on_again,
	.on_waiting = on_waiting,
	.on_end = on_end,
};

/* The clean stop of this stage: with the ladder's later rungs this point is reached only when none
 * of them freed enough. */
static int end_for_room(struct agent *a, const char *what)
{
	return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
			 "the context window is full: %lld of %lld tokens are used, %s",
			 (long long)ledger_used(&a->ledger), (long long)a->budget.effective, what);
}

/* W2: one line to the user, not one per round. */
static void warn_once(struct agent *a, int64_t used)
{
	bool compacts = a->settings->compact_auto && a->breaker.state == BREAKER_CLOSED;

	if (a->warned || used < a->budget.warning)
		return;
	a->warned = true;
	event_warning(a->channel, "%lld of %lld tokens of the context are used; %s at %lld",
		      (long long)used, (long long)a->budget.effective,
		      compacts ? "it is compacted" : "the agent is asked to report",
		      (long long)(compacts ? a->budget.compact : a->budget.closing));
}

static int render_list(struct agent *a, struct message *const *list, size_t n, struct ask_result *r,
		       const char **ret_beta, struct err *err)
{
	buf_clear(&a->body);
	if (client_render_request(a->client, list, n, r->max_tokens, a->view.pinned, &a->body,
				  ret_beta, err) < 0)
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
	warn_once(a, r->estimate);
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
	return a->conversation.round ? transcript_sync(a->transcript, err)
				     : transcript_write(a->transcript, err);
}

/* Settles an attempt whose answer gave no usage: by what was sent and what came, and marked so. */
static void send_usage(struct agent *a, int64_t req, const struct ask_result *r,
		       const struct model_usage *u, int64_t received)
{
	bool known = u && u->known;

	/* Settled before the next request at the latest: that stands behind it in the queue. */
	channel_hold(a->channel, true);
	channel_sendf(
		a->channel, FRAME_USAGE, NULL, 0,
		"\"req\":%lld,\"input\":%lld,\"cache_read\":%lld,\"cache_write\":%lld,"
		"\"output\":%lld,\"estimated\":%s,\"cache_write_1h\":%lld",
		(long long)req, (long long)(known ? u->input : r->estimate),
		(long long)(known ? u->cache_read : 0), (long long)(known ? u->cache_write : 0),
		(long long)(known ? u->output
				  : MIN(received / STREAM_BYTES_PER_TOKEN + 1, r->max_tokens)),
		known ? "false" : "true", (long long)(known ? u->cache_write_1h : 0));
	channel_hold(a->channel, false);
}

/* The estimate goes to the parent, which reserves by it before anything is sent (X8). */
static int64_t start_call(struct agent *a, const struct ask_result *r, const char *beta,
			  struct attempt *at, struct err *err)
{
	const struct model *model = a->settings->model;
	struct call_request request = {
		.purpose = r->purpose,
		.provider = model->provider,
		.model = model->name,
		.api = model->api == MODEL_API_ANTHROPIC ? "anthropic" : "openai",
		.length = (int64_t)r->request_bytes,
		.estimate = r->estimate,
		.max_tokens = r->max_tokens,
		.beta = beta,
	};

	return call_start(waiter_calls(a->waiter), &request, &call_handlers, at, err);
}

/* Runs one call to its end. On a stop the call is cancelled; its end is not waited for. */
static int run_attempt(struct agent *a, const struct ask_result *r, const char *beta,
		       struct attempt *at, int64_t *ret_req, struct err *err)
{
	int64_t req = start_call(a, r, beta, at, err);

	if (req < 0)
		return -1;
	*ret_req = req;
	log_debug("call %lld: %zu bytes, about %lld tokens", (long long)req, r->request_bytes,
		  (long long)r->estimate);
	checkpoint_maybe(a);
	while (!at->over) {
		if (at->granted && a->toolbox.context)
			tool_context_idle(a->toolbox.context);
		if (wait_poll(a->waiter, NULL, 0, INT64_MAX, err) < 0) {
			call_cancel(waiter_calls(a->waiter), req);
			return -1;
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
static void end_by_class(struct agent *a, struct ask_result *r, const struct call_end *end)
{
	enum outcome_status status = OUTCOME_FAILED;
	const char *name = call_class_name(end->class);
	const char *message = *end->message ? end->message : "no reason was given";

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

enum verdict { VERDICT_DONE, VERDICT_ENDED, VERDICT_AGAIN, VERDICT_SMALLER, VERDICT_OVERFLOW };

/* X8: the budget does not cover the answer that was asked for, but a shorter one. */
static bool can_be_smaller(const struct call_end *end, const struct ask_result *r)
{
	return end->class == CALL_BUDGET && end->limit >= BUDGET_LEAST_ROOM &&
	       end->limit < r->max_tokens;
}

/* What the error says of the window is kept for the rest of the run. */
static bool make_room_after_overflow(struct agent *a, const struct call_end *end)
{
	struct model *model = a->settings->model;

	if (!a->settings->compact_auto || a->overflows >= OVERFLOW_TRIES || !compact_possible(a))
		return false;
	a->overflows++;
	if (end->limit > 0 && end->limit < model->window) {
		model->window = end->limit;
		agent_set_budget(a, NULL);
	}
	return true;
}

/* A failed call's verdict. */
static enum verdict judge_failure(struct agent *a, struct attempt *at, int64_t req,
				  struct ask_result *r, struct err *why)
{
	if (can_be_smaller(&at->end, r)) {
		r->max_tokens = at->end.limit;
		return VERDICT_SMALLER;
	}
	/* H9: we thought that it fits, and the server knows better. */
	if (at->end.class == CALL_OVERFLOW && r->purpose == CALL_MAIN &&
	    make_room_after_overflow(a, &at->end))
		return VERDICT_OVERFLOW;
	if (at->end.class) {
		end_by_class(a, r, &at->end);
		return VERDICT_ENDED;
	}
	/* Cancelled by our own parser: its error is the message. */
	send_usage(a, req, r, NULL, at->received);
	err_set(why, ERR_INVALID, "%s", at->message);
	return VERDICT_AGAIN;
}

/* Rows 16, 26, 39 and 40 of wire.md 3: the numbers say that the prompt did not fit. */
static enum verdict judge_numbers(struct agent *a, struct ask_result *r)
{
	int64_t learned = 0;

	if (!answer_hints_overflow(&r->answer, a->settings->model->window, r->estimate, &learned))
		return VERDICT_DONE;
	if (!message_is_blank(r->answer.message)) {
		event_warning(
			a->channel,
			"the server seems to read only a part of the prompt%s; set --window to "
			"what it really has",
			learned ? " (its window is smaller than told)" : "");
		return VERDICT_DONE;
	}
	end_call(a, r, OUTCOME_LIMIT, CALL_OVERFLOW,
		 "the server answered nothing and its counts say that the prompt did not fit (%lld "
		 "tokens by our count)",
		 (long long)r->estimate);
	return VERDICT_ENDED;
}

/* What an attempt that is over gives. `why` says why it must be repeated. */
static enum verdict judge(struct agent *a, struct attempt *at, int64_t req, struct ask_result *r,
			  struct err *why)
{
	if (!at->ok)
		return judge_failure(a, at, req, r, why);
	r->ttft_ms = at->end.ttft_ms;
	if (at->inside.code == ERR_DENIED) {
		send_usage(a, req, r, NULL, at->received);
		end_call(a, r, OUTCOME_FAILED, CALL_BAD_REQUEST,
			 "the server refused the request: %.400s", at->inside.message);
		return VERDICT_ENDED;
	}
	if (at->inside.code != ERR_NONE) {
		send_usage(a, req, r, NULL, at->received);
		*why = at->inside;
		return VERDICT_AGAIN;
	}
	if (stream_finish(at->parser, &r->answer, why) < 0) {
		send_usage(a, req, r, NULL, at->received);
		return VERDICT_AGAIN;
	}
	/* No request has no input: a server that counts nothing has said nothing (W6). */
	if (usage_prompt(&r->answer.usage) <= 0)
		r->answer.usage.known = false;
	send_usage(a, req, r, &r->answer.usage, at->received);
	enum verdict verdict = VERDICT_AGAIN;
	if (r->answer.stop != STOP_ERROR)
		verdict = judge_numbers(a, r);
	if (verdict == VERDICT_DONE)
		return verdict;
	stream_answer_release(&r->answer);
	r->answer = (struct stream_answer){.message = NULL};
	err_set(why, ERR_INVALID, "the server ended the answer with an error");
	return verdict;
}

static void attempt_free(struct attempt *at)
{
	if (!at)
		return;
	stream_free(at->parser);
	free(at->message);
	free(at);
}

void ask_release(struct agent *a)
{
	attempt_free(take_ptr(a->attempt));
}

/* A verdict, or -1. `why` says why it must be repeated. */
static int try_once(struct agent *a, struct ask_result *r, const char *beta, struct err *why,
		    struct err *err)
{
	struct attempt *at = mem_alloc(sizeof(*at));
	enum verdict verdict;
	int64_t req = 0;

	at->a = a;
	at->parser = stream_new(a->client, NULL, NULL);
	if (run_attempt(a, r, beta, at, &req, err) < 0) {
		/* An open call still points to it: the end of a cancelled call is not waited for.
		 */
		a->attempt = at;
		return -1;
	}
	verdict = judge(a, at, req, r, why);
	attempt_free(at);
	return (int)verdict;
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
	event_state(a->channel, "model", a->settings->model->name);
	began = clock_mono_ms();
	for (int attempt = 1;; attempt++) {
		rc = try_once(a, &r, beta, &why, err);
		if (rc < VERDICT_AGAIN)
			break;
		if (rc == VERDICT_OVERFLOW)
			return ASK_OVERFLOW;
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
	a->overflows = 0;
	return 0;
}

int ask_model(struct agent *a, struct ask_result *ret, struct err *err)
{
	for (;;) {
		int rc = ask_prepared(a, ret, err);

		if (rc != ASK_OVERFLOW)
			return rc;
		rc = compact_now(a, COMPACT_REACTIVE, err);
		if (rc < 0)
			return -1;
		if (rc > 0)
			return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
					 "the prompt is too long for the model, and nothing of it "
					 "can go");
	}
}

int ask_side(struct agent *a, enum call_purpose purpose, struct message *const *list, size_t n,
	     int64_t estimate, int64_t max_tokens, struct ask_result *ret, struct err *err)
{
	struct ask_result r = {
		.purpose = purpose, .estimate = estimate, .max_tokens = max_tokens, .ttft_ms = -1};
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
