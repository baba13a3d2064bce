/*
 * document_covers.h - does a document hold what somebody said? For document_check.c alone (R4).
 */
#ifndef BATON_HANDOFF_DOCUMENT_COVERS_H
#define BATON_HANDOFF_DOCUMENT_COVERS_H

#include "handoff/document.h"

/* Does it stand in a statement of this part, byte for byte? */
bool covers_verbatim(const struct handoff_part *part, const char *text, size_t n);

/* Does the whole message stand under `words` or as the goal? White space at its end does not count. */
bool covers_message(const struct handoff *handoff, const char *text, size_t n);

/* How many messages `missing` says are not there, in the lines that handoff_bound and the agent write:
 * "words: 3 older messages ...", "3 older messages of the user were left out ...". */
size_t covers_left_out(const struct handoff *handoff);

#endif
