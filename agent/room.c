/*
 * room.c - runs the ladder before a request.
 *
 * First of all that a request needs, so that one large result does not force an end that room would avert.
 */
#include "agent/room.h"

#include "agent/compact.h"
#include "agent/context/rungs.h"
#include "agent/events.h"

static struct rung_input rung_input(struct agent *a)
{
	return (struct rung_input){
		.view = &a->view,
		.conversation = &a->conversation,
		.model = a->settings->model,
		.knobs = &a->settings->knobs,
		.rounds_left = a->settings->max_rounds - a->conversation.round,
		.ledger = &a->ledger,
		.budget = &a->budget,
		.offload = &a->offload,
	};
}

/* The rungs that need no model call. */
static int run_rungs(struct agent *a, struct err *err)
{
	struct rung_input in = rung_input(a);
	int64_t before = ledger_used(&a->ledger), freed = 0;

	view_sync(&a->view, &a->conversation);
	if (rungs_run(RUNG_REQUEST, &in, a->budget.compact, &freed, err) < 0)
		return -1;
	if (freed) {
		a->validator = (struct validator){.n = 0}; /* what passed was another list (I2) */
		event_cleared(a->channel, before, ledger_used(&a->ledger));
	}
	return 0;
}

int room_make(struct agent *a, struct err *err)
{
	const struct context_knobs *k = &a->settings->knobs;

	if (a->forced || !k->compact_auto || !k->compact_any ||
	    waiter_report_wanted(a->waiter, NULL))
		return 0;
	return run_rungs(a, err) < 0 ? -1 : compact_if_needed(a, err);
}
