/*
 * budget.c - W1, W2, W12 and W14 as arithmetic.
 *
 * The fixed numbers of the specification (20,000, 13,000, 20,000, 3,000) come from large windows;
 * in small ones each is capped by a share, so that a window of 8,000 works by the same rules. The
 * one threshold that is ours is `closing`: until a later rung can make room, an agent that nears
 * the blocking limit gets a last request to report, and results that arrive are cut so that this
 * request always fits. A cut off conversation without a report is what users complain of most.
 */
#include "agent/context/budget.h"

#include "base/memory.h"

#define SUMMARY_RESERVE	   20000
#define COMPACT_BUFFER	   13000
#define WARNING_GAP	   20000
#define BLOCKING_GAP	   3000
#define CLOSING_GAP	   8000
#define DEFAULT_CEILING	   400000
#define DEFAULT_MAX_OUTPUT 8192 /* base/model_table.h: where the table does not know */
#define ANSWER_MARGIN	   512

static int64_t share(int64_t of, int64_t percent)
{
	return of * percent / 100;
}

static int64_t effective_window(const struct window_budget *b, const struct model *model,
				int64_t ceiling)
{
	int64_t effective = b->window - b->reserve;

	if (model->input_limit > 0)
		effective = MIN(effective, model->input_limit);
	if (ceiling <= 0) {
		ceiling = DEFAULT_CEILING;
		if (model->tier_above > 0)
			ceiling = MIN(ceiling, model->tier_above);
	}
	return MIN(effective, ceiling);
}

int budget_init(struct window_budget *budget, const struct model *model, int64_t compact_buffer,
		int64_t ceiling, struct err *err)
{
	struct window_budget b = {.window = model->window};
	int64_t gap, e;

	if (b.window < 64)
		return err_set(err, ERR_USAGE,
			       "the context window of model '%s/%s' is not known: give it with "
			       "--window TOKENS",
			       model->provider, model->name);
	b.max_output = model->max_output > 0 ? model->max_output : DEFAULT_MAX_OUTPUT;
	b.reserve = MIN(MIN(b.max_output, SUMMARY_RESERVE), share(b.window, 25));
	b.effective = e = effective_window(&b, model, ceiling);
	gap = MAX(MIN(BLOCKING_GAP, share(e, 3)), 1);
	b.blocking = e - gap;
	if (compact_buffer <= 0)
		compact_buffer = COMPACT_BUFFER;
	/* A buffer that somebody set too small must not put compact at or above blocking. */
	compact_buffer = MAX(MIN(compact_buffer, share(e, 25)), gap + MAX(share(e, 3), 2));
	b.compact = e - compact_buffer;
	b.warning = b.compact - MAX(MIN(WARNING_GAP, share(e, 20)), 1);
	b.closing = MAX(b.blocking - MIN(CLOSING_GAP, share(e, 6)), b.compact + 1);
	*budget = b;
	return 0;
}

void budget_compact_at(struct window_budget *b, int64_t percent)
{
	int64_t gap = b->compact - b->warning;

	if (percent <= 0)
		return;
	b->compact = MAX(MIN(share(b->effective, percent), b->blocking - 2), 2);
	b->warning = MAX(b->compact - gap, 1);
	b->closing = MAX(b->closing, b->compact + 1);
}

int64_t budget_answer_room(const struct window_budget *budget, int64_t wanted, int64_t used)
{
	int64_t margin = MAX(budget->window / 100, ANSWER_MARGIN);
	int64_t left = budget->window - used - margin;
	int64_t room = MIN(MIN(wanted, budget->max_output), budget->window / 4);
	int64_t least = MIN(BUDGET_ANSWER_MIN, room);

	room = MIN(room, left);
	return room < least || room <= 0 ? 0 : room;
}

int64_t budget_results_room(const struct window_budget *budget, int64_t used)
{
	/* Half of the gap stays free: the nudge, and the error of the estimate. */
	int64_t limit = budget->closing + (budget->blocking - budget->closing) / 2;

	return MAX(limit - used, 0);
}
