/*
 * exchange.c - see exchange.h.
 *
 * Decides on retries (design.md, "The gateway"): judge.h says what an attempt was, this file counts
 * and waits. A server's own wait is kept; one above max_sleep_ms ends the call with the time until
 * which the provider is closed (trap 72). Without one the wait is random below a bound that
 * doubles.
 *
 * Life of the parts: the exchange owns its ticket, window, outbox and, while an attempt runs, its
 * transfer. The transfer's callbacks (room, on_answer, on_consumed) run inside curl and may only
 * send frames and note things; on_done runs from the loop and is the one place where an attempt
 * ends. Everything that ends the call goes through over(), after which x is gone: callers return at
 * once.
 *
 * Frames of an attempt that is over are not told apart by number but by the window's count of marks
 * (handoff/call.h); this file only asks it.
 */
#include "orchestrator/gateway/exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "orchestrator/gateway/judge.h"
#include "orchestrator/gateway/outbox.h"
#include "orchestrator/gateway/transfer.h"

#define STALL_RETRIES	  1    /* trap 75 */
#define UNREACHED_RETRIES 3    /* for a host that has never answered: it may not exist */
#define QUIET_MS	  1000 /* shorter pauses are no news for the journal */

struct exchange {
	struct exchange_host *host;
	struct provider *provider;
	int64_t req;
	char *agent, *api, *beta;
	int64_t length, received;
	struct ticket ticket;
	struct call_window window;
	struct transfer *transfer; /* while ACTIVE */
	struct outbox *outbox;
	int attempt; /* number of the last grant, or of the first to come less one */
	int failures, stalls;
	bool fresh; /* the next attempt needs a new connection */
	int64_t granted_at, answer_bytes;
	char *told; /* the last reason told, with told_until */
	int64_t told_until;
};

int64_t exchange_req(const struct exchange *x)
{
	return x->req;
}

/* ---- what is said to the agent and the parent ---- */

static void send_end(struct channel *ch, int64_t req, const char *outcome, const struct verdict *v,
		     int64_t until, int64_t bytes, int64_t ttft_ms)
{
	struct buf f = BUF_INIT;
	buf_addf(&f, "\"req\":%" PRId64 ",\"outcome\":\"%s\"", req, outcome);
	if (v && v->class != CALL_CLASS_NONE)
		buf_addf(&f, ",\"class\":\"%s\"", call_class_name(v->class));
	if (v)
		buf_addf(&f, ",\"status\":%d,\"used\":%" PRId64 ",\"limit\":%" PRId64, v->status,
			 v->used, v->limit);
	if (until > 0)
		buf_addf(&f, ",\"until\":%" PRId64, until);
	buf_addf(&f, ",\"bytes\":%" PRId64, bytes);
	if (ttft_ms >= 0)
		buf_addf(&f, ",\"ttft_ms\":%" PRId64, ttft_ms);
	const char *message = v && v->message ? v->message : "";
	channel_send(ch, FRAME_END, buf_str(&f), message, strlen(message));
	buf_release(&f);
}

static void note(struct exchange_host *host, const char *name, struct json_object *body)
{
	struct buf text = BUF_INIT;
	json_write(&text, body);
	channel_sendf(host->channel, FRAME_NOTE, buf_str(&text), text.len, "\"name\":\"%s\"", name);
	buf_release(&text);
	json_object_put(body);
}

static void note_retry(struct exchange *x, const struct judgement *j, int64_t delay)
{
	struct json_object *body = json_object_new_object();
	json_set_i64(body, "req", x->req);
	json_set_i64(body, "attempt", x->attempt);
	json_set_i64(body, "status", j->v.status);
	json_set_str(body, "reason", j->reason);
	json_set_i64(body, "delay_ms", delay);
	note(x->host, "retry", body);
}

static void note_limit(struct exchange *x, const struct judgement *j, int64_t until_wall)
{
	struct json_object *body = json_object_new_object();
	json_set_str(body, "provider", x->provider->name);
	json_set_str(body, "kind", j->v.class == CALL_RATE_LIMIT ? "rate_limit" : "overload");
	json_set_i64(body, "until", until_wall);
	json_set_str(body, "reason", j->reason);
	note(x->host, "limit", body);
}

/* Each kind of connection once per provider: the journal is no access log. */
static void note_connection(struct exchange *x, const struct transfer_result *r)
{
	unsigned bit = 1u << (r->http * 2 + (r->reused ? 1 : 0));
	if (r->http == 0 || (x->provider->told & bit))
		return;
	x->provider->told |= bit;
	struct json_object *body = json_object_new_object();
	json_set_str(body, "provider", x->provider->name);
	json_set_str(body, "http", r->http == 2 ? "2" : "1.1");
	json_set_bool(body, "reused", r->reused);
	note(x->host, "connection", body);
}

/* ---- life ---- */

static bool one_line(const char *s)
{
	return !s || !strpbrk(s, "\r\n");
}

/* NULL if the request can be served, else why not; *class is set then. */
static char *find_fault(struct exchange_host *host, struct json_object *h, enum call_class *class)
{
	const char *name = json_str(h, "provider", "");
	struct provider *p = gateway_settings_find(host->settings, name);
	*class = CALL_BAD_REQUEST;
	if (!p)
		return mem_printf("the gateway knows no provider '%s'", name);
	const char *api = json_str(h, "api", "");
	if (strcmp(api, "anthropic") != 0 && strcmp(api, "openai") != 0)
		return mem_printf("unknown api '%s'", api);
	if (!one_line(json_str(h, "beta", NULL)))
		return mem_strdup("the beta header is not one line");
	*class = CALL_AUTH;
	if (p->key_name && !p->key)
		return mem_printf("there is no API key for provider '%s'", name);
	return NULL;
}

static enum call_purpose parse_purpose(const char *word)
{
	if (strcmp(word, call_purpose_name(CALL_BACKGROUND)) == 0)
		return CALL_BACKGROUND;
	return strcmp(word, call_purpose_name(CALL_COMPACT)) == 0 ? CALL_COMPACT : CALL_MAIN;
}

void exchange_open(struct exchange_host *host, const struct frame *frame, struct exchange **ret)
{
	struct json_object *h = frame->header;
	struct verdict v = {0};
	*ret = NULL;
	v.message = find_fault(host, h, &v.class);
	if (v.message) {
		send_end(host->channel, json_i64(h, "req", 0), "failed", &v, 0, 0, -1);
		verdict_release(&v);
		return;
	}
	struct exchange *x = mem_alloc(sizeof(*x));
	x->host = host;
	x->provider = gateway_settings_find(host->settings, json_str(h, "provider", ""));
	x->req = json_i64(h, "req", 0);
	x->agent = mem_strdup(json_str(h, "agent", ""));
	x->api = mem_strdup(json_str(h, "api", ""));
	x->beta = mem_strdup(json_str(h, "beta", NULL));
	x->length = json_i64(h, "length", 0);
	/* A gateway that replaces a dead one goes on from the number that the parent names. */
	x->attempt = (int)MAX(0, MIN(json_i64(h, "attempt", 1), 1 << 20) - 1);
	x->ticket = (struct ticket){.purpose = parse_purpose(json_str(h, "class", "")),
				    .estimate = json_i64(h, "estimate", 0),
				    .owner = x};
	x->outbox = outbox_new(host->base, host->channel, x->req, &x->window);
	int64_t now = clock_mono_ms();
	admission_enqueue(host->admission, &x->ticket,
			  (size_t)(x->provider - host->settings->providers), x->agent, now, now);
	*ret = x;
	host->on_queue(host->arg);
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	admission_leave(x->host->admission, &x->ticket);
	transfer_free(x->transfer);
	outbox_free(x->outbox);
	free(x->agent);
	free(x->api);
	free(x->beta);
	free(x->told);
	free(x);
}

/* x is freed by this. The queue is told, since a ticket in flight gives its slot back. */
static void over(struct exchange *x)
{
	x->host->on_queue(x->host->arg); /* its slot may be free */
	x->host->on_over(x, x->host->arg);
}

static void fail(struct exchange *x, const struct verdict *v, int64_t until)
{
	send_end(x->host->channel, x->req, "failed", v, until, x->answer_bytes, -1);
	over(x);
}

static void fail_plainly(struct exchange *x, enum call_class class, const char *message)
{
	struct verdict v = {.class = class, .message = mem_strdup(message)};
	fail(x, &v, 0);
	verdict_release(&v);
}

/* ---- the end of an attempt ---- */

static int retries_for(const struct exchange *x, const struct judgement *j)
{
	int max = x->host->settings->retries;
	if (j->v.max_retries >= 0)
		max = MIN(max, j->v.max_retries);
	if (j->unreached && !x->provider->reached)
		max = MIN(max, UNREACHED_RETRIES);
	return max;
}

/* Always above what the server asked for: a crowd that comes back early is refused again. */
static int64_t delay_for(const struct exchange *x, const struct judgement *j)
{
	const struct gateway_settings *s = x->host->settings;
	if (j->asked_ms >= 0)
		return j->asked_ms + retry_after_jitter(j->asked_ms);
	if (j->immediate && x->failures == 1)
		return 0;
	return retry_backoff_ms(x->failures, s->backoff_ms, s->backoff_max_ms);
}

/* The whole lane waits for what one call was told. */
static void slow_others(struct exchange *x, const struct judgement *j, int64_t now, int64_t delay)
{
	if (!j->v.congestion)
		return;
	bool news = admission_pause(x->host->admission, x->ticket.lane, now + delay);
	if (news && delay >= QUIET_MS)
		note_limit(x, j, clock_wall_ms() + delay);
}

static void ask_again(struct exchange *x, const struct judgement *j, int64_t delay)
{
	int64_t now = clock_mono_ms();
	note_retry(x, j, delay);
	slow_others(x, j, now, delay);
	struct buf f = BUF_INIT;
	buf_addf(&f,
		 "\"req\":%" PRId64 ",\"attempt\":%d,\"until\":%" PRId64 ",\"status\":%d"
		 ",\"reason\":",
		 x->req, x->attempt, clock_wall_ms() + delay, j->v.status);
	json_write_cstr(&f, j->reason);
	channel_send(x->host->channel, FRAME_AGAIN, buf_str(&f), NULL, 0);
	buf_release(&f);
	/* From here until the next mark, what the agent still has on the way is dropped. */
	call_window_voided(&x->window);
	outbox_clear(x->outbox);
	x->fresh = j->stalled || j->immediate;
	admission_enqueue(x->host->admission, &x->ticket, x->ticket.lane, x->agent, now,
			  now + delay);
	x->host->on_queue(x->host->arg);
}

/* A server that only says by how much the prompt is too long: measured against our estimate. */
static void complete_numbers(const struct exchange *x, struct verdict *v)
{
	if (v->excess > 0 && v->used == 0 && x->ticket.estimate > v->excess) {
		v->used = x->ticket.estimate;
		v->limit = x->ticket.estimate - v->excess;
	}
}

static void decide(struct exchange *x, struct judgement *j)
{
	x->failures++;
	x->stalls += j->stalled;
	bool again =
		j->v.retryable && x->failures <= retries_for(x, j) && x->stalls <= STALL_RETRIES;
	if (j->v.retryable && j->asked_ms > x->host->settings->max_sleep_ms) {
		j->v.class = CALL_RATE_LIMIT;
		fail(x, &j->v, clock_wall_ms() + j->asked_ms);
	} else if (again) {
		ask_again(x, j, delay_for(x, j));
	} else {
		complete_numbers(x, &j->v);
		int64_t until = 0;
		if (j->v.class == CALL_RATE_LIMIT)
			until = clock_wall_ms() + delay_for(x, j);
		fail(x, &j->v, until);
	}
}

static void succeed(struct exchange *x, const struct transfer_result *r)
{
	struct verdict v = {.status = r->status};
	outbox_flush(x->outbox);
	int64_t ttft = r->first_content_ms < 0 ? -1 : r->first_content_ms - x->granted_at;
	send_end(x->host->channel, x->req, "ok", &v, 0, r->bytes, ttft);
	over(x);
}

static void on_done(void *arg, const struct transfer_result *r)
{
	struct exchange *x = arg;
	struct exchange_host *host = x->host;
	struct judgement j;
	int64_t now = clock_mono_ms();
	judge_attempt(r, x->provider, &j);
	x->answer_bytes = r->bytes;
	/* Any answer, also a refusal, shows that the host exists. */
	x->provider->reached |= r->status > 0;
	note_connection(x, r);
	/* The server's word on this refusal outranks its windows, whose reset may mean "full
	 * again". */
	int64_t longest = host->settings->max_sleep_ms;
	if (!j.ok && j.asked_ms >= 0)
		longest = MIN(longest, j.asked_ms);
	admission_learn(host->admission, x->ticket.lane, &r->limits, r->hints.server_date,
			clock_wall_ms(), now, longest);
	admission_done(host->admission, &x->ticket, j.ok, j.v.congestion, now);
	struct transfer *done = take_ptr(x->transfer);
	if (j.ok)
		succeed(x, r);
	else
		decide(x, &j);
	judgement_release(&j);
	transfer_free(done); /* r is its own */
}

/* ---- an attempt ---- */

static size_t room(void *arg)
{
	struct exchange *x = arg;
	/* What waits in the outbox has been accepted and will use up its credit. */
	int64_t left = x->window.may_send - (int64_t)outbox_pending(x->outbox);
	return left > 0 ? (size_t)left : 0;
}

static void on_answer(void *arg, const char *bytes, size_t n)
{
	struct exchange *x = arg;
	outbox_add(x->outbox, bytes, n);
}

static void on_consumed(void *arg, size_t n)
{
	struct exchange *x = arg;
	call_window_consumed(&x->window, x->host->channel, x->req, n);
}

void exchange_grant(struct exchange *x)
{
	static const struct transfer_events events = {room, on_answer, on_consumed, on_done};
	struct transfer_spec spec = {.provider = x->provider,
				     .settings = x->host->settings,
				     .api = x->api,
				     .beta = x->beta,
				     .length = x->length,
				     .fresh = x->fresh};
	struct err err = ERR_INIT;

	x->attempt++;
	x->received = 0;
	x->granted_at = clock_mono_ms();
	free(take_ptr(x->told));
	channel_sendf(x->host->channel, FRAME_GRANT, NULL, 0, "\"req\":%" PRId64 ",\"attempt\":%d",
		      x->req, x->attempt);
	call_window_granted(&x->window);
	/* The connection is made while the body is on its way. */
	log_debug("attempt %d of a call to %s", x->failures + 1, x->provider->name);
	if (transfer_start(x->host->transport, &spec, &events, x, &x->transfer, &err))
		fail_plainly(x, CALL_NETWORK, err.message);
}

void exchange_wait(struct exchange *x, int64_t now)
{
	int64_t until;
	const char *reason = admission_reason(x->host->admission, &x->ticket, now, &until);
	/* `again` has said so already. */
	if (strcmp(reason, "retry") == 0)
		return;
	if (x->told && strcmp(x->told, reason) == 0 && llabs(x->told_until - until) < QUIET_MS)
		return;
	free(x->told);
	x->told = mem_strdup(reason);
	x->told_until = until;
	struct buf f = BUF_INIT;
	buf_addf(&f, "\"req\":%" PRId64 ",\"reason\":\"%s\"", x->req, reason);
	if (until >= 0)
		buf_addf(&f, ",\"until\":%" PRId64, clock_wall_ms() + until - now);
	channel_send(x->host->channel, FRAME_WAITING, buf_str(&f), NULL, 0);
	buf_release(&f);
}

int exchange_data(struct exchange *x, const struct frame *frame, struct err *err)
{
	int rc = call_window_received(&x->window, frame->len, err);
	if (rc <= 0)
		return rc;
	x->received += (int64_t)frame->len;
	if (x->received > x->length)
		fail_plainly(x, CALL_BAD_REQUEST, "the body is longer than was announced");
	else
		transfer_body(x->transfer, frame->body, frame->len);
	return 0;
}

/* curl was promised `length` bytes and would wait for them for ever. */
void exchange_body_end(struct exchange *x)
{
	if (x->window.open && x->received != x->length)
		fail_plainly(x, CALL_BAD_REQUEST, "the body is shorter than was announced");
}

void exchange_credit(struct exchange *x, int64_t bytes)
{
	call_window_credit(&x->window, bytes);
	if (x->transfer)
		transfer_room(x->transfer);
}

void exchange_cancel(struct exchange *x)
{
	send_end(x->host->channel, x->req, "cancelled", NULL, 0, x->answer_bytes, -1);
	over(x);
}
