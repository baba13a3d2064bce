/*
 * run_budget.c - the arithmetic of reservations; see run_budget.h. Runs in the parent; pure, no
 * I/O.
 */
#include "orchestrator/run_budget.h"

#include "base/memory.h"

#define LEAST_OUTPUT 1024 /* W12: less room than this is not worth a call */

void run_budget_init(struct run_budget *b, double max_cost, int64_t max_tokens)
{
	*b = (struct run_budget){.max_cost = max_cost, .max_tokens = max_tokens};
}

/* The dearest way in which `estimate` tokens of input can be charged. A server keeps a prefix for an
 * hour, at twice the price, only if it was asked to: counting it always would end runs at half of
 * what they may spend. */
static double worst_cost(const struct run_budget *b, const struct model *model, int64_t estimate,
			 int64_t output)
{
	while (b->above)
		b = b->above; /* the kind of cache is the run's */
	double fresh = model_cost(model, estimate, 0, 0, 0, output);
	double written = model_cost(model, 0, 0, estimate, b->long_cache ? estimate : 0, output);

	return MAX(0.0, MAX(fresh, written));
}

static bool fits(const struct run_budget *b, double cost, int64_t tokens)
{
	if (b->max_cost >= 0 && b->used.cost + b->reserved_cost + cost > b->max_cost + 1e-9)
		return false;
	int64_t used = b->used.fresh + b->used.cache_read + b->used.cache_write + b->used.output;
	return !b->max_tokens || used + b->reserved_tokens + tokens <= b->max_tokens;
}

/* The largest output that fits, by halving the distance: prices have tiers, so no division. */
static int64_t affordable_output(const struct run_budget *b, const struct model *model,
				 int64_t estimate, int64_t max_tokens)
{
	int64_t low = 0, high = max_tokens;

	while (low < high) {
		int64_t mid = low + (high - low + 1) / 2;
		if (fits(b, worst_cost(b, model, estimate, mid), estimate + mid))
			low = mid;
		else
			high = mid - 1;
	}
	return low >= LEAST_OUTPUT ? low : 0;
}

bool run_budget_is_limited(const struct run_budget *b)
{
	for (; b; b = b->above) {
		if (b->max_cost >= 0 || b->max_tokens > 0)
			return true;
	}
	return false;
}

const struct run_budget *run_budget_obstacle(const struct run_budget *b, const struct model *model,
					     int64_t estimate, int64_t max_tokens)
{
	double cost = worst_cost(b, model, estimate, max_tokens);

	while (b && fits(b, cost, estimate + max_tokens))
		b = b->above;
	return b;
}

static void reserved(struct run_budget *b, double cost, int64_t tokens, int calls)
{
	for (; b; b = b->above) {
		b->reserved_cost += cost;
		b->reserved_tokens += tokens;
		b->in_flight += calls;
	}
}

enum budget_answer run_budget_reserve(struct run_budget *b, const struct model *model,
				      int64_t estimate, int64_t max_tokens, struct reservation *ret,
				      int64_t *ret_affordable)
{
	const struct run_budget *obstacle = run_budget_obstacle(b, model, estimate, max_tokens);

	if (obstacle) {
		if (obstacle->in_flight > 0)
			return BUDGET_WAIT;
		*ret_affordable = affordable_output(obstacle, model, estimate, max_tokens);
		return BUDGET_REFUSED;
	}
	*ret = (struct reservation){.cost = worst_cost(b, model, estimate, max_tokens),
				    .tokens = estimate + max_tokens,
				    .open = true};
	reserved(b, ret->cost, ret->tokens, 1);
	return BUDGET_OK;
}

void run_budget_release(struct run_budget *b, struct reservation *r)
{
	if (!r->open)
		return;
	reserved(b, -r->cost, -r->tokens, -1);
	r->open = false;
}

static void usage_add(struct budget_usage *u, int64_t fresh, int64_t cache_read,
		      int64_t cache_write, int64_t output, bool estimated, double cost)
{
	u->fresh += fresh;
	u->cache_read += cache_read;
	u->cache_write += cache_write;
	u->output += output;
	u->calls++;
	u->estimated_calls += estimated;
	u->cost += cost;
}

void run_budget_settle(struct run_budget *b, struct reservation *r, const struct model *model,
		       int64_t fresh, int64_t cache_read, int64_t cache_write,
		       int64_t cache_write_1h, int64_t output, bool estimated,
		       struct budget_usage *agent)
{
	double cost =
		MAX(0.0, model_cost(model, fresh, cache_read, cache_write, cache_write_1h, output));

	run_budget_release(b, r);
	for (; b; b = b->above)
		usage_add(&b->used, fresh, cache_read, cache_write, output, estimated, cost);
	if (agent)
		usage_add(agent, fresh, cache_read, cache_write, output, estimated, cost);
}

void run_budget_add(struct run_budget *b, const struct run_budget *known,
		    const struct budget_usage *usage)
{
	for (; b && b != known; b = b->above) {
		b->used.fresh += usage->fresh;
		b->used.cache_read += usage->cache_read;
		b->used.cache_write += usage->cache_write;
		b->used.output += usage->output;
		b->used.calls += usage->calls;
		b->used.estimated_calls += usage->estimated_calls;
		b->used.cost += usage->cost;
	}
}
