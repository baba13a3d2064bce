/*
 * effect.h - what the agent asks its parent to do: an effect under a key, and its answer (design.md, Processes).
 *
 * A key is (generation, call). The parent carries a key out once and answers it as often as it is asked, also after
 * either side died: so the key of a tool call is its id, and a key that this program numbers itself holds the number
 * of times that the generation was resumed, else a second life would be answered with what its first one got.
 */
#ifndef BATON_AGENT_EFFECT_H
#define BATON_AGENT_EFFECT_H

#include <stdbool.h>

#include "agent/waiter.h"
#include "handoff/frame.h"

struct agent;

/* "checkpoint-3", of a resumed generation "checkpoint-r1-3". Caller frees. */
char *effect_key(const struct agent *a, const char *what, int64_t number);

struct effect_ask {
	enum frame_type type;
	enum ack_kind kind;
	const char *call; /* the key */
	const char *more; /* further members of the header, ",\"event\":\"Stop\""; NULL: none */
	const char *body;
	size_t len;
};

/* What commands wrote into the worktree and its repository is durable, before a record says that the work is done: nobody
 * would look at it again after a power cut. One sync of the file system, once in a conversation. */
void effect_settle(const struct agent *a);
/* Sends it; the answer is looked for with waiter_acked. */
void effect_send(struct agent *a, const struct effect_ask *ask);
/* Sends it and waits. *ret_answer is the body, borrowed until the next question of this kind. -1: stopped or alone. */
int effect_run(struct agent *a, const struct effect_ask *ask, bool *ret_ok, const char **ret_answer,
	       struct err *err);

#endif
