/*
 * pace.c - the best size of a window.
 *
 * A cycle of n rounds begins at base b and grows by g a round; with r the price of a cached token and F
 * what a compaction costs once, a round costs r b + r g n / 2 + F / n, least at n = sqrt(2 F / (r g)).
 */
#include "agent/context/pace.h"

#include <math.h>

#include "base/memory.h"

/* Once per compaction: the summary is written, and what stays is written to the cache instead of read. */
static double fixed_cost(const struct pace_input *in, const struct model_price *price)
{
	double write = price->cache_write > 0 ? price->cache_write : price->input;

	double stays = (double)in->base * (write - price->cache_read);

	/* Another model has none of it in its cache. What grew since the last compaction it reads once
	 * however long a cycle is, so only the base, which it reads in each cycle, has a part in the
	 * choice. */
	if (in->asked)
		return (double)in->summary * in->asked->price.output +
		       (double)in->base * in->asked->price.input + stays;
	return (double)in->summary * price->output + stays;
}

/* Models without a cache pay the full price for each token of each round. */
static double reading(const struct model *model)
{
	const struct model_price *price = &model->price;

	return model->cache == CACHE_NONE || price->cache_read <= 0 ? price->input
								    : price->cache_read;
}

static bool known(const struct pace_input *in)
{
	return in->model->price.known && (!in->asked || in->asked->price.known);
}

int64_t pace_threshold(const struct pace_input *in)
{
	const struct model_price *price = &in->model->price;
	double r = reading(in->model), rounds;

	if (!known(in) || r <= 0 || in->growth <= 0)
		return in->threshold;
	rounds = sqrt(2 * fixed_cost(in, price) / (r * (double)in->growth));
	double best = (double)in->base + rounds * (double)in->growth;
	if (best >= (double)in->threshold)
		return in->threshold;
	return MIN(MAX((int64_t)best, in->least), in->threshold);
}

bool pace_pays(const struct pace_input *in, int64_t used, int64_t rounds)
{
	const struct model_price *price = &in->model->price;
	double r = reading(in->model);

	if (!known(in))
		return false;
	/* The call itself reads the window once more. */
	double call =
		in->asked ? (double)(used - in->base) * in->asked->price.input : (double)used * r;
	return (double)(used - in->base) * r * (double)rounds > fixed_cost(in, price) + call;
}
