/*
 * fork.h - an agent that begins with the conversation of the one that started it (A2).
 *
 * Its first generation is one that goes on (resume.h) from a transcript that is not its own: up to the answer that
 * asked for it, that of its spawner is taken over, with the words of the user, the results that stand in files and the
 * working memory. The renderer makes the same bytes of the same messages, so the spawner's cached prefix is the fork's.
 * What is its own begins with one message behind that answer: it gives each open call a result, and says what is
 * different for this one, its place and its task.
 *
 *     transcript of this generation        what fork_adopt and fork_find make of it
 *     none                                 taken over from the spawner; fresh
 *     ends with the answer that asked      the process died before the first message was on disk; fresh
 *     goes on behind it                    an ordinary generation; counts begin behind that answer
 *
 * Later generations of a fork begin as any other (handoff_take.h); of the fork only the map of paths is left.
 */
#ifndef BATON_AGENT_FORK_H
#define BATON_AGENT_FORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct agent;
struct agent_settings;

struct fork_point {
	size_t begin; /* index in the conversation of the first message of its own; 0: all of it is */
	int64_t round; /* of the answer that asked for it; 0: it is no fork */
	bool fresh;    /* nothing of its own is there yet */
};

/* Is this the generation that begins with another one's conversation? */
bool fork_is_first(const struct agent_settings *settings);
/* Takes over what is not there yet, the transcript last. No fork, or there already: nothing happens. ERR_NOT_FOUND
 * (the spawner's transcript has no such call), ERR_IO. Before any of the generation's files is opened. */
int fork_adopt(const struct agent_settings *settings, struct err *err);
/* When the conversation is loaded: where its own part begins. ERR_INVALID: it is not in it. */
int fork_find(struct agent *a, struct err *err);
/* In the place of an opening, where it is fresh. As work_begin. */
int fork_begin(struct agent *a, struct err *err);
/* Rounds of this agent itself, which limits and reports count. */
int64_t fork_own_rounds(const struct agent *a);

#endif
