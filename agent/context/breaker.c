/*
 * breaker.c - counts failures and refills. Without it a window whose fixed part and newest round are
 * above the threshold would be compacted before every request, each time at the price of the whole
 * prefix (trap 1).
 */
#include "agent/context/breaker.h"

#include <stdio.h>

void breaker_init(struct breaker *breaker)
{
	*breaker = (struct breaker){.compacted_round = -1};
}

static void open(struct breaker *breaker, const char *why)
{
	breaker->state = BREAKER_OPEN;
	snprintf(breaker->why, sizeof(breaker->why), "%s", why);
}

void breaker_wanted(struct breaker *breaker, int64_t round)
{
	if (breaker->compacted_round < 0 || round > breaker->compacted_round + 1)
		breaker->refills = 0;
	else if (++breaker->refills >= BREAKER_LIMIT)
		open(breaker, "the window was full again within one round, three times");
}

void breaker_failed(struct breaker *breaker, const char *why)
{
	if (++breaker->failures >= BREAKER_LIMIT)
		open(breaker, why);
}

void breaker_check_failed(struct breaker *breaker)
{
	if (++breaker->checks >= BREAKER_CHECKS)
		open(breaker, "two summaries in a row did not pass the check");
}

void breaker_succeeded(struct breaker *breaker, int64_t round)
{
	breaker->checks = 0;
	breaker->failures = 0;
	breaker->compacted_round = round;
}

void breaker_compacted(struct breaker *breaker)
{
	breaker->unjudged = true;
}

void breaker_judged(struct breaker *breaker, bool above_threshold)
{
	if (!breaker->unjudged)
		return;
	breaker->unjudged = false;
	breaker->futile = above_threshold ? breaker->futile + 1 : 0;
	if (breaker->futile >= BREAKER_FUTILE)
		open(breaker, "the provider counts as much as before, twice");
}
