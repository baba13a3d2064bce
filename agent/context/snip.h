/*
 * snip.h - whole rounds go whose calls say nothing that a later one does not say better (H1).
 *
 * Superseded are: a read whose lines a later read of the same file shows again; a search, or a command
 * that only looks, that was made again later; a failed call that succeeded later, or failed again in the
 * same words. Never goes: what a person said, a decision in an answer's text, a call with effects, a report or a
 * note, the newest rounds (knob snip_keep). A line in the message before says how many rounds are
 * missing and what they were about.
 */
#ifndef BATON_AGENT_CONTEXT_SNIP_H
#define BATON_AGENT_CONTEXT_SNIP_H

#include "agent/context/rungs.h"

/* Knob snip, and there may be enough to gain. */
bool snip_wanted(const struct rung_input *in);
/* Frees at least clear_gain per cent of effective, and as much as it costs (price.h), or nothing. */
int snip_run(struct rung_input *in, int64_t *ret_freed, struct err *err);

/* By hand: removes the rounds numbered `first` to `last` (message.round), superseded or not, but for those
 * that are never removed and the newest. *ret_kept: how many of them stayed for that reason. */
int snip_rounds(struct rung_input *in, int64_t first, int64_t last, size_t *ret_kept,
		int64_t *ret_freed, struct err *err);

#endif
