/*
 * decay.h - results fade with their age in rounds (T9, knob decay, off by default).
 *
 *   up to 3 rounds   whole
 *   up to 10         a digest: head and tail, or what the tool thinks worth keeping (about 1,000 tokens)
 *   up to 20         one line (100 tokens)
 *   older            the placeholder of clear.h
 *
 * By rule, and only for results that can be had again. Fading is not worth a cache rewrite, so this rung never
 * ends an epoch by itself: it joins when something else ended one since the last request, and changes
 * nothing before the first message that is another anyway.
 */
#ifndef BATON_AGENT_CONTEXT_DECAY_H
#define BATON_AGENT_CONTEXT_DECAY_H

#include "agent/context/rungs.h"

#define DECAY_WHOLE  3 /* rounds */
#define DECAY_DIGEST 10
#define DECAY_LINE   20

/* in->epoch is the view's epoch before the pass in which it may have ended. */
bool decay_wanted(const struct rung_input *in);
int decay_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

#endif
