/*
 * transport.c - model calls over the channel to the parent, by the call protocol (handoff/call.h).
 */
#include "agent/transport.h"

#include "agent/waiter.h"

static int64_t start(void *arg, const struct call_request *request,
		     const struct call_events *events, void *user, struct err *err)
{
	return call_start(waiter_calls(arg), request, events, user, err);
}

static void cancel(void *arg, int64_t req)
{
	call_cancel(waiter_calls(arg), req);
}

static int wait_events(void *arg, int64_t deadline_ms, struct err *err)
{
	struct err e = ERR_INIT;

	if (wait_poll(arg, NULL, 0, deadline_ms, &e) >= 0 || e.code == ERR_TIMEOUT)
		return 0;
	return err_set(err, e.code, "%s", e.message);
}

/* Settled before the next request at the latest: that stands behind it in the queue. */
static void settle(void *arg, int64_t req, const struct transport_usage *u)
{
	struct channel *ch = waiter_channel(arg);

	channel_hold(ch, true);
	channel_sendf(ch, FRAME_USAGE, NULL, 0,
		      "\"req\":%lld,\"input\":%lld,\"cache_read\":%lld,\"cache_write\":%lld,"
		      "\"output\":%lld,\"estimated\":%s,\"cache_write_1h\":%lld",
		      (long long)req, (long long)u->input, (long long)u->cache_read,
		      (long long)u->cache_write, (long long)u->output,
		      u->estimated ? "true" : "false", (long long)u->cache_write_1h);
	channel_hold(ch, false);
}

struct transport transport_channel(struct waiter *waiter)
{
	return (struct transport){
		.start = start,
		.cancel = cancel,
		.wait = wait_events,
		.settle = settle,
		.arg = waiter,
	};
}
