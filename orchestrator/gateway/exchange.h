/*
 * exchange.h - one model call as the gateway serves it, over all of its attempts.
 *
 *   state     what holds                                   leaves by
 *   QUEUED    ticket in the queue, nothing else            grant -> ACTIVE; cancel -> over
 *   ACTIVE    slot, transfer, open window                  done -> over; again -> QUEUED; cancel ->
 * over
 *
 * "Over" is the end of the object: the owner frees it when on_over is called. No copy of a body is
 * kept: after `again` the agent sends it once more.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_EXCHANGE_H
#define BATON_ORCHESTRATOR_GATEWAY_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "handoff/call.h"
#include "handoff/channel.h"
#include "orchestrator/gateway/admission.h"
#include "orchestrator/gateway/settings.h"

struct event_base;
struct transport;
struct exchange;

/* What exchanges share; owned by the server. */
struct exchange_host {
	struct event_base *base;
	struct channel *channel;
	struct gateway_settings *settings;
	struct transport *transport;
	struct admission *admission;
	/* The queue has changed: call admission_next from the loop, soon. */
	void (*on_queue)(void *arg);
	/* The call is over and its end is sent: free it. */
	void (*on_over)(struct exchange *x, void *arg);
	void *arg;
};

/* Takes a request frame. A request that cannot be served (unknown provider, missing key) is
 * answered at once with `end`, and *ret is NULL. */
void exchange_open(struct exchange_host *host, const struct frame *frame, struct exchange **ret);
void exchange_free(struct exchange *x); /* NULL allowed; says nothing to anybody */
int64_t exchange_req(const struct exchange *x);

void exchange_grant(struct exchange *x); /* its ticket is in flight */
/* Tells the agent why it waits, if that is news. */
void exchange_wait(struct exchange *x, int64_t now);

/* Frames of the call; -1 if the other side broke the protocol. The exchange may be over after any.
 */
int exchange_data(struct exchange *x, const struct frame *frame, struct err *err);
void exchange_body_end(struct exchange *x);
void exchange_credit(struct exchange *x, int64_t bytes);
void exchange_cancel(struct exchange *x);

#endif
