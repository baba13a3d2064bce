/*
 * price.h - does it pay to rewrite the view (W11)?
 *
 * A rewrite has a price: what stands behind the first change is no longer in the provider's cache and is
 * written there again. And it brings something: each round to come reads less. Both follow from the
 * model's prices and are the same sum for every rung, so that it is done here and nowhere else:
 *
 *     cost  = tokens behind the first change, as they will be   x (price of a write - price of a read)
 *     saved = tokens that are freed   x rounds to come   x price of a read
 *
 * Models that do not cache read all of it afresh each round: a rewrite costs nothing. A cache that has
 * lapsed (T8) is gone already: the same. Money is USD per million tokens times tokens, that is millionths
 * of a dollar.
 */
#ifndef BATON_AGENT_CONTEXT_PRICE_H
#define BATON_AGENT_CONTEXT_PRICE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/context/view.h"
#include "base/model_table.h"

#define PRICE_ROUNDS 20 /* at most that many rounds to come are counted on */

struct rewrite {
	int64_t rewritten; /* tokens behind the first change, after it */
	int64_t freed;
	int64_t rounds_left; /* of the agent; PRICE_ROUNDS at most count */
	int64_t input;	     /* tokens of a request: the price may have tiers */
	bool cache_lapsed;
};

struct rewrite_price {
	bool known; /* else the others are 0 */
	double cost, saved;
};

/* The tokens of view[first, end). */
int64_t price_tokens_from(const struct view *view, size_t first);

struct rewrite_price price_rewrite(const struct model *model, const struct rewrite *rewrite);
/* saved > cost; false where the prices are not known. */
bool price_pays(const struct model *model, const struct rewrite *rewrite);

#endif
