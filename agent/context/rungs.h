/*
 * rungs.h - the ladder: the table of what can make or keep room in the window, cheapest first.
 *
 * A rung works on results that arrive (RUNG_ARRIVAL) or on the view before a request
 * (RUNG_REQUEST). A later rung runs only if the earlier ones did not free enough; each says how
 * many tokens it freed, and the ledger books that number. The rungs that need a model call (compact.h) come
 * after these.
 */
#ifndef BATON_AGENT_CONTEXT_RUNGS_H
#define BATON_AGENT_CONTEXT_RUNGS_H

#include "agent/context/arrival.h"
#include "agent/context/budget.h"
#include "agent/context/offload.h"
#include "agent/context/view.h"
#include "agent/ledger.h"
#include "handoff/knobs.h"

enum rung_time { RUNG_ARRIVAL, RUNG_REQUEST };
enum rung_cost { RUNG_FREE, RUNG_MODEL_CALL }; /* what it needs */

struct rung_input {
	struct view *view;
	struct conversation *conversation; /* RUNG_REQUEST: for uids of what a rung makes */
	const struct model *model;
	const struct context_knobs *knobs;
	int64_t rounds_left;
	struct ledger *ledger;
	const struct window_budget *budget;
	struct offload *offload;
	struct arrival *arriving; /* RUNG_ARRIVAL */
	size_t n_arriving;
};

struct rung {
	const char *name;
	enum rung_time time;
	enum rung_cost cost;
	bool early; /* has a trigger of its own below the goal */
	bool (*wanted)(const struct rung_input *in);
	int (*run)(struct rung_input *in, int64_t *ret_freed, struct err *err);
};

/* In the order in which they are tried. */
const struct rung *rung_table(size_t *ret_count);

/* Runs the rungs of this time that want to; before a request only as long as more than `goal`
 * tokens are used. *ret_freed is the sum of what they freed. */
int rungs_run(enum rung_time time, struct rung_input *in, int64_t goal, int64_t *ret_freed,
	      struct err *err);

#endif
