/*
 * knobs.h - every number of the context engine that a configuration, a role or the environment may set.
 *
 * One row a knob: KNOB(field, "name", KIND, min, max, default, "help")
 *   field   in struct context_knobs, an int64_t (a flag: 0 or 1)
 *   name    in the start document's `context` object, in a role's `context:` mapping
 *   KIND    TOKENS, BYTES, CHARS, COUNT, ROUNDS, PERCENT, FLAG (true or false in JSON and YAML), LEARNED
 *           (tokens; in configuration and roles also `auto`, which the parent replaces by a number)
 *   default what spec.md says; 0 means "by rule" where the help says so
 *
 * The parent reads them from its layers, a role's front matter and the environment, and sends all of them
 * in the start document; the agent's parser and the documentation read the same table. Thresholds made from
 * these numbers and the model's window are in agent/context/budget.h: nobody computes one a second time.
 */
#ifndef BATON_HANDOFF_KNOBS_H
#define BATON_HANDOFF_KNOBS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define CONTEXT_KNOBS(KNOB)                                                                        \
	/* The window (W1 to W4, W8, W12 to W14). */                                               \
	KNOB(working_ceiling, "working_ceiling", TOKENS, 0, 100000000, 0,                          \
	     "use no more of the window; 0: 400,000, and no dearer price tier")                    \
	KNOB(summary_reserve, "summary_reserve", TOKENS, 1000, 1000000, 20000,                     \
	     "kept free for the summary of a compaction, and the cap of its output")               \
	KNOB(compact_buffer, "compact_buffer", LEARNED, 0, 100000000, 13000,                       \
	     "kept free below the usable window before older rounds are summarised")               \
	KNOB(compact_pct, "compact_pct", PERCENT, 0, 100, 0,                                       \
	     "share of the usable window at which that happens instead; 0: by the buffer")         \
	KNOB(blocking_limit, "blocking_limit", TOKENS, 0, 100000000, 0,                            \
	     "no larger request is sent; 0: 3,000 below the usable window")                        \
	KNOB(compact_price, "compact_price", FLAG, 0, 1, 1,                                        \
	     "summarise earlier where the model's prices make a smaller window cheaper")           \
	KNOB(compact_auto, "compact", FLAG, 0, 1, 1,                                               \
	     "summarise when the threshold is reached; else only when asked to")                   \
	KNOB(compact_any, "compact_any", FLAG, 0, 1, 1, "false: no compaction of any kind")        \
	KNOB(budget_notes, "budget_notes", FLAG, 0, 1, 0,                                          \
	     "tell the model when 25, 50 and 75 % of its window are used")                         \
	KNOB(cache_1h, "cache_1h", FLAG, 0, 1, 0,                                                  \
	     "the provider keeps tools and system prompt for an hour")                             \
	/* Arrival and clearing (T1 to T9). */                                                     \
	KNOB(result_chars, "result_chars", CHARS, 500, 64 << 20, 50000,                            \
	     "a longer tool result goes to a file and is shown as head and tail")                  \
	KNOB(shell_chars, "shell_chars", CHARS, 500, 64 << 20, 30000, "the same for the shell")    \
	KNOB(grep_chars, "grep_chars", CHARS, 500, 64 << 20, 20000, "the same for grep")           \
	KNOB(results_total_chars, "results_total_chars", CHARS, 500, 64 << 20, 200000,             \
	     "all results of a round in the window")                                               \
	KNOB(user_message_bytes, "user_message_bytes", BYTES, 1000, 64 << 20, 50000,               \
	     "a longer message to an agent is shown to it as head and tail")                       \
	KNOB(clear_share, "clear_share", PERCENT, 1, 100, 40,                                      \
	     "old results are cleared when such results take so much of the window")               \
	KNOB(clear_gain, "clear_gain", PERCENT, 0, 100, 10,                                        \
	     "and when at least so much of the window is gained")                                  \
	KNOB(clear_keep, "clear_keep", COUNT, 0, 1000, 5, "newest results that are never cleared") \
	KNOB(clear_idle, "clear_idle", FLAG, 0, 1, 0,                                              \
	     "clear old results when the provider's cache has lapsed anyway")                      \
	KNOB(clear_mcp, "clear_mcp", FLAG, 0, 1, 0, "clear results of MCP tools too")              \
	KNOB(snip, "snip", FLAG, 0, 1, 1, "remove rounds whose reads were superseded")             \
	KNOB(snip_keep, "snip_keep", ROUNDS, 1, 1000, 5, "newest rounds that are never removed")   \
	KNOB(decay, "decay", FLAG, 0, 1, 0, "shorten results by their age in rounds")              \
	KNOB(provider_edits, "provider_edits", FLAG, 0, 1, 0,                                      \
	     "let the provider clear old results where it offers that")                            \
	/* History (H3 to H10, H22). */                                                            \
	KNOB(collapse, "collapse", FLAG, 0, 1, 1,                                                  \
	     "show finished rounds as a snapshot made by rule before a summary is asked for")      \
	KNOB(collapse_pct, "collapse_pct", PERCENT, 10, 100, 90,                                   \
	     "share of the usable window at which that happens")                                   \
	KNOB(notes, "notes", FLAG, 0, 1, 1,                                                        \
	     "keep notes of the session in the background, to compact without a summary")          \
	KNOB(notes_first, "notes_first", TOKENS, 1000, 10000000, 10000, "first notes at")          \
	KNOB(notes_next, "notes_next", TOKENS, 500, 10000000, 5000,                                \
	     "further notes when so many tokens have come")                                        \
	KNOB(notes_section, "notes_section", TOKENS, 100, 100000, 2000,                            \
	     "soft size of a section of the notes")                                                \
	KNOB(notes_total, "notes_total", TOKENS, 500, 1000000, 12000, "size of all notes")         \
	KNOB(tail_messages, "tail_messages", COUNT, 1, 1000, 6,                                    \
	     "newest messages that a compaction keeps as they are")                                \
	KNOB(compact_tries, "compact_tries", COUNT, 1, 10, 2, "tries of a summary")                \
	KNOB(compact_review, "compact_review", FLAG, 0, 1, 0,                                      \
	     "wait for a person to look at what a compaction keeps")                               \
	KNOB(compact_review_ms, "compact_review_ms", COUNT, 1, 86400000, 120000,                   \
	     "for so many milliseconds, then it goes on by itself")                                \
	KNOB(proactive_pct, "proactive_pct", PERCENT, 0, 100, 0,                                   \
	     "compact at the next natural break above this share; 0: never")                       \
	KNOB(break_task, "break_task", FLAG, 0, 1, 1, "an item of the plan that is done is one")   \
	KNOB(break_commit, "break_commit", FLAG, 0, 1, 1, "a commit by the agent's shell is one")  \
	KNOB(break_pass, "break_pass", FLAG, 0, 1, 1,                                              \
	     "a command that passes and failed before is one")                                     \
	KNOB(break_repeat, "break_repeat", FLAG, 0, 1, 1,                                          \
	     "calls that repeat with the same result are one")                                     \
	KNOB(reminder_pct, "reminder_pct", PERCENT, 0, 100, 40,                                    \
	     "an event says that this share is used; 0: never")                                    \
	/* What comes back (H13, H18). */                                                          \
	KNOB(max_compactions, "max_compactions", COUNT, 0, 1000000, 6,                             \
	     "of one generation, before a Context Reset where the role allows one; 0: no limit")   \
	KNOB(anxiety_pct, "anxiety_pct", PERCENT, 0, 100, 60,                                      \
	     "of effective: a report with open work above it leads to a reset; 0: it is believed") \
	KNOB(rehydrate_files, "rehydrate_files", COUNT, 0, 100, 5,                                 \
	     "files that are read again after a compaction")                                       \
	KNOB(rehydrate_file, "rehydrate_file", TOKENS, 100, 1000000, 5000, "of each so much")      \
	KNOB(rehydrate_total, "rehydrate_total", TOKENS, 0, 10000000, 50000,                       \
	     "of all that comes back so much")                                                     \
	KNOB(facts, "facts", TOKENS, 0, 100000, 1500,                                              \
	     "of commands, failures, files and decisions put back by rule; 0: none")               \
	KNOB(memory_soft, "memory_soft", TOKENS, 50, 100000, 500,                                  \
	     "the working memory's size from which it is asked to be shorter")                     \
	KNOB(memory_hard, "memory_hard", TOKENS, 100, 1000000, 2000,                               \
	     "the working memory's size that is refused")

struct context_knobs {
#define KNOB_FIELD(field, name, kind, min, max, dflt, help) int64_t field;
	CONTEXT_KNOBS(KNOB_FIELD)
#undef KNOB_FIELD
};

enum knob_kind {
	KNOB_TOKENS,
	KNOB_BYTES,
	KNOB_CHARS,
	KNOB_COUNT,
	KNOB_ROUNDS,
	KNOB_PERCENT,
	KNOB_FLAG,
	KNOB_LEARNED
};

struct knob {
	const char *name;
	enum knob_kind kind;
	int64_t min, max, dflt;
	const char *help;
	size_t offset; /* of the int64_t in struct context_knobs */
};

#define KNOB_ONE(field, name, kind, min, max, dflt, help) +1
enum { KNOBS = 0 CONTEXT_KNOBS(KNOB_ONE) };
#undef KNOB_ONE

/* A LEARNED knob that says `auto`. The parent alone meets it: start documents hold numbers. */
#define KNOB_AUTO (-1)

const struct knob *knob_table(size_t *ret_count);
void knobs_init(struct context_knobs *knobs); /* all at their defaults */

/* By its name, with '-' or '_'; NULL. knob_nearest: the name that was probably meant, or NULL. */
const struct knob *knob_find(const char *name);
const char *knob_nearest(const char *name);
/* A value as a user writes it: 64k, 40, true, auto. ERR_USAGE says what it must be. */
int knob_parse(const struct knob *knob, const char *text, int64_t *ret, struct err *err);
/* Appends the value as the user would write it. */
void knob_print(const struct knob *knob, int64_t value, struct buf *out);

#endif
