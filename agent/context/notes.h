/*
 * notes.h - the notes of a session (H4): eight sections that a background call keeps up to date, and the
 * words that ask for them.
 *
 * Text in, text out: who makes the call, and when, is session_notes.c. An answer holds only the sections
 * that change, so a pass costs what is new and not what is known. What a model writes here is its memory
 * of the work; what the user said is put back by code (X2).
 */
#ifndef BATON_AGENT_CONTEXT_NOTES_H
#define BATON_AGENT_CONTEXT_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/ledger.h"
#include "agent/message.h"
#include "base/buf.h"
#include "base/err.h"

enum notes_section {
	NOTES_STATE,
	NOTES_TASK,
	NOTES_FILES,
	NOTES_WORKFLOW,
	NOTES_ERRORS,
	NOTES_LEARNINGS,
	NOTES_RESULTS,
	NOTES_WORKLOG,
	NOTES_SECTIONS,
};
const char *notes_section_name(enum notes_section section); /* "current state", ... */

struct notes {
	struct buf section[NOTES_SECTIONS]; /* Markdown; empty: nothing was noted */
};

void notes_release(struct notes *notes); /* also of a zeroed struct; leaves an empty one */
bool notes_empty(const struct notes *notes);
int64_t notes_tokens(const struct notes *notes, const struct ledger *ledger);

struct notes_limits {
	int64_t section, total; /* tokens: soft, hard */
};

/* The message that asks for a pass: with the notes as they are, and where a section or all of it is too
 * large, the wish to condense. `transcript`: what happened since, as text, where the call does not stand
 * on the conversation itself; NULL where it does. Caller owns it. */
struct message *notes_request(const struct notes *notes, const struct notes_limits *limits,
			      const struct ledger *ledger, const char *transcript, size_t n);
/* System prompt of a call that does not stand on the conversation. */
extern const char notes_system[];

/* Takes the sections of the answer over. X3: a tool call, an answer that was cut, one without any section,
 * and notes above `max_bytes` in all are ERR_INVALID: then nothing is changed. */
int notes_take(struct notes *notes, const struct message *answer, bool cut, size_t max_bytes,
	       struct err *err);

/* Appends all sections that hold something, as Markdown with `## Title` lines. */
void notes_render(const struct notes *notes, struct buf *out);
/* The form above read back (notes.md of this generation). Unknown titles are left out. */
void notes_parse(struct notes *notes, const char *text, size_t n);

#endif
