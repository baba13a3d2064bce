/*
 * conversation.h - the append-only list of messages of one generation.
 *
 * A message is immutable once it is in here; the context rungs build views (context/view.h) and
 * never edit it. The conversation owns its messages. Round 0 is the opening; each answer of the
 * model begins a round of its own, and the message that answers it belongs to the same round.
 */
#ifndef BATON_AGENT_CONVERSATION_H
#define BATON_AGENT_CONVERSATION_H

#include <stddef.h>
#include <stdint.h>

#include "agent/message.h"
#include "agent/start.h"

struct conversation_word { /* a block of the user's own words (X2) */
	size_t message, block;
};

struct conversation {
	struct message **messages;
	size_t n, cap;
	int64_t round;
	uint64_t next_uid;
	struct conversation_word *words;
	size_t n_words, cap_words;
};

void conversation_init(struct conversation *conversation);
void conversation_release(struct conversation *conversation);

/* An answer of the model came: what is appended from now on belongs to the next round. */
int64_t conversation_next_round(struct conversation *conversation);
/* Takes the message over; gives it its round and uid, unless it was loaded with them. Returns it.
 */
struct message *conversation_append(struct conversation *conversation, struct message *message);
/* A uid for a message that stands in a view only; never given to another one. */
uint64_t conversation_take_uid(struct conversation *conversation);
struct message *conversation_last(const struct conversation *conversation); /* NULL if empty */

/* The opening message (W10): project instructions with their origins first, then the environment,
 * the task verbatim, and the brief. Caller owns it until it is appended. */
struct message *conversation_opening(const struct agent_settings *settings);

/* The i-th block of the user's words, oldest first; NULL past the end. Verbatim, never a nudge. */
const struct block *conversation_user_word(const struct conversation *conversation, size_t i);

#endif
