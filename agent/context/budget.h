/*
 * budget.h - the window's thresholds and the room for an answer (W1, W2, W12, W14).
 *
 * Pure arithmetic over the model's figures; what is used is the ledger's business. All values are
 * tokens. For every window of 64 tokens and more, warning < compact < closing <= blocking <
 * effective holds.
 */
#ifndef BATON_AGENT_CONTEXT_BUDGET_H
#define BATON_AGENT_CONTEXT_BUDGET_H

#include <stdint.h>

#include "base/err.h"
#include "base/model_table.h"

#define BUDGET_ANSWER_MIN 1024 /* W12: with less room for an answer no request is made */

struct window_budget {
	int64_t window;
	int64_t reserve;   /* W1: what a compaction's summary may need */
	int64_t effective; /* W1 and W14: the ceiling of all that is used */
	int64_t compact;   /* W2 */
	int64_t warning;
	int64_t closing;  /* above it a last request to report is made while it still fits */
	int64_t blocking; /* no larger request is sent (I3) */
	int64_t max_output;
};

/* compact_buffer by W3; ceiling 0: the default of W14. ERR_USAGE if the window is not known. */
int budget_init(struct window_budget *budget, const struct model *model, int64_t compact_buffer,
		int64_t ceiling, struct err *err);

/* Moves the compact threshold, and warning with it, to a share of effective (W4). The order of the
 * thresholds stays: a share that would break it is taken as far as it goes. 0: as it is. */
void budget_compact_at(struct window_budget *budget, int64_t percent);

/* max_tokens of a request with `used` tokens of input: min(wanted, max output, window / 4), less
 * where the window or the margin (1 % or 512) asks for it. 0 if under BUDGET_ANSWER_MIN is left. */
int64_t budget_answer_room(const struct window_budget *budget, int64_t wanted, int64_t used);

/* W7: tokens that arriving results may take, so that a request to report still fits afterwards. */
int64_t budget_results_room(const struct window_budget *budget, int64_t used);

#endif
