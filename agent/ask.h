/*
 * ask.h - one model call: from the view to a whole answer.
 */
#ifndef BATON_AGENT_ASK_H
#define BATON_AGENT_ASK_H

#include "agent/state.h"

/* Another model than the agent's own, under a head of its own (H16). Borrowed; all NULL: the agent's. */
struct ask_apart {
	struct model_client *client;
	const struct model *model;
};

struct ask_result {
	struct stream_answer answer; /* release with stream_answer_release */
	size_t request_bytes;
	int64_t estimate;   /* input tokens, by the ledger */
	int64_t max_tokens; /* W12 */
	int64_t ttft_ms, duration_ms;
	/* Of a call on the side. */
	enum call_purpose purpose;
	enum call_class class; /* of its failure */
	char why[300];
	struct ask_apart apart;
};

/* Checks the limits (I3, W12) and the request (I2), brings the transcript to
 * disk (I5), sends and waits. Answers that break off are asked for again, 3 times at most. 1: the
 * work has ended: no room, or the call failed for good. */
int ask_model(struct agent *a, struct ask_result *ret, struct err *err);
/* A call on the side, on the same head and with a list of messages of its own (H11): it is checked and
 * paid like any other, but nothing of it enters the conversation. 0 with *ret; 1: it failed, *ret says
 * why, and the work goes on; -1: stopped or alone. One attempt: whoever asks knows what a second one is
 * worth. */
int ask_side(struct agent *a, enum call_purpose purpose, struct message *const *list, size_t n,
	     int64_t estimate, int64_t max_tokens, struct ask_result *ret, struct err *err);
/* The same of another model: messages that its client rendered. */
int ask_apart(struct agent *a, const struct ask_apart *apart, enum call_purpose purpose,
	      struct message *const *list, size_t n, int64_t estimate, int64_t max_tokens,
	      struct ask_result *ret, struct err *err);

#endif
