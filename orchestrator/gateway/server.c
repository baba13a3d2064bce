/*
 * server.c - see server.h.
 *
 * The parent numbers the calls. A frame of an unknown number is one that crossed the call's end and
 * is ignored. Grants are given from an event of their own (`pump`), never from within a frame or a
 * curl callback, so that no call can end inside another's handler.
 *
 *   readable  channel_on_readable -> on_frame -> exchange_*
 *   writable  added by the channel when something had to be queued
 *   pump      active when the queue changed, timed for the earliest ticket that may go later
 *   curl      sockets and timer of transport.c -> transfer_finished -> the exchange's on_done
 *
 * The channel's own limit is what all slots together may have outstanding, twice: a parent that
 * reads nothing any more is broken, and holding its bytes for ever would only move the memory here.
 */
#include "orchestrator/gateway/server.h"

#include <stdlib.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "handoff/channel.h"
#include "orchestrator/gateway/admission.h"
#include "orchestrator/gateway/exchange.h"
#include "orchestrator/gateway/settings.h"
#include "orchestrator/gateway/transfer.h"
#include "orchestrator/gateway/transport.h"

/* Buckets; some hundred calls may be open, and each data frame looks one up. */
#define TABLE 256

struct entry {
	struct exchange *x;
	struct entry *next;
};

struct server {
	struct event_base *base;
	struct event *readable, *writable, *pump;
	struct channel *channel;
	struct json_object *keys;
	struct gateway_settings *settings;
	struct transport *transport;
	struct admission *admission;
	struct exchange_host host;
	struct entry *table[TABLE]; /* by the call's number */
	struct err err;
	int rc;
};

static struct entry **find(struct server *s, int64_t req)
{
	struct entry **at = &s->table[(uint64_t)req % TABLE];
	while (*at && exchange_req((*at)->x) != req)
		at = &(*at)->next;
	return at;
}

static void remove_entry(struct server *s, struct entry **at)
{
	struct entry *entry = *at;
	*at = entry->next;
	exchange_free(entry->x);
	free(entry);
}

static void on_over(struct exchange *x, void *arg)
{
	struct server *s = arg;
	remove_entry(s, find(s, exchange_req(x)));
}

static void on_queue_changed(void *arg)
{
	struct server *s = arg;
	event_active(s->pump, EV_TIMEOUT, 0);
}

static void tell_waiting(struct ticket *t, void *arg)
{
	exchange_wait(t->owner, *(int64_t *)arg);
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	int64_t now = clock_mono_ms(), wake;
	struct ticket *t;
	while ((t = admission_next(s->admission, now, &wake)))
		exchange_grant(t->owner);
	admission_each(s->admission, tell_waiting, &now);
	if (wake >= 0) {
		int64_t ms = MAX(1, wake - now);
		struct timeval tv = clock_timeval(ms);
		evtimer_add(s->pump, &tv);
	}
}

/* ---- frames ---- */

static int take_start(struct server *s, const struct frame *frame, struct err *err)
{
	AUTO_JSON struct json_object *doc = NULL;
	if (s->settings)
		return err_set(err, ERR_INVALID, "a second start");
	if (json_parse(frame->body, frame->len, &doc, err) ||
	    gateway_settings_parse(doc, s->keys, &s->settings, err))
		return err_prefix(err, "start");
	if (json_flag(doc, "verbose", false))
		log_be_verbose();
	AUTO_FREE int *slots = mem_alloc(sizeof(int) * (s->settings->n_providers + 1));
	for (size_t i = 0; i < s->settings->n_providers; i++)
		slots[i] = s->settings->providers[i].concurrency;
	s->admission = admission_new(slots, s->settings->n_providers);
	int most = ADMISSION_DEFAULT_SLOTS, sum = 0;
	for (size_t i = 0; i < s->settings->n_providers; i++) {
		most = MAX(most, admission_ceiling(s->admission, i));
		sum += admission_ceiling(s->admission, i);
	}
	if (transport_new(s->base, most, transfer_finished, &s->transport, err))
		return -1;
	/* Calls that fail without a slot are answered too: 32 stands for those. */
	channel_set_limit(s->channel, (size_t)(sum + 32) * 2 * CALL_CREDIT);
	s->host = (struct exchange_host){.base = s->base,
					 .channel = s->channel,
					 .settings = s->settings,
					 .transport = s->transport,
					 .admission = s->admission,
					 .on_queue = on_queue_changed,
					 .on_over = on_over,
					 .arg = s};
	channel_send(s->channel, FRAME_READY, NULL, "{}", 2);
	return 0;
}

static int take_request(struct server *s, const struct frame *frame, struct err *err)
{
	int64_t req = json_i64(frame->header, "req", 0);
	struct entry **at = find(s, req);
	if (*at)
		return err_set(err, ERR_INVALID, "call %lld is open already", (long long)req);
	struct exchange *x;
	exchange_open(&s->host, frame, &x);
	if (x) {
		*at = mem_alloc(sizeof(**at));
		(*at)->x = x;
	}
	return 0;
}

static int take_call_frame(struct server *s, const struct frame *frame, struct err *err)
{
	struct entry **at = find(s, json_i64(frame->header, "req", 0));
	if (!*at)
		return 0;
	struct exchange *x = (*at)->x;
	switch (frame->type) {
	case FRAME_DATA: return exchange_data(x, frame, err);
	case FRAME_END: exchange_body_end(x); break;
	case FRAME_CREDIT: exchange_credit(x, json_i64(frame->header, "bytes", 0)); break;
	case FRAME_CANCEL: exchange_cancel(x); break;
	default: /* abort: the agent is dead, nobody wants to hear of it */
		remove_entry(s, at);
		on_queue_changed(s);
		break;
	}
	return 0;
}

static int on_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct server *s = arg;
	switch (frame->type) {
	case FRAME_START: return take_start(s, frame, err);
	case FRAME_CONTROL: return 0;
	case FRAME_REQUEST:
	case FRAME_DATA:
	case FRAME_END:
	case FRAME_CREDIT:
	case FRAME_CANCEL:
	case FRAME_ABORT:
		if (!s->settings)
			return err_set(err, ERR_INVALID, "a call before start");
		return frame->type == FRAME_REQUEST ? take_request(s, frame, err)
						    : take_call_frame(s, frame, err);
	default:
		return err_set(err, ERR_INVALID, "frame '%s' is not for a gateway",
			       frame_name(frame->type));
	}
}

/* ---- the channel's descriptors ---- */

static void after_io(struct server *s, int rc)
{
	if (rc) {
		s->rc = s->err.code == ERR_CLOSED ? 0 : -1;
		event_base_loopbreak(s->base);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	after_io(s, channel_on_readable(s->channel, &s->err));
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	int rc = channel_on_writable(s->channel, &s->err);
	if (rc == 0 && channel_wants_write(s->channel))
		event_add(s->writable, NULL);
	after_io(s, rc);
}

static void on_queued(struct channel *ch, void *arg)
{
	struct server *s = arg;
	event_add(s->writable, NULL);
}

static int server_init(struct server *s, int fd, struct err *err)
{
	s->base = event_base_new();
	if (!s->base)
		return err_set(err, ERR_IO, "cannot make an event loop");
	s->channel = channel_new(fd, fd, FROM_P, on_frame, s);
	channel_keep(s->channel, NULL);
	s->readable = event_new(s->base, fd, EV_READ | EV_PERSIST, on_readable, s);
	s->writable = event_new(s->base, fd, EV_WRITE, on_writable, s);
	s->pump = event_new(s->base, -1, 0, on_pump, s);
	if (!s->readable || !s->writable || !s->pump || event_add(s->readable, NULL))
		return err_set(err, ERR_IO, "cannot watch the channel");
	channel_on_queue(s->channel, on_queued, s);
	channel_send_hello(s->channel, "gateway");
	return 0;
}

static void server_release(struct server *s)
{
	for (size_t i = 0; i < TABLE; i++) {
		while (s->table[i])
			remove_entry(s, &s->table[i]);
	}
	transport_free(s->transport);
	admission_free(s->admission);
	gateway_settings_free(s->settings);
	struct event *events[] = {s->readable, s->writable, s->pump};
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (events[i])
			event_free(events[i]);
	}
	channel_free(s->channel);
	if (s->base)
		event_base_free(s->base);
}

int server_run(int fd_channel, struct json_object *keys, struct err *err)
{
	struct server s = {.keys = keys};
	int rc = server_init(&s, fd_channel, err);
	if (rc == 0) {
		event_base_dispatch(s.base);
		rc = s.rc;
		if (rc && err)
			*err = s.err;
	}
	server_release(&s);
	return rc;
}
