/*
 * call_caller.c - the agent's side of model calls: several at once on one channel.
 *
 * States of a call and what moves it:
 *
 *   QUEUED    grant -> SENDING        again, waiting: stays       end -> over
 *   SENDING   body sent -> SENT       again -> QUEUED             end -> over (an early refusal)
 *   SENT      again -> QUEUED         end -> over
 *   CANCELLED everything but end is ignored; end -> over (the slot is kept until then, so that an
 *             agent cannot have more calls open than the parent allows)
 *
 * The body is not copied here: the agent keeps the rendered request (it needs it for the next round
 * anyway) and lends it again for each attempt. Only what the channel takes at once or a little more
 * is handed to it, so that a cancel or a report never waits behind a whole body.
 */
#include "handoff/call.h"

#include <inttypes.h>

#include "base/memory.h"

enum {
	CREDIT_WORTH = 64 << 10, /* answer bytes consumed before credit goes back */
	PUMP_QUEUE = 128 << 10,	 /* bodies wait while the channel has this much to write */
};

enum call_state { CALL_QUEUED, CALL_SENDING, CALL_SENT, CALL_CANCELLED };

struct call {
	int64_t req;
	enum call_state state;
	struct call_events events;
	void *arg;
	int64_t length; /* as announced */
	const char *body;
	size_t sent;
	int64_t may_send;
	int64_t uncredited; /* answer bytes consumed and not credited back */
	bool silent;	    /* call_cancel: the agent has forgotten it */
	char *error;	    /* why on_data cancelled */
};

struct call_callers {
	struct channel *ch;
	int64_t last_req;
	struct call *calls[CALL_PER_PEER]; /* NULL: free */
	size_t turn;			   /* who is first in the next pump */
};

struct call_callers *call_callers_new(struct channel *ch)
{
	struct call_callers *set = mem_alloc(sizeof(*set));
	set->ch = ch;
	return set;
}

static void call_free(struct call *call)
{
	free(call->error);
	free(call);
}

void call_callers_free(struct call_callers *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < CALL_PER_PEER; i++)
		if (set->calls[i])
			call_free(set->calls[i]);
	free(set);
}

/* The slot of a call; of req 0 a free one. Eight pointers: a search is cheaper than any table. */
static struct call **call_slot(struct call_callers *set, int64_t req)
{
	for (size_t i = 0; i < CALL_PER_PEER; i++)
		if (set->calls[i] ? set->calls[i]->req == req : req == 0)
			return &set->calls[i];
	return NULL;
}

static void add_string(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, ",\"%s\":", key);
	json_write_cstr(out, value);
}

int64_t call_start(struct call_callers *set, const struct call_request *request,
		   const struct call_events *events, void *arg, struct err *err)
{
	struct call **slot = call_slot(set, 0);
	if (!slot)
		return err_set(err, ERR_BUSY, "%d model calls are open", CALL_PER_PEER);
	AUTO_BUF struct buf fields = BUF_INIT;
	int64_t req = set->last_req + 1;
	buf_addf(&fields,
		 "\"req\":%" PRId64 ",\"class\":\"%s\",\"length\":%" PRId64 ",\"estimate\":%" PRId64
		 ",\"max_tokens\":%" PRId64,
		 req, call_purpose_name(request->purpose), request->length, request->estimate,
		 request->max_tokens);
	add_string(&fields, "provider", request->provider);
	add_string(&fields, "model", request->model);
	add_string(&fields, "api", request->api);
	if (request->beta)
		add_string(&fields, "beta", request->beta);
	/* Half, because the parent writes the header anew and adds to it; names are configuration.
	 */
	if (fields.len > FRAME_FIELDS_MAX / 2)
		return err_set(err, ERR_TOO_LARGE, "the name of model '%.40s' is too long",
			       request->model);
	struct call *call = mem_alloc(sizeof(*call));
	call->req = set->last_req = req;
	call->events = *events;
	call->arg = arg;
	call->length = request->length;
	*slot = call;
	channel_send(set->ch, FRAME_REQUEST, buf_str(&fields), NULL, 0);
	return req;
}

static void cancel(struct call_callers *set, struct call *call)
{
	if (call->state == CALL_CANCELLED)
		return;
	call->state = CALL_CANCELLED;
	channel_sendf(set->ch, FRAME_CANCEL, NULL, 0, "\"req\":%" PRId64, call->req);
}

void call_cancel(struct call_callers *set, int64_t req)
{
	struct call **slot = req > 0 ? call_slot(set, req) : NULL;
	if (!slot)
		return;
	(*slot)->silent = true;
	cancel(set, *slot);
}

static void send_credit(struct call_callers *set, const struct call *call, int64_t bytes)
{
	channel_sendf(set->ch, FRAME_CREDIT, NULL, 0, "\"req\":%" PRId64 ",\"bytes\":%" PRId64,
		      call->req, bytes);
}

/* One frame of one body. False when this call has nothing to send now. */
static bool send_part(struct call_callers *set, struct call *call)
{
	if (!call || call->state != CALL_SENDING)
		return false;
	int64_t left = call->length - (int64_t)call->sent;
	size_t part = (size_t)MIN(MIN(left, call->may_send), (int64_t)CALL_PART);
	if (part > 0) {
		channel_sendf(set->ch, FRAME_DATA, call->body + call->sent, part,
			      "\"req\":%" PRId64, call->req);
		call->sent += part;
		call->may_send -= (int64_t)part;
	}
	if ((int64_t)call->sent == call->length) {
		channel_sendf(set->ch, FRAME_END, NULL, 0, "\"req\":%" PRId64 ",\"bytes\":%" PRId64,
			      call->req, call->length);
		call->state = CALL_SENT;
	}
	return part > 0;
}

/* One frame of each call in turn, so that a long body does not starve a short one beside it. Ends
 * when nobody can send or the channel has enough to write; on_writable brings the owner back here.
 */
void call_callers_pump(struct call_callers *set)
{
	size_t idle = 0;
	while (idle < CALL_PER_PEER && channel_queued(set->ch) < PUMP_QUEUE) {
		idle = send_part(set, set->calls[set->turn]) ? 0 : idle + 1;
		set->turn = (set->turn + 1) % CALL_PER_PEER;
	}
}

/* The mark goes out before the body is even asked for: it must be the first frame of the attempt
 * and is owed for every grant, also if the body turns out to be wrong. */
static void on_grant(struct call_callers *set, struct call *call)
{
	size_t len = 0;
	send_credit(set, call, 0);
	call->body = call->events.body(call->arg, &len);
	if (call->state == CALL_CANCELLED)
		return;
	if (!call->body || (int64_t)len != call->length) {
		call->error = mem_printf("the body has %zu bytes, %" PRId64 " were announced", len,
					 call->length);
		cancel(set, call);
		return;
	}
	call->state = CALL_SENDING;
	call->sent = 0;
	call->may_send = CALL_CREDIT;
	call->uncredited = 0;
	call_callers_pump(set);
}

/* Bytes between again and grant are void. Credit goes back in large steps: one small frame upwards
 * for each 64 KiB of answer, while the gateway still has three quarters of its window to go on
 * with. */
static void on_data(struct call_callers *set, struct call *call, const struct frame *frame)
{
	struct err err = ERR_INIT;
	if (call->state == CALL_QUEUED)
		return;
	if (call->events.on_data(call->arg, frame->body, frame->len, &err) < 0) {
		if (!call->error)
			call->error = mem_strdup(err.message);
		cancel(set, call);
		return;
	}
	call->uncredited += (int64_t)frame->len;
	if (call->uncredited >= CREDIT_WORTH && call->state != CALL_CANCELLED) {
		send_credit(set, call, call->uncredited);
		call->uncredited = 0;
	}
}

static int on_credit(struct call_callers *set, struct call *call, int64_t bytes, struct err *err)
{
	if (call->state == CALL_QUEUED)
		return 0;
	if (bytes > CALL_CREDIT - call->may_send)
		return err_set(err, ERR_INVALID, "call %" PRId64 " got more credit than it used",
			       call->req);
	call->may_send += bytes;
	call_callers_pump(set);
	return 0;
}

/* The slot is free before the callback, which may start the next call. */
static void on_end(struct call **slot, const struct frame *frame)
{
	struct call *call = take_ptr(*slot);
	AUTO_FREE char *text = mem_strndup(frame->len ? frame->body : "", frame->len);
	struct call_end end = {
		.outcome = json_str(frame->header, "outcome", "failed"),
		.class = call_class_parse(json_str(frame->header, "class", NULL)),
		.status = (int)MIN(json_i64(frame->header, "status", 0), (int64_t)999),
		.used = json_i64(frame->header, "used", 0),
		.limit = json_i64(frame->header, "limit", 0),
		.until = json_i64(frame->header, "until", 0),
		.ttft_ms = json_i64(frame->header, "ttft_ms", -1),
		.message = call->error ? call->error : text,
	};
	if (!call->silent)
		call->events.on_end(call->arg, &end);
	call_free(call);
}

static void on_again(struct call *call, const struct frame *frame)
{
	call->state = CALL_QUEUED;
	call->events.on_again(
		call->arg, (int)MIN(json_i64(frame->header, "attempt", 0), (int64_t)INT32_MAX),
		(int)MIN(json_i64(frame->header, "status", 0), (int64_t)999),
		json_str(frame->header, "reason", ""), json_i64(frame->header, "until", 0));
}

int call_callers_frame(struct call_callers *set, const struct frame *frame, struct err *err)
{
	int64_t req = json_i64(frame->header, "req", 0);
	struct call **slot = req > 0 ? call_slot(set, req) : NULL;
	if (!slot)
		return 0;
	if (frame->type == FRAME_END) {
		on_end(slot, frame);
		return 0;
	}
	if ((*slot)->state == CALL_CANCELLED)
		return 0;
	switch (frame->type) {
	case FRAME_WAITING:
		(*slot)->events.on_waiting((*slot)->arg, json_str(frame->header, "reason", ""),
					   json_i64(frame->header, "until", 0));
		return 0;
	case FRAME_GRANT: on_grant(set, *slot); return 0;
	case FRAME_DATA: on_data(set, *slot, frame); return 0;
	case FRAME_AGAIN: on_again(*slot, frame); return 0;
	case FRAME_CREDIT: return on_credit(set, *slot, json_i64(frame->header, "bytes", 0), err);
	default:
		return err_set(err, ERR_INVALID, "a frame '%s' is no part of a call",
			       frame_name(frame->type));
	}
}
