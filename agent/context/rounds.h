/*
 * rounds.h - a view as rounds: an answer and the messages that follow it until the next one.
 *
 * Rungs that take messages out take whole rounds, because a call without its result is refused for ever
 * (traps 20, 22). And there is what none of them takes out: words of people, reports, notes,
 * instructions. Both are told here.
 */
#ifndef BATON_AGENT_CONTEXT_ROUNDS_H
#define BATON_AGENT_CONTEXT_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/context/view.h"

struct view_round {
	size_t from, to; /* view[from] is the answer, [from + 1, to) what follows it */
};

/* The round before `end`, an index where a round begins or the view's end; false at the opening. */
bool round_before(const struct view *view, size_t end, struct view_round *ret);
/* The first index behind the opening: 1, or more if several messages stand before the first answer. */
size_t rounds_begin(const struct view *view);

/* The round consists of calls and their results and nothing else: one message of results, no word of
 * anybody, no news of baton, no server blocks. (Text and thinking of the answer are the caller's to
 * look at.) */
bool round_is_calls(const struct view *view, const struct view_round *round);
/* A text that says why, or what from now on: what a person would call a decision. Doubtful counts. */
bool text_has_substance(const char *text, size_t n);

#endif
