/*
 * view.h - the list of messages of the next request.
 *
 * History is append-only; what the model sees of it is this list. The rungs of the ladder (rungs.h)
 * change the view, never the conversation. Between two intentional cache breaks a view only grows
 * at its end (W11); a break goes through epoch.h. The messages belong to the conversation, but for
 * those that a break put in.
 */
#ifndef BATON_AGENT_CONTEXT_VIEW_H
#define BATON_AGENT_CONTEXT_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/conversation.h"
#include "agent/message.h"

struct transcript;

#define VIEW_RUNGS 8

struct view {
	struct message **list;
	size_t n, cap;
	size_t taken;	      /* messages of the conversation that were taken so far */
	struct message **own; /* copies and summaries that rungs made; the view's */
	size_t n_own, cap_own;
	int64_t epoch; /* rewrites so far (W11) */
	size_t broken; /* index of the first message that the last of them changed */
	long pinned; /* index of the message that carries a lasting cache marker (H17); -1: none */
	int64_t looked
		[VIEW_RUNGS];	   /* tokens in use when a rung looked and found nothing; rungs.c */
	struct transcript *record; /* where rewrites are put on record; NULL: nowhere. Borrowed */
};

void view_init(struct view *view);
void view_release(struct view *view);
/* Takes a message over that is not the conversation's. */
void view_own(struct view *view, struct message *message);
/* Frees what is the view's own and not in its list: what the last rewrite or an earlier one took out, and what was made
 * for a call that is over. Before a rewrite: until then an undo of the last one may want it back (compact_undo). */
void view_sweep(struct view *view);
/* Takes what was appended to the conversation since the last call. */
void view_sync(struct view *view, const struct conversation *conversation);

#endif
