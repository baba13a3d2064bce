/*
 * call_window.c - the callee's windows of one call: what may still be sent, what is still owed.
 *
 * The gateway holds one struct per call, from its request to its end. The window opens by counting
 * marks (call.h says why); the states are
 *
 *   fresh/voided --granted--> marking --last mark--> open --voided--> voided
 *                             marking --voided--> voided      (its mark still comes, and is
 * counted) open    --granted--> marking
 */
#include "handoff/call.h"

#include <inttypes.h>

#include "base/memory.h"

enum { CREDIT_WORTH = 64 << 10 };

void call_window_granted(struct call_window *w)
{
	w->may_send = CALL_CREDIT;
	w->outstanding = 0;
	w->consumed = 0;
	w->marks_due++;
	w->voided = false;
	w->open = false;
}

void call_window_voided(struct call_window *w)
{
	w->may_send = 0;
	w->voided = true;
	w->open = false;
}

int call_window_received(struct call_window *w, size_t n, struct err *err)
{
	if (!w->open)
		return 0;
	if (w->outstanding + (int64_t)n > CALL_CREDIT)
		return err_set(err, ERR_INVALID, "a call's body exceeds its credit");
	w->outstanding += (int64_t)n;
	return 1;
}

/* Small returns would make the caller send small frames for the rest of the body. But when all that
 * came is consumed the caller may have stopped for want of credit, so then any amount is worth it.
 */
void call_window_consumed(struct call_window *w, struct channel *ch, int64_t req, size_t n)
{
	w->consumed = MIN(w->consumed + (int64_t)n, w->outstanding);
	if (!w->open || w->consumed == 0)
		return;
	if (w->consumed < CREDIT_WORTH && w->consumed < w->outstanding)
		return;
	channel_sendf(ch, FRAME_CREDIT, NULL, 0, "\"req\":%" PRId64 ",\"bytes\":%" PRId64, req,
		      w->consumed);
	w->outstanding -= w->consumed;
	w->consumed = 0;
}

/* More credit than was used up cannot come from our relay, which checks it: clipped, not trusted.
 */
void call_window_credit(struct call_window *w, int64_t bytes)
{
	if (bytes == 0) {
		if (w->marks_due > 0)
			w->marks_due--;
		w->open = w->marks_due == 0 && !w->voided;
	} else if (w->open) {
		w->may_send = MIN(w->may_send + bytes, (int64_t)CALL_CREDIT);
	}
}

size_t call_window_send(struct call_window *w, struct channel *ch, int64_t req, const char *bytes,
			size_t n)
{
	size_t sent = 0;
	while (sent < n && w->may_send > 0) {
		size_t part = MIN(n - sent, (size_t)MIN(w->may_send, (int64_t)CALL_PART));
		channel_sendf(ch, FRAME_DATA, bytes + sent, part, "\"req\":%" PRId64, req);
		w->may_send -= (int64_t)part;
		sent += part;
	}
	return sent;
}
