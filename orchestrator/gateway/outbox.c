/*
 * outbox.c - see outbox.h.
 *
 * A model's deltas are some tens of bytes: a frame for each would cost the agent a wake-up per
 * token.
 *
 * The first delta is not held back, since it ends the time to first token; after it 20 ms are below
 * what a reader notices.
 */
#include "orchestrator/gateway/outbox.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"

#define GATHER_BYTES (16 << 10)
#define GATHER_MS    20

struct outbox {
	struct channel *ch;
	struct call_window *window;
	int64_t req, flushed_at;
	struct buf bytes;
	struct event *timer;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	outbox_flush(arg);
}

struct outbox *outbox_new(struct event_base *base, struct channel *ch, int64_t req,
			  struct call_window *window)
{
	struct outbox *o = mem_alloc(sizeof(*o));
	o->ch = ch;
	o->req = req;
	o->window = window;
	o->flushed_at = -GATHER_MS;
	o->timer = evtimer_new(base, on_timer, o);
	if (!o->timer)
		abort();
	return o;
}

void outbox_free(struct outbox *o)
{
	if (!o)
		return;
	event_free(o->timer);
	buf_release(&o->bytes);
	free(o);
}

void outbox_flush(struct outbox *o)
{
	evtimer_del(o->timer);
	if (o->bytes.len == 0)
		return;
	size_t sent = call_window_send(o->window, o->ch, o->req, o->bytes.data, o->bytes.len);
	buf_drop(&o->bytes, sent);
	o->flushed_at = clock_mono_ms();
}

void outbox_add(struct outbox *o, const char *bytes, size_t n)
{
	buf_add(&o->bytes, bytes, n);
	int64_t since = clock_mono_ms() - o->flushed_at;
	if (o->bytes.len >= GATHER_BYTES || since >= GATHER_MS) {
		outbox_flush(o);
	} else if (!evtimer_pending(o->timer, NULL)) {
		struct timeval tv = clock_timeval(GATHER_MS - since);
		evtimer_add(o->timer, &tv);
	}
}

void outbox_clear(struct outbox *o)
{
	evtimer_del(o->timer);
	buf_release(&o->bytes);
}

size_t outbox_pending(const struct outbox *o)
{
	return o->bytes.len;
}
