/*
 * attempt.h - one attempt of a model call: opened, fed by the transport, taken when it is over.
 *
 * Below ask.c (the main call and calls that are waited for) and side_call.c (calls in the background).
 * The gateway retries what it sees fail; what only the parser can see (a stream that ends before its
 * stop reason, an error inside a 200) is a broken answer here, and whoever asked decides.
 */
#ifndef BATON_AGENT_ATTEMPT_H
#define BATON_AGENT_ATTEMPT_H

#include "agent/state.h"

struct attempt;

struct attempt_spec {
	struct model_client *client;
	const struct model *model; /* NULL: the agent's own */
	enum call_purpose purpose;
	const struct buf *body; /* borrowed until the attempt is freed: it may be asked for again */
	const char *beta;
	int64_t estimate, max_tokens;
};

/* NULL: the call could not be opened. */
struct attempt *attempt_start(struct agent *a, const struct attempt_spec *spec, struct err *err);
bool attempt_over(const struct attempt *at);
bool attempt_granted(
	const struct attempt *at); /* its body is on the way: what comes now is waiting */
int attempt_server_errors(const struct attempt *at); /* HTTP 5xx in a row, by the gateway's word */
/* Cancels it if it is not over. NULL allowed. */
void attempt_free(struct attempt *at);

enum attempt_kind {
	ATTEMPT_ANSWER,	 /* whole; `answer` is set */
	ATTEMPT_REFUSED, /* the server refused inside its answer */
	ATTEMPT_BROKEN,	 /* worth another try */
	ATTEMPT_FAILED,	 /* the gateway gave up: `end` */
};

struct attempt_outcome {
	enum attempt_kind kind;
	struct stream_answer answer; /* of ATTEMPT_ANSWER: the caller releases it */
	struct call_end end;	     /* of ATTEMPT_FAILED; its message is in `why` */
	int64_t ttft_ms;	     /* -1: no content came */
	char why[480];
};

/* What an attempt that is over gave; settles it. Once. */
void attempt_take(struct attempt *at, struct attempt_outcome *ret);

#endif
