/*
 * pace.h - at which size of the window a compaction is cheapest, by the model's prices (W11, H22).
 *
 * Each round reads all of the window from the cache, so a large window costs every round a little; each
 * compaction costs a summary and a rewritten prefix. Between the two lies a best size, which for today's
 * prices is far below what the window holds. Arithmetic only.
 */
#ifndef BATON_AGENT_CONTEXT_PACE_H
#define BATON_AGENT_CONTEXT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model_table.h"

struct pace_input {
	const struct model *model;
	const struct model *asked; /* that summarises; NULL: the same, on its cached prefix */
	int64_t base;		   /* tokens of the window right after a compaction */
	int64_t growth;		   /* tokens that a round adds, on average */
	int64_t summary;	   /* output tokens of a summary */
	int64_t least;		   /* never below it */
	int64_t threshold;	   /* never above it */
};

/* The size; `threshold` where prices are not known or say no less. */
int64_t pace_threshold(const struct pace_input *in);

/* Does a compaction at `used` tokens pay within `rounds` more rounds? Unknown prices: no. */
bool pace_pays(const struct pace_input *in, int64_t used, int64_t rounds);

#endif
