/*
 * view.h - the list of messages of the next request.
 *
 * History is append-only; what the model sees of it is this list. The rungs of the ladder (rungs.h)
 * change the view, never the conversation. Between two intentional cache breaks a view only grows
 * at its end (W11). The messages belong to the conversation.
 */
#ifndef BATON_AGENT_CONTEXT_VIEW_H
#define BATON_AGENT_CONTEXT_VIEW_H

#include <stddef.h>

#include "agent/conversation.h"
#include "agent/message.h"

struct view {
	struct message **list;
	size_t n, cap;
	size_t taken; /* messages of the conversation that were taken so far */
	long pinned;  /* index of the message that carries a lasting cache marker (H17); -1: none */
};

void view_init(struct view *view);
void view_release(struct view *view);
/* Takes what was appended to the conversation since the last call. */
void view_sync(struct view *view, const struct conversation *conversation);

#endif
