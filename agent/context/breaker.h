/*
 * breaker.h - when automatic compaction gives up (H10, X1, X3).
 *
 * States and legal moves:
 *
 *   CLOSED --- 3 failures in a row, 2 summaries in a row that did not pass the check (R4), 3 successes that filled
 *              up again within one round, or 2 compactions in a row whose first request the provider counted
 *              above the threshold all the same (trap 1) ---> OPEN
 *
 * A success that lasts resets both counts. OPEN is the end: no compaction is tried again, and what
 * remains is to leave the window in good order ("reset wanted", with the reason).
 */
#ifndef BATON_AGENT_CONTEXT_BREAKER_H
#define BATON_AGENT_CONTEXT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_LIMIT  3
#define BREAKER_FUTILE 2
#define BREAKER_CHECKS 2

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN };

struct breaker {
	enum breaker_state state;
	bool unjudged;		 /* no usage has come since the last compaction (X3) */
	int futile;		 /* in a row */
	int failures, refills;	 /* in a row */
	int checks;		 /* summaries in a row that did not pass the check (R4) */
	int64_t compacted_round; /* of the last success; -1: none */
	bool told;		 /* the opening was reported */
	char why[200];		 /* of OPEN */
};

void breaker_init(struct breaker *breaker);
/* A compaction is wanted in this round: tells a refill from a new need. */
void breaker_wanted(struct breaker *breaker, int64_t round);
void breaker_failed(struct breaker *breaker, const char *why);
void breaker_check_failed(struct breaker *breaker);
void breaker_succeeded(struct breaker *breaker, int64_t round);
/* The view was rewritten, whatever we think of it: the first usage judges it. */
void breaker_compacted(struct breaker *breaker);
/* The provider counted the first request after a compaction. */
void breaker_judged(struct breaker *breaker, bool above_threshold);

#endif
