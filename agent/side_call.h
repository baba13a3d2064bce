/*
 * side_call.h - a model call in the background: opened, fed by every wait of the agent, taken when it is
 * over. Nothing ever waits for one.
 *
 * It has a body and, if asked for, a head of its own; nothing of it enters the conversation, and it never
 * looks at thresholds (H11). The parent refuses background calls first when money is short (X8): that is
 * a failed call like any other.
 */
#ifndef BATON_AGENT_SIDE_CALL_H
#define BATON_AGENT_SIDE_CALL_H

#include "agent/attempt.h"

struct side_call;

struct side_call_spec {
	struct model_client
		*client; /* whose head it goes under; borrowed until the call is freed */
	struct message *const *list; /* copied into the body at once; rendered by this client */
	size_t n;
	int64_t estimate, max_tokens;
};

/* NULL: it could not be opened. The list is checked first (I2). */
struct side_call *side_call_open(struct agent *a, const struct side_call_spec *spec,
				 struct err *err);
bool side_call_over(const struct side_call *call);
/* Once it is over: 0 with the answer, which the caller releases, or 1 and why there is none. */
int side_call_take(struct side_call *call, struct stream_answer *ret, char *why, size_t why_size);
void side_call_free(struct side_call *call); /* cancels what is open; NULL allowed */

#endif
