/*
 * epoch.c - cuts views at round boundaries and counts them anew.
 *
 * Messages of the conversation are immutable and shared, so what is to be changed is copied; copies
 * belong to the view. They get uids of their own: the validator and the cache markers know by them
 * that this is no longer the same list.
 */
#include "agent/context/epoch.h"

#include "base/memory.h"

/* Without its thinking; NULL if nothing else would be left. */
static struct message *without_thinking(const struct message *m)
{
	struct message *copy = message_new(m->role);

	for (size_t i = 0; i < m->n_blocks; i++) {
		if (m->blocks[i].kind != BLOCK_THINKING)
			message_add_block(copy, &m->blocks[i]);
	}
	copy->provider = mem_strdup(m->provider);
	copy->model = mem_strdup(m->model);
	copy->round = m->round;
	if (copy->n_blocks)
		return copy;
	message_free(copy);
	return NULL;
}

/* W11: a signature behind a changed prefix is refused for ever (wire.md 1.6). */
static void drop_thinking(struct view *view, struct conversation *c, size_t from)
{
	for (size_t i = from; i < view->n; i++) {
		struct message *copy;

		if (!message_count(view->list[i], BLOCK_THINKING))
			continue;
		copy = without_thinking(view->list[i]);
		if (!copy)
			continue; /* an answer of thinking alone renders to nothing anyway */
		copy->uid = conversation_take_uid(c);
		copy->until = message_position(view->list[i]);
		copy->estimate = view->list[i]->estimate;
		view_own(view, copy);
		view->list[i] = copy;
	}
}

void epoch_put(struct view *view, struct conversation *conversation, size_t index,
	       struct message *copy)
{
	copy->uid = conversation_take_uid(conversation);
	copy->until = message_position(view->list[index]);
	view_own(view, copy);
	view->list[index] = copy;
}

void epoch_close(struct view *view, struct conversation *conversation, size_t from, bool bound)
{
	if (bound)
		drop_thinking(view, conversation, from);
	view->epoch++;
}

void epoch_end(struct view *view, struct ledger *ledger, struct conversation *conversation,
	       size_t from, size_t to, struct message *with, bool bound)
{
	size_t more = with ? 1 : 0;

	if (with) {
		with->uid = conversation_take_uid(conversation);
		if (to > from)
			with->until = message_position(view->list[to - 1]);
		view_own(view, with);
	}
	memmove(view->list + from + more, view->list + to, (view->n - to) * sizeof(*view->list));
	if (with)
		view->list[from] = with;
	view->n -= to - from - more;
	if (bound)
		drop_thinking(view, conversation, from + more);
	view->epoch++;
	ledger_restart(ledger, view->list, view->n);
}

void epoch_restore(struct view *view, struct ledger *ledger, struct conversation *conversation,
		   struct message *const *list, size_t n, size_t taken, bool bound)
{
	MEM_GROW(view->list, view->cap, n + 1);
	memcpy(view->list, list, n * sizeof(*list));
	view->n = n;
	view->taken = taken;
	view_sync(view, conversation);
	if (bound)
		drop_thinking(view, conversation, n);
	view->epoch++;
	ledger_restart(ledger, view->list, view->n);
}

size_t epoch_tail(const struct view *view, size_t after, size_t least, int64_t tokens)
{
	size_t best = 0;
	int64_t sum = 0;

	for (size_t i = view->n; i-- > after + 1;) {
		const struct message *m = view->list[i];
		bool enough = best && view->n - best >= least;

		sum += m->estimate;
		if (best && sum > (enough ? tokens : 2 * tokens))
			break;
		if (m->role == MESSAGE_ASSISTANT && view->list[i - 1]->role == MESSAGE_USER)
			best = i;
	}
	return best;
}
