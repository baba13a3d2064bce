/*
 * price.c - the sum of price.h.
 *
 * Where a provider caches by itself it names no price for a write: what is not read from its cache costs
 * as input. Rounds to come are bounded, because an agent that may work for a thousand rounds mostly does
 * not, and a rewrite that pays only after a hundred of them is a bet.
 */
#include "agent/context/price.h"

#include "base/memory.h"

int64_t price_tokens_from(const struct view *view, size_t first)
{
	int64_t sum = 0;

	for (size_t i = first; i < view->n; i++)
		sum += view->list[i]->estimate;
	return sum;
}

/* Tokens that are not in the cache, against those that are. */
static void prices(const struct model *model, const struct rewrite *r, double *write, double *read)
{
	bool dear = model->tier_above > 0 && r->input > model->tier_above;
	const struct model_price *p = dear ? &model->tier_price : &model->price;

	*read = p->cache_read;
	*write = model->cache == CACHE_EXPLICIT ? p->cache_write : p->input;
	if (model->cache == CACHE_NONE)
		*read = *write = p->input;
}

struct rewrite_price price_rewrite(const struct model *model, const struct rewrite *r)
{
	struct rewrite_price ret = {.known = model->price.known};
	double write, read;

	if (!ret.known)
		return ret;
	prices(model, r, &write, &read);
	if (!r->cache_lapsed)
		ret.cost = (double)MAX(r->rewritten, 0) * MAX(write - read, 0);
	ret.saved =
		(double)MAX(r->freed, 0) * read * (double)MAX(MIN(r->rounds_left, PRICE_ROUNDS), 0);
	return ret;
}

bool price_pays(const struct model *model, const struct rewrite *rewrite)
{
	struct rewrite_price price = price_rewrite(model, rewrite);

	return price.known && price.saved > price.cost;
}
