/*
 * epoch.h - the one place where a view is rewritten (W11).
 *
 * Within an epoch the request only grows at its end, so the provider's cache holds. A rung that needs
 * another change ends the epoch here: ranges of messages give way to others, and thinking whose
 * signature is bound to what stood before it goes whole. The conversation is never touched; the ledger is
 * told what went and what came, and the transcript gets one record from which the view can be made
 * again (edit_record.h).
 *
 *     struct epoch_edit edit;
 *     epoch_begin(&edit, "snip", view, ledger, conversation, bound);
 *     epoch_change(&edit, 4, 8, NULL);          any number of ranges, in any order, none overlapping
 *     epoch_change(&edit, 3, 4, copy);
 *     epoch_apply(&edit, &done);                 or epoch_drop: nothing happens
 */
#ifndef BATON_AGENT_CONTEXT_EPOCH_H
#define BATON_AGENT_CONTEXT_EPOCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/context/view.h"
#include "agent/conversation.h"
#include "agent/ledger.h"

struct epoch_change {
	size_t from, to; /* indices of the view as it was at the beginning */
	struct message *with;
};

struct epoch_edit {
	const char *rung; /* static; a name of the ladder */
	struct view *view;
	struct ledger *ledger;
	struct conversation *conversation;
	bool bound;
	bool undo; /* the changes are to the view before the last compaction */
	struct epoch_change *changes;
	size_t n, cap;
};

struct epoch_done {
	int64_t freed;	    /* tokens that the view holds less; what the ledger booked */
	int64_t cache_lost; /* tokens behind the first change: they are written to the cache again */
	size_t first;	    /* index of the first message that is another now */
	size_t messages;    /* of the old view that went or changed; bound thinking not counted */
};

/* `bound`: the model binds thinking to its prefix (preserved_thinking). */
void epoch_begin(struct epoch_edit *edit, const char *rung, struct view *view,
		 struct ledger *ledger, struct conversation *conversation, bool bound);
/* view[from, to) gives way to `with` (taken over; NULL: to nothing). An empty range inserts. */
void epoch_change(struct epoch_edit *edit, size_t from, size_t to, struct message *with);
/* Does it, and ends the epoch. Without a change nothing happens and *ret is all 0. */
void epoch_apply(struct epoch_edit *edit, struct epoch_done *ret);
void epoch_drop(struct epoch_edit *edit);
/* Where what a change puts in stands in the conversation (message.until). */
uint64_t epoch_position(const struct view *view, const struct epoch_change *change);

/* A whole part gives way to one message, and the ledger counts all that is left anew: what a compaction
 * does, after which no usage is known. */
void epoch_end(struct view *view, struct ledger *ledger, struct conversation *conversation,
	       size_t from, size_t to, struct message *with, bool bound);

/* The view becomes `list` again (of an earlier epoch), with what the conversation got since its first
 * `taken` messages behind it. Undoes the last epoch_end, and says so on record. */
void epoch_restore(struct view *view, struct ledger *ledger, struct conversation *conversation,
		   struct message *const *list, size_t n, size_t taken, bool bound);

/* The message without its thinking, as a copy that the view owns; itself if it has none. */
struct message *epoch_unbound(struct view *view, struct conversation *conversation,
			      struct message *m);

/* All thinking of the view goes (wire.md 1.6): the server binds it to something that is not sent. */
void epoch_unbind(struct view *view, struct ledger *ledger, struct conversation *conversation);

/* The newest messages that stay (H5): the index of the first one, an assistant message that begins a
 * round, so that no call is parted from its results (trap 20, 22). Whole rounds are taken as long as all
 * fits `tokens`, and up to `least` messages as long as all fits twice that; the newest round always. 0 if
 * there is no such place behind `after`. */
size_t epoch_tail(const struct view *view, size_t after, size_t least, int64_t tokens);

#endif
