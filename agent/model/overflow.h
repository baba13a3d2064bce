/*
 * overflow.h - answers that say by their numbers what no error said: the prompt did not fit.
 *
 * Some servers cut the prompt or answer nothing instead of refusing it (wire.md 3, rows 16, 26, 39,
 * 40). Errors in words are the gateway's to classify; these signs need the answer and our estimate.
 */
#ifndef BATON_AGENT_MODEL_OVERFLOW_H
#define BATON_AGENT_MODEL_OVERFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/model/client.h"

/* True if the context should be compacted because of this answer. window: what is believed, 0
 * unknown; estimate: the ledger's count of the request, 0 unknown. *ret_learned_window is set to
 * the window that the numbers betray, or 0. */
bool answer_hints_overflow(const struct stream_answer *answer, int64_t window, int64_t estimate,
			   int64_t *ret_learned_window);

#endif
