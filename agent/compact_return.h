/*
 * compact_return.h - what a compaction costs, and later whether it was worth it (H15).
 *
 * Known at once: the calls, the tokens that the provider's cache must take again, the price of the next
 * prompt. Whether it paid depends on how many rounds follow, so that is settled at the next compaction or at
 * the end: tokens saved x rounds x price of reading them - (calls + rewrite).
 */
#ifndef BATON_AGENT_COMPACT_RETURN_H
#define BATON_AGENT_COMPACT_RETURN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/model/client.h"

struct agent;

struct compact_account { /* all zero: nothing is open */
	bool open;
	const char *trigger; /* static */
	int64_t saved;	     /* tokens by which each later prompt is smaller */
	int64_t round;	     /* of the compaction */
	double spent;	     /* USD: calls and rewrite; < 0: prices are not known */
};

struct compact_cost {
	int64_t before, after,
		kept;		   /* tokens: of the window, and of its part that did not change */
	struct model_usage calls;  /* sum */
	const struct model *asked; /* whose calls they are */
};

/* USD, < 0 where prices are not known: of the calls; of the input of the next request. */
double compact_cost_of_calls(const struct agent *a, const struct compact_cost *cost);
double compact_cost_of_next(const struct agent *a, const struct compact_cost *cost);

/* A compaction was made: settles the one before and opens its own account. */
void compact_account_open(struct agent *a, const char *trigger, const struct compact_cost *cost);
/* Sends `compact_return` for what is open; nothing if there is none. Also at the end of the work. */
void compact_account_settle(struct agent *a);

#endif
