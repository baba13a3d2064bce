/*
 * handoff_ask.h - the model's judgement in a handoff document (R3): one call on the same prefix.
 *
 * What a model knows and no record does: what done means, what was ruled out and why, risks, down to which function
 * the work has come, and what to do first. It adds statements of its own origin; what records say stays. The point of work and
 * the first action are taken from it where they are concrete.
 */
#ifndef BATON_AGENT_HANDOFF_ASK_H
#define BATON_AGENT_HANDOFF_ASK_H

#include "base/err.h"
#include "handoff/document.h"

struct agent;
struct message;

/* 0: `handoff` has it; 1: there is none, `why` says so; -1: stopped or alone. `wrong`: what a check found wrong in the
 * document before; NULL: the first time. */
int handoff_ask(struct agent *a, struct handoff *handoff, const char *wrong, struct err *why,
		struct err *err);

/* The parts of it, for tests. The message that asks; the caller owns it. */
struct message *handoff_request(const struct handoff *handoff, const char *wrong);
/* Takes an answer's statements over. ERR_INVALID: it has no whole <handoff> block, or nothing in it. */
int handoff_take_judgement(struct handoff *handoff, const char *answer, size_t n, struct err *err);

#endif
