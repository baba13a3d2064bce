/*
 * compact.h - compaction (H4 to H10, H12, X3): a part of the view gives way to the session's notes, to a
 * summary made by one call on the same prefix, or to facts where neither can be had.
 */
#ifndef BATON_AGENT_COMPACT_H
#define BATON_AGENT_COMPACT_H

#include "agent/state.h"

enum compact_trigger {
	COMPACT_THRESHOLD, /* the window is full */
	COMPACT_PRICE,	   /* it is not, but a smaller window is cheaper (context/pace.h) */
	COMPACT_BREAK,	   /* a natural break above proactive_pct (H22) */
	COMPACT_REACTIVE,  /* the provider says that it is full (H9) */
	COMPACT_MANUAL,	   /* a person asked (H6) */
};
const char *compact_trigger_name(enum compact_trigger trigger);

enum compact_mode { COMPACT_BY_RULE, COMPACT_FROM, COMPACT_UP_TO };

struct compact_request {
	enum compact_trigger trigger;
	const char *focus;	/* H6; NULL: none */
	enum compact_mode mode; /* H8; by rule: what fits the view */
	int64_t pivot;		/* a round, of COMPACT_FROM and COMPACT_UP_TO */
};

/* There is something that could go, and the breaker allows it. */
bool compact_possible(struct agent *a);
/* 0: the view holds less; 1: nothing was done, and `why` (may be NULL) says why: nothing can go, the breaker
 * is open, or a wish of less than need (price, break, manual) failed; -1: stopped or alone. */
int compact_now(struct agent *a, const struct compact_request *request, struct err *why,
		struct err *err);

/* The view as it was before the last compaction, with what came since (X4). 1 and why: there is none, or it
 * would not fit. */
int compact_undo(struct agent *a, struct err *why);

#endif
