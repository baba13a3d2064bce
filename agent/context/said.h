/*
 * said.h - what somebody said, sentence by sentence, and whether a statement follows from it (X2).
 *
 * The table only grows, and each text is split once. words_check.c asks it about the rules in a summary.
 */
#ifndef BATON_AGENT_CONTEXT_SAID_H
#define BATON_AGENT_CONTEXT_SAID_H

#include <stdbool.h>
#include <stddef.h>

struct said;

struct said *said_new(void);
void said_free(struct said *said); /* NULL allowed */
/* One more text; it is not kept. */
void said_add(struct said *said, const char *text, size_t n);
size_t said_texts(const struct said *said); /* that were added */

/* Does the statement say nothing that is not in a sentence of either table (NULL: none)? It may drop words
 * of its source, but not add any, turn their order, or lose a "not". */
bool said_follows(const struct said *said, const struct said *also, const char *text, size_t n);

#endif
