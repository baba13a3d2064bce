/*
 * transport.h - the way of a model call out of the agent and of its answer back in.
 *
 * The agent's own one goes over the channel to the parent (transport_channel). It is a seam because a
 * conversation of a thousand rounds must be playable without processes and without time: tests give a
 * transport that answers from memory.
 *
 * Events come from within `wait` only, so whoever opened a call finds it unchanged until it waits.
 */
#ifndef BATON_AGENT_TRANSPORT_H
#define BATON_AGENT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "handoff/call.h"

struct transport_usage { /* tokens of one attempt, for its settlement */
	int64_t input, cache_read, cache_write, output, cache_write_1h;
	bool estimated;
};

struct transport {
	/* Opens a call. Returns its number (> 0), or -1. `user` goes to the events. */
	int64_t (*start)(void *arg, const struct call_request *request,
			 const struct call_events *events, void *user, struct err *err);
	/* Drops it: no event comes afterwards. */
	void (*cancel)(void *arg, int64_t req);
	/* Until something came, for whichever call, or the deadline (clock_mono_ms; INT64_MAX: none)
	 * passed: then 0 too. -1: ERR_CANCELLED or ERR_CLOSED as wait_poll says. */
	int (*wait)(void *arg, int64_t deadline_ms, struct err *err);
	/* What an attempt has cost; `req` may be over. */
	void (*settle)(void *arg, int64_t req, const struct transport_usage *usage);
	void *arg;
};

struct waiter;
/* Over the waiter's channel; borrowed. */
struct transport transport_channel(struct waiter *waiter);

#endif
