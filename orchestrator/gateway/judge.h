/*
 * judge.h - what the end of an attempt means: done, worth another attempt, or failed for good.
 *
 * Looks at one result only; how often to try and when is the exchange's decision.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_JUDGE_H
#define BATON_ORCHESTRATOR_GATEWAY_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/gateway/classify.h"
#include "orchestrator/gateway/settings.h"
#include "orchestrator/gateway/transfer.h"

struct judgement {
	bool ok;
	struct verdict v; /* if not ok: class, numbers, message, whether a retry can help */
	char reason[256]; /* one line for `again` and notes: "status 529: Overloaded" */
	bool immediate;	  /* an old connection was dead: nothing to wait for */
	bool stalled;	  /* by a timer; a second time is the end (trap 75) */
	bool unreached;	  /* no connection was made */
	int64_t asked_ms; /* the wait that the server asks for; -1: none */
};

void judge_attempt(const struct transfer_result *r, const struct provider *p,
		   struct judgement *ret);
void judgement_release(struct judgement *j);

#endif
