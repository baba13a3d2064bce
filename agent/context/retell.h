/*
 * retell.h - messages as plain text: for a call that does not stand on the conversation, and for people.
 *
 * No thinking ever (trap 3), results shortened to head and tail, images by name. Not a form that is read
 * back.
 */
#ifndef BATON_AGENT_CONTEXT_RETELL_H
#define BATON_AGENT_CONTEXT_RETELL_H

#include <stddef.h>

#include "agent/message.h"
#include "base/buf.h"

/* Appends `n` messages; of each block at most block_bytes (0: whole). */
void retell_messages(struct message *const *list, size_t n, size_t block_bytes, struct buf *out);

#endif
