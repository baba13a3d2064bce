/*
 * run_budget.h - money and tokens of a run (I11, X8): reserved before each call, settled after each
 * attempt.
 *
 * A reservation takes the greatest cost of the attempt: the estimate of the input at the dearest
 * input price that can apply (a cache write) and max_tokens of output. A settlement books what the
 * server told, or an estimate marked so. A call that does not fit waits while others are in flight,
 * whose settlements may free something; with nothing in flight it is refused, naming the max_tokens
 * that would still fit (0: none).
 *
 * Budgets form a chain upwards: an agent's, those of the agents that started it, the run's. A call has to fit into
 * each, and is booked in each.
 */
#ifndef BATON_ORCHESTRATOR_RUN_BUDGET_H
#define BATON_ORCHESTRATOR_RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model_table.h"

struct budget_usage {
	int64_t fresh, cache_read, cache_write, output; /* tokens */
	int64_t estimated_calls, calls;
	double cost; /* USD; stays 0 for a model without prices */
};

struct run_budget {
	char *name;	    /* of a stage, which owns it; NULL */
	double max_cost;    /* < 0: none */
	int64_t max_tokens; /* 0: none */
	bool long_cache;    /* requests ask for a cache of one hour */
	double reserved_cost;
	int64_t reserved_tokens;
	int64_t in_flight;
	struct budget_usage used;
	struct run_budget *above; /* X8: what is spent here is spent there too; NULL: the run's */
};

struct reservation {
	double cost;
	int64_t tokens;
	bool open;
};

enum budget_answer { BUDGET_OK, BUDGET_WAIT, BUDGET_REFUSED };

void run_budget_init(struct run_budget *b, double max_cost, int64_t max_tokens);
/* Has it, or one above it, a limit? */
bool run_budget_is_limited(const struct run_budget *b);
/* The first of the chain into which such a call does not fit; NULL: it fits. */
const struct run_budget *run_budget_obstacle(const struct run_budget *b, const struct model *model,
					     int64_t estimate, int64_t max_tokens);
/* Books of an earlier parent, here and above, but for `known` and what is above that. */
void run_budget_add(struct run_budget *b, const struct run_budget *known,
		    const struct budget_usage *usage);
/* *ret_affordable is set for BUDGET_REFUSED: the largest max_tokens that would still fit, 0 if
 * under 1,024. */
enum budget_answer run_budget_reserve(struct run_budget *b, const struct model *model,
				      int64_t estimate, int64_t max_tokens, struct reservation *ret,
				      int64_t *ret_affordable);
/* Books usage against a reservation, closes it, and adds to `agent` too (may be NULL). */
void run_budget_settle(struct run_budget *b, struct reservation *r, const struct model *model,
		       int64_t fresh, int64_t cache_read, int64_t cache_write,
		       int64_t cache_write_1h, int64_t output, bool estimated,
		       struct budget_usage *agent);
/* Gives a reservation back: nothing was spent (the request never reached a model). */
void run_budget_release(struct run_budget *b, struct reservation *r);

#endif
