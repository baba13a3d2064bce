/*
 * side_call.c - an attempt with a body of its own.
 */
#include "agent/side_call.h"

#include <stdio.h>

#include "base/memory.h"

struct side_call {
	struct buf body;
	struct attempt *attempt;
};

struct side_call *side_call_open(struct agent *a, const struct side_call_spec *spec,
				 struct err *err)
{
	struct side_call *call = mem_alloc(sizeof(*call));
	struct attempt_spec attempt = {
		.client = spec->client,
		.purpose = CALL_BACKGROUND,
		.body = &call->body,
		.estimate = spec->estimate,
		.max_tokens = spec->max_tokens,
	};

	if (validate_all(spec->list, spec->n, err) == 0 &&
	    client_render_request(spec->client, spec->list, spec->n, spec->max_tokens, -1,
				  &call->body, &attempt.beta, err) == 0)
		call->attempt = attempt_start(a, &attempt, err);
	if (call->attempt)
		return call;
	side_call_free(call);
	return NULL;
}

bool side_call_over(const struct side_call *call)
{
	return attempt_over(call->attempt);
}

int side_call_take(struct side_call *call, struct stream_answer *ret, char *why, size_t why_size)
{
	struct attempt_outcome o;

	attempt_take(call->attempt, &o);
	snprintf(why, why_size, "%s", o.why);
	if (o.kind != ATTEMPT_ANSWER)
		return 1;
	*ret = o.answer;
	return 0;
}

void side_call_free(struct side_call *call)
{
	if (!call)
		return;
	attempt_free(call->attempt);
	buf_release(&call->body);
	free(call);
}
