/*
 * calls.h - the tool calls that the model makes.
 */
#ifndef SIMULATOR_CALLS_H
#define SIMULATOR_CALLS_H

#include "session.h"

/* One round's calls, several at once now and then; the last one is cut in the middle if `cut`. */
void calls_say(struct session *s, struct server_call *c, bool cut);
/* Bytes that a text of this answer may have, of `parts` in it. */
size_t calls_size(struct session *s, const struct server_call *c, int64_t median, int parts);

#endif
