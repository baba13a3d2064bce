/*
 * view.c - follows the conversation.
 *
 * The opening is pinned: it is the part that stays whatever the ladder does later, and a marker
 * there lets the provider find its prefix again after the end of the history was changed.
 */
#include "agent/context/view.h"

#include "base/memory.h"

void view_init(struct view *view)
{
	*view = (struct view){.pinned = -1};
}

void view_release(struct view *view)
{
	for (size_t i = 0; i < view->n_own; i++)
		message_free(view->own[i]);
	free(view->own);
	free(view->list);
	view_init(view);
}

void view_own(struct view *view, struct message *message)
{
	MEM_GROW(view->own, view->cap_own, view->n_own + 1);
	view->own[view->n_own++] = message;
}

/* Marks, so that thousands of messages are no square of thousands. */
void view_sweep(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->n; i++)
		view->list[i]->marked = true;
	for (size_t i = 0; i < view->n_own; i++) {
		if (view->own[i]->marked)
			view->own[kept++] = view->own[i];
		else
			message_free(view->own[i]);
	}
	view->n_own = kept;
	for (size_t i = 0; i < view->n; i++)
		view->list[i]->marked = false;
}

void view_sync(struct view *view, const struct conversation *conversation)
{
	size_t more = conversation->n - view->taken;

	if (!more)
		return;
	MEM_GROW(view->list, view->cap, view->n + more);
	memcpy(view->list + view->n, conversation->messages + view->taken,
	       more * sizeof(*view->list));
	view->n += more;
	view->taken = conversation->n;
	view->pinned = 0;
}
