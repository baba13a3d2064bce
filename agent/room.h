/*
 * room.h - what happens before each request so that it fits: the ladder, in its order, and its limits.
 *
 * The cheap rungs (context/rungs.h) work on the view; a compaction (compact.h) is the last one. Nothing
 * here sends the agent's own request.
 */
#ifndef BATON_AGENT_ROOM_H
#define BATON_AGENT_ROOM_H

#include "agent/state.h"

/* 0, or -1: stopped, alone, or a bug. That there is no room in the end is told by ask_model. */
int room_make(struct agent *a, struct err *err);

/* Says once that the breaker is open: an alarm and a line to the user (H15). */
void room_tell_breaker(struct agent *a);

/* Tokens above which the window is compacted now: the threshold of W2, less where the prices say that a
 * smaller window is cheaper (context/pace.h). */
int64_t room_threshold(const struct agent *a);

#endif
