/*
 * budget.h - every threshold of a window as a number (W1 to W4, W7, W12 to W14), and the room for an answer.
 *
 * Pure arithmetic over the model's figures and the knobs; what is used is the ledger's business. All values
 * are tokens, and this is the one place in which a share of a window becomes one: whoever needs a threshold
 * takes it from here. docs/configuration.md has the formulas.
 *
 * For every window of 64 tokens and more, and whatever the knobs say, holds
 *
 *     0 < warning < compact < closing <= blocking < effective <= window
 *
 * A knob that would break it is taken as far as it goes.
 */
#ifndef BATON_AGENT_CONTEXT_BUDGET_H
#define BATON_AGENT_CONTEXT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model_table.h"
#include "handoff/knobs.h"

#define BUDGET_ANSWER_MIN 1024 /* W12: with less room for an answer no request is made */
#define BUDGET_MARKS	  3    /* W13: 25, 50 and 75 % */
#define BUDGET_ROWS_MAX	  32

struct window_budget {
	int64_t window;
	int64_t max_output;
	int64_t reserve;   /* W1: what a compaction's summary may need */
	int64_t effective; /* W1 and W14: the ceiling of all that is used */
	/* W2, as a request grows. */
	int64_t reminder; /* H22: an event; 0: none */
	int64_t warning;
	int64_t error;	   /* a flag of its own, the same number */
	int64_t proactive; /* H22: compact at the next natural break; 0: never */
	int64_t collapse;  /* H3 */
	int64_t compact;
	int64_t repeated; /* with automatic compaction off: warned a second time */
	int64_t closing;  /* above it a last request to report is made while it still fits */
	int64_t blocking; /* no larger request is sent (I3) */
	int64_t no_spawn; /* H3: above it no subagent is started */
	int64_t full; /* a server that fails again and again above it found the prompt too long (trap 11) */
	bool automatic; /* compaction happens by itself at `compact` */
	/* What single parts may take. */
	int64_t fixed;	    /* system prompt, tools and instructions; more is refused */
	int64_t words;	    /* the user's words (X2) */
	int64_t notes;	    /* the session's notes (H4) */
	int64_t rehydrate;  /* all that comes back after a compaction (H13) */
	int64_t results;    /* all results that answer one message (T2) */
	int64_t memory;	    /* the working memory (H18) */
	int64_t hook_texts; /* what hooks add at one event (M6) */
	int64_t clear_at;   /* clearable results above it are cleared (T7) ... */
	int64_t clear_gain; /* ... if so much is gained */
	int64_t marks[BUDGET_MARKS];
};

/* ERR_USAGE if the model's window is not known. */
int budget_init(struct window_budget *budget, const struct model *model,
		const struct context_knobs *knobs, struct err *err);

/* W5: what system prompt and tools of this size leave for the work: the window without them, the reserve and
 * the compact buffer. */
int64_t budget_working_space(const struct window_budget *budget, int64_t fixed);

/* max_tokens of a request with `used` tokens of input: min(wanted, max output, window / 4), less
 * where the window or the margin (1 % or 512) asks for it. 0 if under BUDGET_ANSWER_MIN is left. */
int64_t budget_answer_room(const struct window_budget *budget, int64_t wanted, int64_t used);

/* W7: tokens that arriving results may take, so that a request to report still fits afterwards. */
int64_t budget_results_room(const struct window_budget *budget, int64_t used);

/* Each threshold with its name, for records and events: at most `max` rows in *ret; returns how many. */
struct budget_row {
	const char *name;
	int64_t tokens;
};
size_t budget_rows(const struct window_budget *budget, struct budget_row *ret, size_t max);

#endif
