/*
 * rungs.h - the ladder: the table of what can make or keep room in the window, cheapest first.
 *
 * A rung works on results that arrive (RUNG_ARRIVAL) or on the view before a request
 * (RUNG_REQUEST). A later rung runs only if the earlier ones did not free enough; each says how
 * many tokens it freed, and epoch.h books that number. The rungs that need a model call (compact.h) come
 * after these.
 *
 * Some rungs have a trigger of their own below the goal (`early`): they run when the model's prices say
 * that it pays. One (decay) never ends an epoch by itself: it joins when another rung did.
 */
#ifndef BATON_AGENT_CONTEXT_RUNGS_H
#define BATON_AGENT_CONTEXT_RUNGS_H

#include "agent/context/arrival.h"
#include "agent/context/budget.h"
#include "agent/context/epoch.h"
#include "agent/context/offload.h"
#include "agent/context/view.h"
#include "agent/ledger.h"
#include "handoff/knobs.h"

enum rung_time { RUNG_ARRIVAL, RUNG_REQUEST };
enum rung_cost { RUNG_FREE, RUNG_MODEL_CALL }; /* what it needs */

struct rung;
struct rung_input;

/* What a rung did before a request, for events; `before` and `after` are tokens that are used. */
typedef void (*rung_done_fn)(void *arg, const struct rung *rung, const struct epoch_done *done,
			     int64_t before, int64_t after);

struct rung_input {
	struct view *view;
	struct conversation *conversation; /* RUNG_REQUEST: for uids of what a rung makes */
	const struct model *model;
	const struct context_knobs *knobs;
	int64_t rounds_left;
	int64_t idle_ms; /* since the last request; 0: none was made, or not known (T8) */
	struct ledger *ledger;
	const struct window_budget *budget;
	struct offload *offload;
	struct arrival *arriving; /* RUNG_ARRIVAL */
	size_t n_arriving;
	rung_done_fn on_done; /* NULL: nobody asks */
	void *arg;

	struct epoch_done done; /* of the rung that runs; rungs_run clears it before each */
	int64_t epoch;		/* of the view when rungs_run began */
};

struct rung {
	const char *name;
	enum rung_time time;
	enum rung_cost cost;
	bool early; /* has a trigger of its own below the goal */
	/* Cheap: no walk over the history. Whether it is worth it is found in run, which may free nothing. */
	bool (*wanted)(const struct rung_input *in);
	int (*run)(struct rung_input *in, int64_t *ret_freed, struct err *err);
};

/* In the order in which they are tried. */
const struct rung *rung_table(size_t *ret_count);

/* Runs the rungs of this time that want to; before a request only as long as more than `goal`
 * tokens are used. A rung that found nothing is not asked again until 2 % of effective have come.
 * *ret_freed is the sum of what they freed. */
int rungs_run(enum rung_time time, struct rung_input *in, int64_t goal, int64_t *ret_freed,
	      struct err *err);

/* Something else has ended the epoch since in->epoch: the rungs that only join may run. */
int rungs_join(struct rung_input *in, int64_t *ret_freed, struct err *err);

/* ---- for rungs ---- */

/* An edit of this input's view. */
void rung_begin(const struct rung_input *in, const char *name, struct epoch_edit *edit);
/* Is freeing so much by a change at view[first] worth ending the epoch? At least budget.clear_gain, and above the compact threshold always (a summary would be next), else by the prices. */
bool rung_earns(const struct rung_input *in, size_t first, int64_t freed);
/* T8: by the time since the last request the provider has dropped its cache. */
bool rung_cache_lapsed(const struct rung_input *in);

#endif
