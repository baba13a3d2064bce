/*
 * tally.h - what happened in all sessions, counted by name.
 *
 * One row a count: TALLY(NAME, "name", nightly minimum). The nightly form fails where fewer happened. A rung that
 * lands later needs its row here, and, if an event tells of it, one in watch_events.c. The array is shared by the
 * worker processes.
 */
#ifndef SIMULATOR_TALLY_H
#define SIMULATOR_TALLY_H

#include <stdint.h>

#include "agent/context/counts.h"

#define TALLIES(TALLY)                                                                             \
	TALLY(SESSIONS, "sessions", 0)                                                             \
	TALLY(REQUESTS, "requests", 0)                                                             \
	TALLY(ROUNDS, "rounds", 0)                                                                 \
	TALLY(BODY_KIB, "KiB of request bodies", 0)                                                \
	TALLY(SIDE_CALLS, "calls of compactions", 0)                                               \
	TALLY(BACKGROUND_CALLS, "background calls", 0)                                             \
	TALLY(FULL_CHECKS, "full checks", 0)                                                       \
	TALLY(LOADS, "transcripts read back", 0)                                                   \
	/* The ladder, beside what the agent counts itself (agent/context/counts.h). */            \
	TALLY(H0_OFFLOAD, "results in a file (H0)", 500)                                           \
	TALLY(H1_SNIP, "rounds snipped (H1)", 500)                                                 \
	TALLY(H2_CLEAR, "results cleared (H2)", 500)                                               \
	TALLY(T8_IDLE, "results cleared after a pause (T8)", 500)                                  \
	TALLY(H3_COLLAPSE, "rounds collapsed (H3)", 500)                                           \
	TALLY(T9_DECAY, "results decayed (T9)", 500)                                               \
	TALLY(PROVIDER_EDITS, "prompts in which the provider cleared results (H2)", 500)           \
	TALLY(EDITS_REFUSED, "servers that refused to clear results (H2)", 100)                    \
	TALLY(APART_CALLS, "summaries asked of another model (H16)", 500)                          \
	TALLY(RESUMES, "cut off, and on with another model (R6, X12)", 500)                        \
	TALLY(FILES_BACK, "files read again after a compaction (H13)", 500)                        \
	TALLY(MEMOS, "changes of the working memory (H18)", 500)                                   \
	TALLY(RECALLS, "searches of the history (X4)", 500)                                        \
	TALLY(PAIRS, "pairs of agents, alone and together (H11)", 50)                              \
	TALLY(BREAKER_OPEN, "breaker opened (H10)", 500)                                           \
	TALLY(FORCED_WINDOW, "forced to report by the window", 500)                                \
	TALLY(SESSIONS_OF_3, "sessions with 3 compactions or more", 0)                             \
	/* What the other side did. */                                                             \
	TALLY(INTERJECTIONS, "words of the user in between", 500)                                  \
	TALLY(MANUAL, "wishes to compact or to undo", 500)                                         \
	TALLY(WISHES, "wishes to report", 500)                                                     \
	TALLY(STOPS, "stops", 500)                                                                 \
	TALLY(SWITCHES, "windows that became smaller", 500)                                        \
	TALLY(IMAGES, "images", 500)                                                               \
	TALLY(THINKING, "answers with thinking", 500)                                              \
	TALLY(LIES, "summaries that invent rules", 500)                                            \
	TALLY(BAD_SUMMARIES, "summaries of no use", 500)                                           \
	/* How sessions ended. */                                                                  \
	TALLY(END_DONE, "ended: done", 0)                                                          \
	TALLY(END_LIMIT, "ended: limit", 0)                                                        \
	TALLY(END_FAILED, "ended: failed", 0)                                                      \
	TALLY(END_STOPPED, "ended: stopped", 0)

enum tally {
#define TALLY_ENUM(name, text, least) TALLY_##name,
	TALLIES(TALLY_ENUM)
#undef TALLY_ENUM
		TALLY_COUNT
};

#define TALLY_ROUNDS_MAX 2048 /* sessions by their rounds, for the median */

struct tallies {
	int64_t count[TALLY_COUNT];
	int64_t faults[64];	       /* by enum fault */
	struct context_counts context; /* sums of what the agents counted */
	int64_t sessions_of[TALLY_ROUNDS_MAX];
};

void tallies_add(struct tallies *into, const struct tallies *from);
void tallies_add_context(struct tallies *into, const struct context_counts *counts);
/* Prints all counts; with `minimum` those that are below theirs, scaled by sessions / 10,000, are named and make it
 * return 1. */
int tallies_print(const struct tallies *t, int minimum);

#endif
