/*
 * call_relay.c - the parent in the middle of all model calls: numbers, windows, and no bodies.
 *
 * The relay gives every call a number of its own towards the gateway, checks credit in both
 * directions, and hands each frame on at once; what a call can leave in the parent's queues is thus
 * bounded by CALL_CREDIT per direction. It rebuilds the header of each frame from the fields that
 * the catalogue knows, so nothing else that one peer writes into a header reaches another.
 *
 * An entry's life:
 *
 *   held      --release-->          waiting (no gateway) or released
 *   waiting   --reissue-->          released
 *   released  --gateway died-->     waiting, or gone at the second death
 *   released  --end of gateway-->   over --close--> gone
 *   any       --cancel, refuse-->   gone (the relay answers; a gateway that has it is told)
 *
 * Within released: `granted` from grant to again; `open upwards` when in addition every mark has
 * come (call.h). Frames of an agent that come while it is not open belong to a void attempt:
 * dropped here.
 */
#include "handoff/call.h"

#include <inttypes.h>

#include "base/memory.h"

enum {
	ATTEMPT_MAX = 1000000,
	OWN_FIELDS = 400, /* req, attempt and agent, which the relay adds */
	GATEWAY_DEATHS = 2,
};

struct call_relay {
	struct channel *gateway; /* NULL: none now */
	struct call_entry *first;
	struct call_entry **end;
	int64_t last_number;
	size_t count;
};

struct call_relay *call_relay_new(void)
{
	struct call_relay *relay = mem_alloc(sizeof(*relay));
	relay->end = &relay->first;
	return relay;
}

static void entry_free(struct call_entry *entry)
{
	free(entry->fields);
	free(entry);
}

void call_relay_free(struct call_relay *relay)
{
	if (!relay)
		return;
	while (relay->first) {
		struct call_entry *entry = relay->first;
		relay->first = entry->next;
		entry_free(entry);
	}
	free(relay);
}

/* What all open calls may leave in the gateway's queue is lawful, however many they are. */
static void limit_gateway(struct call_relay *relay)
{
	if (relay->gateway)
		channel_set_limit(relay->gateway,
				  CHANNEL_HARD_LIMIT + relay->count * 2 * (size_t)CALL_CREDIT);
}

void call_relay_gateway(struct call_relay *relay, struct channel *gateway)
{
	relay->gateway = gateway;
	limit_gateway(relay);
}

size_t call_relay_count(const struct call_relay *relay)
{
	return relay->count;
}

struct call_entry *call_relay_find(struct call_relay *relay, struct channel *from, int64_t req)
{
	for (struct call_entry *e = relay->first; e; e = e->next)
		if (e->from == from && e->req == req)
			return e;
	return NULL;
}

/* Lists of open calls are short (a few per agent), and a lookup is small beside the frame's parse.
 */
static struct call_entry *find_number(struct call_relay *relay, int64_t number)
{
	for (struct call_entry *e = relay->first; e; e = e->next)
		if (e->number == number)
			return e;
	return NULL;
}

/* The successor is taken first, so that fn may close its entry (and only that). */
void call_relay_each(struct call_relay *relay, void (*fn)(struct call_entry *entry, void *arg),
		     void *arg)
{
	struct call_entry *next;
	for (struct call_entry *e = relay->first; e; e = next) {
		next = e->next;
		fn(e, arg);
	}
}

void call_relay_close(struct call_relay *relay, struct call_entry *entry)
{
	struct call_entry **p = &relay->first;
	while (*p && *p != entry)
		p = &(*p)->next;
	if (!*p)
		abort();
	*p = entry->next;
	if (!entry->next)
		relay->end = p;
	relay->count--;
	entry_free(entry);
}

/* ---- headers ---- */

static void add_value(struct buf *out, const char *name, struct json_object *value)
{
	buf_addf(out, ",\"%s\":", name);
	if (json_object_is_type(value, json_type_string))
		json_write_string(out, json_object_get_string(value),
				  (size_t)json_object_get_string_len(value));
	else
		json_write(out, value);
}

/* Appends the frame's catalogue fields but req, attempt and agent, which the relay writes itself.
 * The text may come out longer than it went in (escapes), hence the check. */
static int add_fields(struct buf *out, const struct frame *frame, struct err *err)
{
	const char *fields = frame_info(frame->type)->fields;
	struct frame_field field;
	while (frame_field_next(&fields, &field)) {
		struct json_object *value = json_get(frame->header, field.name);
		if (value && strcmp(field.name, "req") != 0 && strcmp(field.name, "attempt") != 0 &&
		    strcmp(field.name, "agent") != 0)
			add_value(out, field.name, value);
	}
	if (out->len > FRAME_FIELDS_MAX - OWN_FIELDS)
		return err_set(err, ERR_TOO_LARGE, "the header of a frame '%s' is too long",
			       frame_name(frame->type));
	return 0;
}

static int forward(struct channel *to, int64_t req, const struct frame *frame, struct err *err)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	buf_addf(&fields, "\"req\":%" PRId64, req);
	if (json_has(frame->header, "attempt"))
		buf_addf(&fields, ",\"attempt\":%" PRId64, json_i64(frame->header, "attempt", 0));
	if (add_fields(&fields, frame, err) < 0)
		return -1;
	channel_send(to, frame->type, buf_str(&fields), frame->body, frame->len);
	return 0;
}

/* Urgent: after it nothing of the call is of use to the agent, so it may overtake answer bytes. */
static void send_end(struct call_entry *entry, const char *outcome, enum call_class class,
		     int64_t limit, const char *message)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	buf_addf(&fields, "\"req\":%" PRId64 ",\"outcome\":\"%s\"", entry->req, outcome);
	if (class != CALL_CLASS_NONE)
		buf_addf(&fields, ",\"class\":\"%s\"", call_class_name(class));
	if (limit > 0)
		buf_addf(&fields, ",\"limit\":%" PRId64, limit);
	channel_send_urgent(entry->from, FRAME_END, buf_str(&fields), message,
			    MIN(strlen(message), (size_t)8 << 10));
}

/* ---- opening ---- */

/* Entries that are over but not closed hold no slot: the agent has had its end and may go on. */
static int check_room(struct call_relay *relay, struct channel *from, int64_t req, struct err *err)
{
	size_t open = 0;
	for (struct call_entry *e = relay->first; e; e = e->next) {
		if (e->from != from)
			continue;
		if (e->req == req)
			return err_set(err, ERR_INVALID, "the call number %" PRId64 " is in use",
				       req);
		open += !e->over;
	}
	if (open >= CALL_PER_PEER)
		return err_set(err, ERR_INVALID, "more than %d calls are open", CALL_PER_PEER);
	return 0;
}

struct call_entry *call_relay_open(struct call_relay *relay, struct channel *from, void *peer,
				   const struct frame *request, const char *agent_name,
				   struct err *err)
{
	AUTO_BUF struct buf fields = BUF_INIT;
	int64_t req = json_i64(request->header, "req", 0);
	if (check_room(relay, from, req, err) < 0 || add_fields(&fields, request, err) < 0)
		return NULL;
	if (agent_name) {
		buf_adds(&fields, ",\"agent\":");
		json_write_string(&fields, agent_name, MIN(strlen(agent_name), (size_t)32));
	}
	struct call_entry *entry = mem_alloc(sizeof(*entry));
	entry->number = ++relay->last_number;
	entry->req = req;
	entry->from = from;
	entry->peer = peer;
	entry->estimate = json_i64(request->header, "estimate", 0);
	entry->max_tokens = json_i64(request->header, "max_tokens", 0);
	entry->fields = buf_take(&fields);
	entry->held = true;
	*relay->end = entry;
	relay->end = &entry->next;
	relay->count++;
	limit_gateway(relay);
	return entry;
}

/* Sends a request to the gateway unless it has it. The attempt goes on counting over gateways, so
 * that no number comes twice in the life of a call. */
static void issue(struct call_relay *relay, struct call_entry *entry)
{
	if (!relay->gateway || entry->held || entry->released || entry->over)
		return;
	channel_sendf(relay->gateway, FRAME_REQUEST, NULL, 0,
		      "\"req\":%" PRId64 ",\"attempt\":%d%s", entry->number, entry->attempt + 1,
		      entry->fields);
	entry->released = true;
}

void call_relay_release(struct call_relay *relay, struct call_entry *entry)
{
	entry->held = false;
	issue(relay, entry);
}

void call_relay_reissue(struct call_relay *relay)
{
	for (struct call_entry *e = relay->first; e; e = e->next)
		issue(relay, e);
}

static void abort_call(struct call_relay *relay, struct call_entry *entry)
{
	if (entry->released && !entry->over && relay->gateway)
		channel_sendf(relay->gateway, FRAME_ABORT, NULL, 0, "\"req\":%" PRId64,
			      entry->number);
	entry->released = false;
}

void call_relay_refuse(struct call_relay *relay, struct call_entry *entry, enum call_class class,
		       int64_t limit, const char *message)
{
	abort_call(relay, entry);
	if (!entry->over)
		send_end(entry, "failed", class, limit, message ? message : "");
	call_relay_close(relay, entry);
}

/* ---- from an agent ---- */

/* The same rule as the gateway's window. Dropping here saves the bytes a hop and keeps out_up true:
 * bytes that the gateway would not take would never be credited. */
static bool open_upwards(const struct call_relay *relay, const struct call_entry *entry)
{
	return relay->gateway && entry->granted && entry->marks_owed == 0;
}

/* Marks come in the order of the grants, so those of dead gateways come first. */
static int on_mark(struct call_relay *relay, struct call_entry *entry, struct err *err)
{
	if (entry->marks_owed == 0)
		return err_set(err, ERR_INVALID, "a mark without a grant");
	entry->marks_owed--;
	if (entry->marks_stale > 0)
		entry->marks_stale--;
	else if (relay->gateway)
		channel_sendf(relay->gateway, FRAME_CREDIT, NULL, 0,
			      "\"req\":%" PRId64 ",\"bytes\":0", entry->number);
	return 0;
}

/* Inflated credit would let the gateway fill our queue for this agent: refused, not passed on. */
static int on_agent_credit(struct call_relay *relay, struct call_entry *entry,
			   const struct frame *frame, struct err *err)
{
	int64_t bytes = json_i64(frame->header, "bytes", 0);
	if (bytes == 0)
		return on_mark(relay, entry, err);
	if (!open_upwards(relay, entry))
		return 0;
	if (bytes > entry->out_down)
		return err_set(err, ERR_INVALID, "more credit than was used");
	entry->out_down -= bytes;
	return forward(relay->gateway, entry->number, frame, err);
}

/* Data and the body's end. Before any grant they cannot be a leftover: that is a broken agent. */
static int on_agent_data(struct call_relay *relay, struct call_entry *entry,
			 const struct frame *frame, struct err *err)
{
	if (entry->attempt == 0)
		return err_set(err, ERR_INVALID, "a body before its grant");
	if (!open_upwards(relay, entry))
		return 0;
	if (entry->out_up + (int64_t)frame->len > CALL_CREDIT)
		return err_set(err, ERR_INVALID, "a body exceeds its credit");
	entry->out_up += (int64_t)frame->len;
	entry->bytes_up += (int64_t)frame->len;
	return forward(relay->gateway, entry->number, frame, err);
}

/* Answered here: an agent that cancels wants to go on, and the gateway may be busy or dead. */
static void on_cancel(struct call_relay *relay, struct call_entry *entry)
{
	if (entry->released && relay->gateway)
		channel_sendf(relay->gateway, FRAME_CANCEL, NULL, 0, "\"req\":%" PRId64,
			      entry->number);
	send_end(entry, "cancelled", CALL_CLASS_NONE, 0, "");
	call_relay_close(relay, entry);
}

int call_relay_from_agent(struct call_relay *relay, struct channel *from, const struct frame *frame,
			  struct err *err)
{
	struct call_entry *entry = call_relay_find(relay, from, json_i64(frame->header, "req", 0));
	if (!entry || entry->over)
		return 0;
	switch (frame->type) {
	case FRAME_DATA:
	case FRAME_END: return on_agent_data(relay, entry, frame, err);
	case FRAME_CREDIT: return on_agent_credit(relay, entry, frame, err);
	case FRAME_CANCEL: on_cancel(relay, entry); return 0;
	default:
		return err_set(err, ERR_INVALID, "a frame '%s' is no part of a call",
			       frame_name(frame->type));
	}
}

/* ---- from the gateway ---- */

/* Counted here and by the caller in the same place of the stream, so both reset the same windows.
 */
static int on_grant(struct call_entry *entry, const struct frame *frame, struct err *err)
{
	int64_t attempt = json_i64(frame->header, "attempt", 0);
	if (attempt <= entry->attempt || attempt > ATTEMPT_MAX)
		return err_set(err, ERR_INVALID, "a grant of attempt %" PRId64 " after %d", attempt,
			       entry->attempt);
	entry->attempt = (int)attempt;
	entry->bytes_up = entry->bytes_down = 0;
	entry->out_up = entry->out_down = 0;
	entry->granted = true;
	entry->marks_owed++;
	return forward(entry->from, entry->req, frame, err);
}

static int on_gateway_data(struct call_entry *entry, const struct frame *frame, struct err *err)
{
	if (!entry->granted)
		return 0;
	if (entry->out_down + (int64_t)frame->len > CALL_CREDIT)
		return err_set(err, ERR_INVALID,
			       "the answer to call %" PRId64 " exceeds its credit", entry->number);
	entry->out_down += (int64_t)frame->len;
	entry->bytes_down += (int64_t)frame->len;
	return forward(entry->from, entry->req, frame, err);
}

/* Credit for a void attempt may still come after `again` was sent by us (a dead gateway's last
 * words are read before its end): it is dropped with the attempt. */
static int on_gateway_credit(struct call_entry *entry, const struct frame *frame, struct err *err)
{
	int64_t bytes = json_i64(frame->header, "bytes", 0);
	if (!entry->granted || bytes == 0)
		return 0;
	if (bytes > entry->out_up)
		return err_set(err, ERR_INVALID, "more credit for call %" PRId64 " than was used",
			       entry->number);
	entry->out_up -= bytes;
	return forward(entry->from, entry->req, frame, err);
}

static int from_gateway(struct call_entry *entry, const struct frame *frame, struct err *err)
{
	switch (frame->type) {
	case FRAME_GRANT: return on_grant(entry, frame, err);
	case FRAME_DATA: return on_gateway_data(entry, frame, err);
	case FRAME_CREDIT: return on_gateway_credit(entry, frame, err);
	case FRAME_AGAIN:
		entry->granted = false;
		return forward(entry->from, entry->req, frame, err);
	case FRAME_WAITING: return forward(entry->from, entry->req, frame, err);
	default:
		return err_set(err, ERR_INVALID, "a frame '%s' is no part of a call",
			       frame_name(frame->type));
	}
}

/* Numbers of calls that an agent cancelled, or that died with it, are unknown here and pass
 * silently: the gateway could not know yet. */
int call_relay_from_gateway(struct call_relay *relay, const struct frame *frame,
			    struct call_entry **ret_entry, bool *ret_over, struct err *err)
{
	struct call_entry *entry = find_number(relay, json_i64(frame->header, "req", 0));
	*ret_entry = NULL;
	*ret_over = false;
	if (!entry || entry->over || !entry->released)
		return 0;
	if (frame->type == FRAME_END) {
		if (forward(entry->from, entry->req, frame, err) < 0)
			return -1;
		entry->over = *ret_over = true;
	} else if (from_gateway(entry, frame, err) < 0) {
		return -1;
	}
	*ret_entry = entry;
	return 0;
}

/* ---- deaths ---- */

void call_relay_drop_agent(struct call_relay *relay, struct channel *from,
			   void (*fn)(struct call_entry *entry, void *arg), void *arg)
{
	struct call_entry *next;
	for (struct call_entry *e = relay->first; e; e = next) {
		next = e->next;
		if (e->from != from)
			continue;
		abort_call(relay, e);
		if (fn)
			fn(e, arg);
		call_relay_close(relay, e);
	}
}

/* True when the call is over by this death. */
static bool lose_gateway(struct call_entry *entry)
{
	bool granted = entry->granted;
	entry->gateway_deaths++;
	entry->released = entry->granted = false;
	entry->marks_stale = entry->marks_owed;
	if (entry->gateway_deaths >= GATEWAY_DEATHS) {
		send_end(entry, "failed", CALL_GATEWAY, 0,
			 "the gateway died twice during this call");
		return true;
	}
	if (granted) {
		channel_sendf(entry->from, FRAME_AGAIN, NULL, 0,
			      "\"req\":%" PRId64 ",\"attempt\":%d,\"reason\":\"gateway\"",
			      entry->req, entry->attempt);
	} else {
		channel_sendf(entry->from, FRAME_WAITING, NULL, 0,
			      "\"req\":%" PRId64 ",\"reason\":\"gateway\"", entry->req);
	}
	return false;
}

void call_relay_gateway_died(struct call_relay *relay,
			     void (*fn)(struct call_entry *entry, void *arg), void *arg)
{
	struct call_entry *next;
	relay->gateway = NULL;
	for (struct call_entry *e = relay->first; e; e = next) {
		next = e->next;
		if (!e->released || e->over || !lose_gateway(e))
			continue;
		if (fn)
			fn(e, arg);
		call_relay_close(relay, e);
	}
}
