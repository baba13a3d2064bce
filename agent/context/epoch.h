/*
 * epoch.h - the one place where a view is rewritten (W11).
 *
 * Within an epoch the request only grows at its end, so the provider's cache holds. A rung that needs
 * another change ends the epoch here: a range of messages gives way to others, and thinking whose
 * signature is bound to what stood before it goes whole. The conversation is never touched.
 */
#ifndef BATON_AGENT_CONTEXT_EPOCH_H
#define BATON_AGENT_CONTEXT_EPOCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/context/view.h"
#include "agent/conversation.h"
#include "agent/ledger.h"

/* Replaces view[from, to) by `with` (taken over; NULL: by nothing), renumbers nothing, and counts the
 * ledger anew. `bound`: the model binds thinking to its prefix (preserved_thinking). */
void epoch_end(struct view *view, struct ledger *ledger, struct conversation *conversation,
	       size_t from, size_t to, struct message *with, bool bound);

/* Single messages give way to copies (taken over): any number of epoch_put, then one epoch_close with the
 * index behind the first that changed. The ledger is the caller's: what went is known exactly. */
void epoch_put(struct view *view, struct conversation *conversation, size_t index,
	       struct message *copy);
void epoch_close(struct view *view, struct conversation *conversation, size_t from, bool bound);

/* The view becomes `list` again (of an earlier epoch), with what the conversation got since its first
 * `taken` messages behind it. */
void epoch_restore(struct view *view, struct ledger *ledger, struct conversation *conversation,
		   struct message *const *list, size_t n, size_t taken, bool bound);

/* The newest messages that stay (H5): the index of the first one, an assistant message that begins a
 * round, so that no call is parted from its results (trap 20, 22). Whole rounds are taken as long as all
 * fits `tokens`, and up to `least` messages as long as all fits twice that; the newest round always. 0 if
 * there is no such place behind `after`. */
size_t epoch_tail(const struct view *view, size_t after, size_t least, int64_t tokens);

#endif
