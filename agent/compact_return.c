/*
 * compact_return.c - see compact_return.h. Prices are the model table's; the calls are taken at those of the
 * model that was asked.
 */
#include "agent/compact_return.h"

#include "agent/events.h"
#include "agent/state.h"
#include "base/memory.h"

double compact_cost_of_calls(const struct agent *a, const struct compact_cost *cost)
{
	const struct model_usage *u = &cost->calls;

	return model_cost(cost->asked ? cost->asked : a->settings->model, u->input, u->cache_read,
			  u->cache_write, u->cache_write_1h, u->output);
}

double compact_cost_of_next(const struct agent *a, const struct compact_cost *cost)
{
	int64_t kept = MIN(cost->kept, cost->after);

	return model_cost(a->settings->model, 0, kept, cost->after - kept, 0, 0);
}

/* What the next prompt costs more because its changed part is not in the cache. */
static double cost_of_rewrite(const struct agent *a, const struct compact_cost *cost)
{
	return compact_cost_of_next(a, cost) -
	       model_cost(a->settings->model, 0, cost->after, 0, 0, 0);
}

void compact_account_open(struct agent *a, const char *trigger, const struct compact_cost *cost)
{
	double calls = compact_cost_of_calls(a, cost);

	compact_account_settle(a);
	a->account = (struct compact_account){
		.open = true,
		.trigger = trigger,
		.saved = MAX(cost->before - cost->after, 0),
		.round = a->conversation.round,
		.spent = calls < 0 ? -1 : calls + MAX(cost_of_rewrite(a, cost), 0),
	};
}

void compact_account_settle(struct agent *a)
{
	struct compact_account *c = &a->account;
	struct event_return_facts facts = {
		.trigger = c->trigger,
		.saved = c->saved,
		.rounds = a->conversation.round - c->round,
		.spent = c->spent,
	};

	if (!c->open)
		return;
	c->open = false;
	facts.gained = c->spent < 0 ? 0
				    : (double)facts.rounds *
					      model_cost(a->settings->model, 0, c->saved, 0, 0, 0);
	event_compact_return(a->channel, &facts);
}
