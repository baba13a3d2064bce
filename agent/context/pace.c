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

	return (double)in->summary * price->output + (double)in->base * (write - price->cache_read);
}

/* Models without a cache pay the full price for each token of each round. */
static double reading(const struct model *model)
{
	const struct model_price *price = &model->price;

	return model->cache == CACHE_NONE || price->cache_read <= 0 ? price->input
								    : price->cache_read;
}

int64_t pace_threshold(const struct pace_input *in)
{
	const struct model_price *price = &in->model->price;
	double r = reading(in->model), rounds;

	if (!price->known || r <= 0 || in->growth <= 0)
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

	if (!price->known)
		return false;
	/* The call itself reads the window once more. */
	return (double)(used - in->base) * r * (double)rounds >
	       fixed_cost(in, price) + (double)used * r;
}
