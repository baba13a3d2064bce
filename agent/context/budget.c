/*
 * budget.c - W1, W2, W12 and W14 as arithmetic.
 *
 * The fixed numbers of the specification (20,000, 13,000, 20,000, 3,000) come from large windows;
 * in small ones each is capped by a share, so that a window of 8,000 works by the same rules. The
 * one threshold that is ours is `closing`: until a later rung can make room, an agent that nears
 * the blocking limit gets a last request to report, and results that arrive are cut so that this
 * request always fits. A cut off conversation without a report is what users complain of most.
 *
 * Limits are laid from above: blocking, then compact below it, then closing between the two, then
 * what warns. So a knob moves what lies below it and never what lies above.
 */
#include "agent/context/budget.h"

#include "base/memory.h"
#include "base/text.h"

#define COMPACT_BUFFER	   13000 /* where the knob says 0 */
#define WARNING_GAP	   20000
#define BLOCKING_GAP	   3000
#define CLOSING_GAP	   8000
#define REPEATED_PERCENT   92
#define NO_SPAWN_PERCENT   95
#define FULL_PERCENT	   85
#define COLLAPSE_BELOW	   5 /* per cent of effective */
#define DEFAULT_CEILING	   400000
#define DEFAULT_MAX_OUTPUT 8192 /* base/model_table.h: where the table does not know */
#define ANSWER_MARGIN	   512
#define BLOCKING_LEAST	   8 /* the order needs some room below */

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
	return MAX(MIN(effective, ceiling), BLOCKING_LEAST + 1);
}

static int64_t blocking_of(const struct window_budget *b, const struct context_knobs *k)
{
	int64_t e = b->effective;

	if (k->blocking_limit > 0)
		return MAX(MIN(k->blocking_limit, e - 1), BLOCKING_LEAST);
	return e - MAX(MIN(BLOCKING_GAP, share(e, 3)), 1);
}

/* By the buffer or by the share (W4), but some room stays below blocking. */
static int64_t compact_of(const struct window_budget *b, const struct context_knobs *k)
{
	int64_t e = b->effective;
	int64_t buffer = k->compact_buffer > 0 ? k->compact_buffer : COMPACT_BUFFER;
	int64_t most = b->blocking - MAX(share(e, 3), 2);

	if (k->compact_pct > 0)
		return MAX(MIN(share(e, k->compact_pct), b->blocking - 2), 2);
	return MAX(MIN(e - MIN(buffer, share(e, 25)), most), 2);
}

/* Without automatic compaction nothing happens at `compact`, and the warning says how far the end is. */
static int64_t warning_of(const struct window_budget *b)
{
	int64_t gap = MAX(MIN(WARNING_GAP, share(b->effective, 20)), 1);
	int64_t from = b->automatic ? b->compact : b->effective;

	return MAX(MIN(from - gap, b->compact - 1), 1);
}

static void set_thresholds(struct window_budget *b, const struct context_knobs *k)
{
	int64_t e = b->effective;

	b->automatic = k->compact_auto && k->compact_any;
	b->blocking = blocking_of(b, k);
	b->compact = compact_of(b, k);
	b->closing = MAX(b->blocking - MIN(CLOSING_GAP, share(e, 6)), b->compact + 1);
	b->warning = b->error = warning_of(b);
	/* In small windows closing comes first: still a word before it. */
	b->repeated = MIN(share(e, REPEATED_PERCENT), b->closing - MAX(share(e, 1), 1));
	b->repeated = MAX(b->repeated, b->warning);
	b->no_spawn = share(e, NO_SPAWN_PERCENT);
	b->full = share(e, FULL_PERCENT);
	/* H3: where the buffer puts `compact` below the share, collapse has to come before it. */
	b->collapse = MAX(share(e, k->collapse_pct), 1);
	if (b->collapse >= b->compact)
		b->collapse = MAX(b->compact - MAX(share(e, COLLAPSE_BELOW), 1), 1);
	b->proactive = share(e, k->proactive_pct);
	b->reminder = share(e, k->reminder_pct);
	for (int i = 0; i < BUDGET_MARKS; i++)
		b->marks[i] = e * (i + 1) / (BUDGET_MARKS + 1);
}

static void set_parts(struct window_budget *b, const struct context_knobs *k)
{
	int64_t e = b->effective;

	b->fixed = e / 2;
	b->words = e / 4;
	b->notes = MIN(k->notes_total, share(e, 10));
	b->rehydrate = MIN(k->rehydrate_total, share(e, 28));
	b->results = MIN(k->results_total_chars / BYTES_PER_TOKEN, share(e, 28));
	/* In a small window the memory must leave room for the work that it is about. */
	b->memory = MIN(k->memory_hard, e / 16);
	b->hook_texts = share(e, 10);
	b->clear_at = share(e, k->clear_share);
	b->clear_gain = share(e, k->clear_gain);
}

int budget_init(struct window_budget *budget, const struct model *model,
		const struct context_knobs *knobs, struct err *err)
{
	struct window_budget b = {.window = model->window};

	if (b.window < 64)
		return err_set(err, ERR_USAGE,
			       "the context window of model '%s/%s' is not known: give it with "
			       "--window TOKENS",
			       model->provider, model->name);
	b.max_output = model->max_output > 0 ? model->max_output : DEFAULT_MAX_OUTPUT;
	b.reserve = MIN(MIN(b.max_output, knobs->summary_reserve), share(b.window, 25));
	b.effective = effective_window(&b, model, knobs->working_ceiling);
	set_thresholds(&b, knobs);
	set_parts(&b, knobs);
	*budget = b;
	return 0;
}

int64_t budget_working_space(const struct window_budget *b, int64_t fixed)
{
	return MAX(b->compact - fixed, 0);
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

size_t budget_rows(const struct window_budget *b, struct budget_row *ret, size_t max)
{
	const struct budget_row rows[] = {
		{"window", b->window},	     {"effective", b->effective},
		{"reserve", b->reserve},     {"reminder", b->reminder},
		{"warning", b->warning},     {"error", b->error},
		{"proactive", b->proactive}, {"collapse", b->collapse},
		{"compact", b->compact},     {"repeated", b->repeated},
		{"closing", b->closing},     {"blocking", b->blocking},
		{"no_spawn", b->no_spawn},   {"fixed", b->fixed},
		{"words", b->words},	     {"notes", b->notes},
		{"rehydrate", b->rehydrate}, {"results", b->results},
		{"memory", b->memory},	     {"hook_texts", b->hook_texts},
		{"clear_at", b->clear_at},   {"clear_gain", b->clear_gain},
	};
	size_t n = MIN(max, ARRAY_SIZE(rows));

	memcpy(ret, rows, n * sizeof(*ret));
	return n;
}
