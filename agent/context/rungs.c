/*
 * rungs.c - the table of the ladder and the loop over it.
 */
#include "agent/context/rungs.h"

#include "agent/context/clear.h"
#include "agent/context/collapse.h"
#include "agent/context/decay.h"
#include "agent/context/idle.h"
#include "agent/context/price.h"
#include "agent/context/snip.h"
#include "base/memory.h"

#define LOOK_AGAIN    50 /* a fiftieth of effective must have come since a rung found nothing */
#define CACHE_LIFE_MS (5 * 60 * 1000) /* of an explicit marker's end of history (wire.md 1.7) */
#define AUTO_LIFE_MS                                                                               \
	(10 * 60 * 1000) /* of caches that providers keep by themselves: 5 to 10 minutes */

static bool offload_wanted(const struct rung_input *in)
{
	return in->n_arriving > 0;
}

static int offload_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	int64_t room = budget_results_room(in->budget, ledger_used(in->ledger));

	*ret_freed = offload_admit(in->offload, in->ledger, in->arriving, in->n_arriving, room);
	return 0;
}

static const struct rung rungs[] = {
	{"offload", RUNG_ARRIVAL, RUNG_FREE, false, offload_wanted, offload_run},
	{"snip", RUNG_REQUEST, RUNG_FREE, true, snip_wanted, snip_run},
	{"idle", RUNG_REQUEST, RUNG_FREE, true, idle_wanted, idle_run},
	{"clear", RUNG_REQUEST, RUNG_FREE, true, clear_wanted, clear_run},
	{"collapse", RUNG_REQUEST, RUNG_FREE, true, collapse_wanted, collapse_run},
	{"decay", RUNG_REQUEST, RUNG_FREE, true, decay_wanted, decay_run},
};

_Static_assert(ARRAY_SIZE(rungs) <= VIEW_RUNGS, "a view remembers each rung");

const struct rung *rung_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(rungs);
	return rungs;
}

/* What was looked through in vain is looked through again when there is something new, or when the goal
 * was passed: then other conditions hold. */
static bool is_due(const struct rung_input *in, size_t i, int64_t used, int64_t goal)
{
	int64_t looked = in->view->looked[i];

	return !looked || used < looked || (looked <= goal && used > goal) ||
	       used - looked >= in->budget->effective / LOOK_AGAIN;
}

/* Before a request; 0 whether it ran or not. */
static int run_one(size_t i, struct rung_input *in, int64_t goal, int64_t *freed, struct err *err)
{
	const struct rung *rung = &rungs[i];
	int64_t used = ledger_used(in->ledger);

	if ((!rung->early && used <= goal) || !is_due(in, i, used, goal) || !rung->wanted(in))
		return 0;
	in->done = (struct epoch_done){.freed = 0};
	if (rung->run(in, freed, err) < 0)
		return -1;
	in->view->looked[i] = in->done.messages ? 0 : used;
	if (in->done.messages && in->on_done)
		in->on_done(in->arg, rung, &in->done, used, ledger_used(in->ledger));
	return 0;
}

int rungs_run(enum rung_time time, struct rung_input *in, int64_t goal, int64_t *ret_freed,
	      struct err *err)
{
	int64_t sum = 0;

	in->epoch = in->view ? in->view->epoch : 0;
	for (size_t i = 0; i < ARRAY_SIZE(rungs); i++) {
		int64_t freed = 0;
		int rc = 0;

		if (rungs[i].time != time)
			continue;
		if (time == RUNG_REQUEST)
			rc = run_one(i, in, goal, &freed, err);
		else if (rungs[i].wanted(in))
			rc = rungs[i].run(in, &freed, err);
		if (rc < 0)
			return err_prefix(err, "%s", rungs[i].name);
		sum += freed;
	}
	*ret_freed = sum;
	return 0;
}

int rungs_join(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	int64_t freed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rungs); i++) {
		if (rungs[i].run == decay_run && run_one(i, in, INT64_MAX, &freed, err) < 0)
			return err_prefix(err, "%s", rungs[i].name);
	}
	*ret_freed = freed;
	return 0;
}

/* ---- for rungs ---- */

void rung_begin(const struct rung_input *in, const char *name, struct epoch_edit *edit)
{
	epoch_begin(edit, name, in->view, in->ledger, in->conversation,
		    in->model->preserved_thinking);
}

bool rung_cache_lapsed(const struct rung_input *in)
{
	int64_t life = in->model->cache == CACHE_EXPLICIT ? CACHE_LIFE_MS : AUTO_LIFE_MS;

	return in->idle_ms > life;
}

bool rung_earns(const struct rung_input *in, size_t first, int64_t freed)
{
	int64_t used = ledger_used(in->ledger);
	struct rewrite rewrite = {
		.rewritten = price_tokens_from(in->view, first) - freed,
		.freed = freed,
		.rounds_left = in->rounds_left,
		.input = used,
		.cache_lapsed = rung_cache_lapsed(in),
	};

	if (freed <= 0 || freed < in->budget->clear_gain)
		return false;
	return used > in->budget->compact || price_pays(in->model, &rewrite);
}
