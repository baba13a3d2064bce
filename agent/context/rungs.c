/*
 * rungs.c - the table of the ladder and the loop over it.
 */
#include "agent/context/rungs.h"

#include "agent/context/clear.h"

#include "base/memory.h"

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
	{"clear", RUNG_REQUEST, RUNG_FREE, true, clear_wanted, clear_run},
};

const struct rung *rung_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(rungs);
	return rungs;
}

int rungs_run(enum rung_time time, struct rung_input *in, int64_t goal, int64_t *ret_freed,
	      struct err *err)
{
	int64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rungs); i++) {
		int64_t freed = 0;

		if (rungs[i].time != time)
			continue;
		if (time == RUNG_REQUEST && !rungs[i].early && ledger_used(in->ledger) <= goal)
			continue;
		if (!rungs[i].wanted(in))
			continue;
		if (rungs[i].run(in, &freed, err) < 0)
			return err_prefix(err, "%s", rungs[i].name);
		/* What is kept out on arrival was never in the window: only later rungs remove. */
		if (time == RUNG_REQUEST)
			ledger_removed(in->ledger, freed);
		sum += freed;
	}
	*ret_freed = sum;
	return 0;
}
