/*
 * epoch.c - rewrites views, books the difference and puts it on record.
 *
 * Messages of the conversation are immutable and shared, so what is to be changed is copied; copies
 * belong to the view. They get uids of their own: the validator and the cache markers know by them
 * that this is no longer the same list. The new list is put together from the old one in one pass, so
 * that a hundred changes in a view of thousands cost no more than one.
 */
#include "agent/context/epoch.h"

#include "agent/context/edit_record.h"
#include "agent/transcript.h"
#include "base/memory.h"

void epoch_begin(struct epoch_edit *edit, const char *rung, struct view *view,
		 struct ledger *ledger, struct conversation *conversation, bool bound)
{
	*edit = (struct epoch_edit){
		.rung = rung,
		.view = view,
		.ledger = ledger,
		.conversation = conversation,
		.bound = bound,
	};
}

void epoch_change(struct epoch_edit *edit, size_t from, size_t to, struct message *with)
{
	MEM_GROW(edit->changes, edit->cap, edit->n + 1);
	edit->changes[edit->n++] = (struct epoch_change){.from = from, .to = to, .with = with};
}

static void forget(struct epoch_edit *edit)
{
	free(edit->changes);
	edit->changes = NULL;
	edit->n = edit->cap = 0;
}

void epoch_drop(struct epoch_edit *edit)
{
	for (size_t i = 0; i < edit->n; i++)
		message_free(edit->changes[i].with);
	forget(edit);
}

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

struct message *epoch_unbound(struct view *view, struct conversation *c, struct message *m)
{
	struct message *copy = message_count(m, BLOCK_THINKING) ? without_thinking(m) : NULL;

	if (!copy)
		return m; /* an answer of thinking alone renders to nothing anyway */
	copy->uid = conversation_take_uid(c);
	copy->until = message_position(m);
	copy->estimate = m->estimate;
	view_own(view, copy);
	return copy;
}

static int by_place(const void *a, const void *b)
{
	const struct epoch_change *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void sort_changes(struct epoch_edit *edit)
{
	if (edit->n > 1)
		qsort(edit->changes, edit->n, sizeof(*edit->changes), by_place);
}

/* W11: a signature behind a changed prefix is refused for ever (wire.md 1.6), so thinking behind the
 * first change goes too. An answer of thinking alone renders to nothing anyway. */
static void add_thinking(struct epoch_edit *edit, size_t from)
{
	size_t n = edit->n, next = 0;

	for (size_t i = from; i < edit->view->n; i++) {
		const struct message *m = edit->view->list[i];
		struct message *copy;

		while (next < n && edit->changes[next].to <= i)
			next++;
		if (next < n && edit->changes[next].from <= i)
			continue; /* it changes anyway: below */
		if (!message_count(m, BLOCK_THINKING) || !(copy = without_thinking(m)))
			continue;
		epoch_change(edit, i, i + 1, copy);
	}
	for (size_t i = 0; i < n; i++) {
		struct message *with = edit->changes[i].with, *copy;

		if (with && message_count(with, BLOCK_THINKING) &&
		    (copy = without_thinking(with))) {
			message_free(with);
			edit->changes[i].with = copy;
		}
	}
	sort_changes(edit);
}

/* The places of `out` are the view's own list: never more is written than was read, but for an
 * insertion, for which there is room. */
static void rewrite(struct epoch_edit *edit, struct message **out)
{
	struct view *view = edit->view;
	size_t at = 0, n = 0;

	for (size_t i = 0; i < edit->n; i++) {
		const struct epoch_change *c = &edit->changes[i];

		memcpy(out + n, view->list + at, (c->from - at) * sizeof(*out));
		n += c->from - at;
		at = c->to;
		if (c->with)
			out[n++] = c->with;
	}
	memcpy(out + n, view->list + at, (view->n - at) * sizeof(*out));
	view->n = n + view->n - at;
}

uint64_t epoch_position(const struct view *view, const struct epoch_change *c)
{
	return c->to ? message_position(view->list[c->to - 1]) : 0;
}

static void take_over(struct epoch_edit *edit)
{
	for (size_t i = 0; i < edit->n; i++) {
		struct message *with = edit->changes[i].with;

		if (!with)
			continue;
		with->uid = conversation_take_uid(edit->conversation);
		with->until = epoch_position(edit->view, &edit->changes[i]);
		view_own(edit->view, with);
	}
}

/* What the ledger knows of the old messages goes, and that of the new ones comes. */
static int64_t book(const struct epoch_edit *edit)
{
	int64_t freed = 0;

	for (size_t i = 0; i < edit->n; i++) {
		const struct epoch_change *c = &edit->changes[i];

		for (size_t k = c->from; k < c->to; k++)
			freed += ledger_take_out(edit->ledger, edit->view->list[k]);
		if (c->with)
			freed -= ledger_put_in(edit->ledger, c->with);
	}
	return freed;
}

static void put_on_record(const struct epoch_edit *edit)
{
	if (edit->view->record)
		edit_record_write(edit, edit->view->record);
}

/* X14: of what is not sent any more the text alone stays. */
static void forget_renderings(const struct epoch_edit *edit)
{
	for (size_t i = 0; i < edit->n; i++)
		for (size_t k = edit->changes[i].from; k < edit->changes[i].to; k++)
			message_forget_rendering(edit->view->list[k]);
}

/* Everything but the ledger, which the two callers keep in different ways. */
static void change_view(struct epoch_edit *edit)
{
	struct view *view = edit->view;
	size_t cap = view->n + edit->n + 1;
	struct message **list = mem_array(NULL, cap, sizeof(*list));

	view_sweep(view);
	take_over(edit);
	put_on_record(edit);
	forget_renderings(edit);
	rewrite(edit, list);
	free(view->list);
	view->list = list;
	view->cap = cap;
	view->epoch++;
	view->broken = edit->n ? edit->changes[0].from : 0;
}

static int64_t tokens_from(const struct view *view, size_t from)
{
	int64_t sum = 0;

	for (size_t i = from; i < view->n; i++)
		sum += view->list[i]->estimate;
	return sum;
}

void epoch_apply(struct epoch_edit *edit, struct epoch_done *ret)
{
	struct epoch_done done = {.freed = 0};

	if (edit->n) {
		sort_changes(edit);
		for (size_t i = 0; i < edit->n; i++)
			done.messages += edit->changes[i].to - edit->changes[i].from;
		if (edit->bound)
			add_thinking(edit, edit->changes[0].to);
		done.freed = book(edit);
		done.first = edit->changes[0].from;
		change_view(edit);
		done.cache_lost = tokens_from(edit->view, done.first);
	}
	forget(edit);
	*ret = done;
}

void epoch_end(struct view *view, struct ledger *ledger, struct conversation *conversation,
	       size_t from, size_t to, struct message *with, bool bound)
{
	struct epoch_edit edit;

	epoch_begin(&edit, "compact", view, ledger, conversation, bound);
	epoch_change(&edit, from, to, with);
	if (bound)
		add_thinking(&edit, to);
	change_view(&edit);
	forget(&edit);
	ledger_restart(ledger, view->list, view->n);
}

void epoch_restore(struct view *view, struct ledger *ledger, struct conversation *conversation,
		   struct message *const *list, size_t n, size_t taken, bool bound)
{
	struct epoch_edit edit;

	MEM_GROW(view->list, view->cap, n + 1);
	memcpy(view->list, list, n * sizeof(*list));
	view->n = n;
	view->taken = taken;
	view_sync(view, conversation);
	epoch_begin(&edit, "undo", view, ledger, conversation, bound);
	edit.undo = true;
	if (bound)
		add_thinking(&edit, n);
	change_view(&edit);
	forget(&edit);
	ledger_restart(ledger, view->list, view->n);
}

void epoch_unbind(struct view *view, struct ledger *ledger, struct conversation *conversation)
{
	struct epoch_edit edit;
	struct epoch_done done;

	epoch_begin(&edit, "unbind", view, ledger, conversation, false);
	add_thinking(&edit, 0);
	epoch_apply(&edit, &done);
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
