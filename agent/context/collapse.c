/*
 * collapse.c - puts the snapshot in the place of the rounds.
 *
 *   before:  opening ... head | a1 r1 a2 r2 ... | tail        head: the last message before the first answer
 *   after:   opening ... head + words + snapshot | tail
 *
 * The snapshot goes into the head and not into a message of its own: roles stay in order for every server,
 * and the provider still finds its prefix up to where the head ended before.
 */
#include "agent/context/collapse.h"

#include "agent/context/rounds.h"
#include "agent/context/snapshot.h"
#include "agent/layers.h"
#include "base/memory.h"
#include "base/text.h"

#define TAIL_SHARE   4 /* the tail takes a quarter of the compact threshold, as a compaction's does */
#define BUDGET_SHARE 6	  /* the snapshot takes a sixth of what it replaces, ... */
#define BUDGET_LEAST 6000 /* ... but within these bounds, in bytes */
#define BUDGET_MOST  48000

struct plan {
	size_t head, tail;   /* view(head, tail) goes */
	int64_t first, last; /* rounds */
	int64_t gone;	     /* tokens of the messages that go */
	int64_t replaced;    /* with those of an earlier snapshot */
};

static bool make_plan(const struct rung_input *in, struct plan *ret)
{
	const struct view *view = in->view;
	struct plan p = {.head = rounds_begin(view)};
	int64_t first, last;

	if (p.head == 0 || p.head >= view->n)
		return false;
	p.head--;
	p.tail = epoch_tail(view, p.head, (size_t)in->knobs->tail_messages,
			    in->budget->compact / TAIL_SHARE);
	if (p.tail < p.head + 2)
		return false;
	p.first = view->list[p.head + 1]->round;
	p.last = view->list[p.tail]->round - 1;
	for (size_t i = p.head + 1; i < p.tail; i++)
		p.gone += view->list[i]->estimate;
	p.replaced = p.gone;
	for (size_t i = 0; i < view->list[p.head]->n_blocks; i++)
		if (snapshot_is(&view->list[p.head]->blocks[i], &first, &last)) {
			p.first = MIN(p.first, first);
			p.replaced += view->list[p.head]->blocks[i].estimate;
		}
	*ret = p;
	return p.last >= p.first;
}

/* What no rule can say in other words: the core (H21), and of a head, which a compaction from a pivot on leaves in the
 * middle of the view, its summary too. Of the model's own memory the newest copy is enough: below. */
static bool stays(const struct message *m, const struct block *b)
{
	if (b->kind != BLOCK_TEXT && b->kind != BLOCK_IMAGE)
		return false;
	return layer_of(m, b) != LAYER_LATEST &&
	       (message_is_summary(m) || b->origin != ORIGIN_MEMORY);
}

/* The newest notes of the model, unless the tail shows newer ones. */
static const struct block *newest_memory(const struct view *view, const struct plan *p)
{
	for (size_t i = view->n; i-- > p->head + 1;)
		for (size_t k = view->list[i]->n_blocks; k-- > 0;)
			if (view->list[i]->blocks[k].origin == ORIGIN_MEMORY &&
			    view->list[i]->blocks[k].kind == BLOCK_TEXT)
				return i < p->tail ? &view->list[i]->blocks[k] : NULL;
	return NULL;
}

static void add_kept(struct message *head, const struct view *view, const struct plan *p)
{
	const struct block *memory = newest_memory(view, p);

	for (size_t i = p->head + 1; i < p->tail; i++)
		for (size_t k = 0; k < view->list[i]->n_blocks; k++)
			if (stays(view->list[i], &view->list[i]->blocks[k]))
				message_add_block(head, &view->list[i]->blocks[k]);
	if (memory)
		message_add_block(head, memory);
}

static size_t budget_of(const struct plan *p)
{
	size_t budget = (size_t)p->replaced * BYTES_PER_TOKEN / BUDGET_SHARE;

	return MAX(MIN(budget, (size_t)BUDGET_MOST), (size_t)BUDGET_LEAST);
}

static struct message *make_head(const struct rung_input *in, const struct plan *p)
{
	const struct message *old = in->view->list[p->head];
	struct message *head = message_new(MESSAGE_USER);
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t first, last;

	for (size_t i = 0; i < old->n_blocks; i++)
		if (!snapshot_is(&old->blocks[i], &first, &last))
			message_add_block(head, &old->blocks[i]);
	add_kept(head, in->view, p);
	snapshot_write(in->conversation, p->first, p->last, budget_of(p), &text);
	message_add_text(head, ORIGIN_SUMMARY, text.data, text.len);
	head->round = old->round;
	return head;
}

/* The tokens of all but what the old head had: the price of what comes in its place. */
static int64_t growth(const struct rung_input *in, const struct message *head, const struct plan *p)
{
	int64_t sum = 0;

	for (size_t i = 0; i < head->n_blocks; i++)
		sum += head->blocks[i].estimate
			       ? head->blocks[i].estimate
			       : ledger_estimate_text(in->ledger, head->blocks[i].text,
						      head->blocks[i].text_len);
	return sum - in->view->list[p->head]->estimate;
}

bool collapse_wanted(const struct rung_input *in)
{
	return in->knobs->collapse && ledger_used(in->ledger) > in->budget->collapse;
}

int collapse_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	struct epoch_edit edit;
	struct message *head;
	struct plan p;

	*ret_freed = 0;
	if (!make_plan(in, &p) || p.gone < in->budget->clear_gain)
		return 0;
	head = make_head(in, &p);
	if (!rung_earns(in, p.head + 1, p.gone - growth(in, head, &p))) {
		message_free(head);
		return 0;
	}
	rung_begin(in, "collapse", &edit);
	epoch_change(&edit, p.head, p.tail, head);
	epoch_apply(&edit, &in->done);
	*ret_freed = in->done.freed;
	return 0;
}
