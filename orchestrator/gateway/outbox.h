/*
 * outbox.h - the answer's bytes on their way to the agent: small pieces are gathered for a moment.
 *
 * The first piece after a pause goes at once; what follows within 20 ms is gathered up to 16 KiB.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_OUTBOX_H
#define BATON_ORCHESTRATOR_GATEWAY_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "handoff/call.h"
#include "handoff/channel.h"

struct outbox;

struct outbox *outbox_new(struct event_base *base, struct channel *ch, int64_t req,
			  struct call_window *window);
void outbox_free(struct outbox *o); /* NULL allowed; what is in it is dropped */
/* The caller has looked that window->may_send covers outbox_pending and n. */
void outbox_add(struct outbox *o, const char *bytes, size_t n);
void outbox_flush(struct outbox *o);
void outbox_clear(struct outbox *o);
size_t outbox_pending(const struct outbox *o);

#endif
