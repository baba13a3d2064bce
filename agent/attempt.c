/*
 * attempt.c - feeds a stream parser from the transport's events and says what came of it.
 *
 * Nothing of an answer enters the conversation before it is whole, so a retry needs no undo: `again`
 * empties the parser and the body is given once more.
 */
#include "agent/attempt.h"

#include <stdio.h>

#include "agent/events.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

struct attempt {
	struct agent *a;
	struct attempt_spec spec;
	struct stream_parser *parser;
	int64_t req;
	int64_t received; /* bytes of the answer */
	/* An error inside the answer. The gateway watches the same bytes and decides on retries;
	 * ours counts only if it calls the answer whole. */
	struct err inside;
	bool over, granted, ok;
	int server_errors; /* in a row */
	/* Copies of what call_end lends. */
	struct call_end end;
	char *message;
};

static bool is_main(const struct attempt *at)
{
	return at->spec.purpose != CALL_BACKGROUND;
}

static const char *on_body(void *arg, size_t *ret_len)
{
	struct attempt *at = arg;

	at->granted = true;
	*ret_len = at->spec.body->len;
	return at->spec.body->data;
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

static void on_again(void *arg, int attempt, int status, const char *reason, int64_t until_wall_ms)
{
	struct attempt *at = arg;

	at->server_errors = status >= 500 ? at->server_errors + 1 : 0;
	stream_reset(at->parser);
	at->received = 0;
	at->inside.code = ERR_NONE;
	event_retry(at->a->channel, attempt, reason, until_wall_ms);
}

/* Nobody waits for a call in the background. */
static void on_waiting(void *arg, const char *reason, int64_t until_wall_ms)
{
	struct attempt *at = arg;

	(void)until_wall_ms;
	if (is_main(at))
		event_state(at->a->channel, ACTIVITY_WAITING, reason);
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

static const struct call_events handlers = {
	.body = on_body,
	.on_data = on_data,
	.on_again = on_again,
	.on_waiting = on_waiting,
	.on_end = on_end,
};

/* The estimate goes to the parent, which reserves by it before anything is sent (X8). */
struct attempt *attempt_start(struct agent *a, const struct attempt_spec *spec, struct err *err)
{
	const struct model *model = spec->model ? spec->model : a->settings->model;
	struct call_request request = {
		.purpose = spec->purpose,
		.provider = model->provider,
		.model = model->name,
		.api = model->api == MODEL_API_ANTHROPIC ? "anthropic" : "openai",
		.length = (int64_t)spec->body->len,
		.estimate = spec->estimate,
		.max_tokens = spec->max_tokens,
		.beta = spec->beta,
	};
	struct attempt *at = mem_alloc(sizeof(*at));

	at->a = a;
	at->spec = *spec;
	at->parser = stream_new(spec->client, NULL, NULL);
	at->req = a->transport.start(a->transport.arg, &request, &handlers, at, err);
	if (at->req < 0) {
		at->over = true;
		attempt_free(at);
		return NULL;
	}
	log_debug("call %lld (%s): %zu bytes, about %lld tokens", (long long)at->req,
		  call_purpose_name(spec->purpose), spec->body->len, (long long)spec->estimate);
	return at;
}

bool attempt_over(const struct attempt *at)
{
	return at->over;
}

bool attempt_granted(const struct attempt *at)
{
	return at->granted;
}

int attempt_server_errors(const struct attempt *at)
{
	return at->server_errors;
}

void attempt_free(struct attempt *at)
{
	if (!at)
		return;
	if (!at->over)
		at->a->transport.cancel(at->a->transport.arg, at->req);
	stream_free(at->parser);
	free(at->message);
	free(at);
}

/* An attempt whose answer gave no usage is settled by what was sent and what came, and marked so. */
static void settle(struct attempt *at, const struct model_usage *u)
{
	bool known = u && u->known;
	struct transport_usage usage = {
		.input = known ? u->input : at->spec.estimate,
		.cache_read = known ? u->cache_read : 0,
		.cache_write = known ? u->cache_write : 0,
		.output =
			known ? u->output
			      : MIN(at->received / STREAM_BYTES_PER_TOKEN + 1, at->spec.max_tokens),
		.cache_write_1h = known ? u->cache_write_1h : 0,
		.estimated = !known,
	};

	at->a->transport.settle(at->a->transport.arg, at->req, &usage);
}

/* The gateway called the answer whole; the parser has the last word. */
static enum attempt_kind take_answer(struct attempt *at, struct attempt_outcome *ret)
{
	struct err why = ERR_INIT;

	if (at->inside.code == ERR_NONE && stream_finish(at->parser, &ret->answer, &why) == 0) {
		/* No request has no input: a server that counts nothing has said nothing (W6). */
		if (usage_prompt(&ret->answer.usage) <= 0)
			ret->answer.usage.known = false;
		settle(at, &ret->answer.usage);
		if (ret->answer.stop != STOP_ERROR)
			return ATTEMPT_ANSWER;
		stream_answer_release(&ret->answer);
		ret->answer = (struct stream_answer){.message = NULL};
		snprintf(ret->why, sizeof(ret->why), "the server ended the answer with an error");
		return ATTEMPT_BROKEN;
	}
	settle(at, NULL);
	if (at->inside.code != ERR_NONE)
		why = at->inside;
	snprintf(ret->why, sizeof(ret->why), "%.400s", why.message);
	return why.code == ERR_DENIED ? ATTEMPT_REFUSED : ATTEMPT_BROKEN;
}

void attempt_take(struct attempt *at, struct attempt_outcome *ret)
{
	*ret = (struct attempt_outcome){.ttft_ms = -1};
	if (at->ok) {
		ret->kind = take_answer(at, ret);
		ret->ttft_ms = at->end.ttft_ms;
		return;
	}
	ret->end = at->end;
	ret->end.message = NULL;
	snprintf(ret->why, sizeof(ret->why), "%.400s", at->message);
	ret->kind = at->end.class ? ATTEMPT_FAILED : ATTEMPT_BROKEN;
	/* Cancelled by our own parser: what came is paid. */
	if (ret->kind == ATTEMPT_BROKEN)
		settle(at, NULL);
}
