/*
 * summary.h - a summary of the conversation (H5): the words that ask for it, and what is taken of the
 * answer.
 *
 * Text in, text out: whoever makes the call is compact.c. What a model writes is trusted for what it
 * remembers of the work, never for what the user said: his words are put back by code (X2).
 */
#ifndef BATON_AGENT_CONTEXT_SUMMARY_H
#define BATON_AGENT_CONTEXT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/message.h"
#include "base/buf.h"
#include "base/err.h"

#define SUMMARY_SECTIONS 9

struct summary_wish {	   /* texts may be NULL */
	const char *focus; /* H6 */
	const char *after; /* H8: only what came from these words of an answer on is summarised */
	const char *wrong; /* with the last summary */
	/* For a model that does not see the conversation (H16): what is to be summarised, as text. */
	const char *transcript;
	size_t transcript_len;
};

/* The system prompt of a call that has the transcript in its message. */
extern const char summary_system[];

/* The instruction as a user message, to be sent as the last one on the same prefix; with a transcript the
 * only one. Caller owns it. */
struct message *summary_request(const struct summary_wish *wish);

/* Appends the text between <summary> and </summary> of the answer; the analysis is dropped. X3: a tool
 * call, an answer that ended at its cap (`cut`), an empty or unfinished block, a missing section and a
 * text of more than max_bytes are ERR_INVALID, and the message says which. */
int summary_take(const struct message *answer, bool cut, size_t max_bytes, struct buf *out,
		 struct err *err);

/* The summary as it stands in the next request: what it is, then the text. Of rounds first to last. */
void summary_frame(struct buf *out, const char *summary, size_t n, int64_t first, int64_t last);
/* The same of the session's notes (H4). */
void summary_frame_notes(struct buf *out, const char *notes, size_t n, int64_t last);

#endif
