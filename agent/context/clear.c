/*
 * clear.c - which results go, and whether it pays.
 *
 * The newest stay (knob clear_keep), wherever they are. Subagent reports, notes and MCP results are not on the
 * list of about.c: nobody can get them again. A result that was cleared is small, so it is never found a second
 * time (T3). Sizes are those that the ledger has already counted: looking reads no text.
 */
#include "agent/context/clear.h"

#include "agent/context/facts.h"
#include "base/memory.h"

#define SMALL 60 /* tokens: a result of this size gains nothing */

/* A result that can be cleared, with its images. */
static bool is_clearable(const struct rung_input *in, const struct block *b)
{
	return about_placeholder(b, in->knobs) != NULL && !about_is_cleared(b);
}

/* What goes with a result that is cleared: it and the images behind it. */
static int64_t tokens_of(const struct message *m, size_t k, size_t *ret_images)
{
	int64_t sum = m->blocks[k].estimate;
	size_t images = 0;

	while (k + images + 1 < m->n_blocks && m->blocks[k + images + 1].kind == BLOCK_IMAGE &&
	       m->blocks[k + images + 1].id)
		sum += m->blocks[k + ++images].estimate;
	*ret_images = images;
	return sum;
}

/* What would be gained, and the first message that changes. */
struct plan {
	int64_t total; /* tokens of all clearable results */
	int64_t gain;
	size_t first; /* index in the view */
};

/* From the newest to the oldest. */
static struct plan make_plan(const struct rung_input *in, size_t keep)
{
	const struct view *view = in->view;
	struct plan plan = {.first = view->n};

	for (size_t i = view->n; i-- > 0;) {
		const struct message *m = view->list[i];

		for (size_t k = m->n_blocks; k-- > 0;) {
			size_t images;
			int64_t tokens;

			if (!is_clearable(in, &m->blocks[k]))
				continue;
			tokens = tokens_of(m, k, &images);
			plan.total += tokens;
			if (keep) {
				keep--;
			} else if (tokens > SMALL) {
				plan.gain += tokens - SMALL / 2;
				plan.first = i;
			}
		}
	}
	return plan;
}

/* Of a failed command the reason stays. False: the line would be no shorter than the text. */
static bool add_cleared(struct message *copy, const struct block *b, const char *line,
			size_t images)
{
	AUTO_BUF struct buf text = BUF_INIT;

	buf_adds(&text, line);
	facts_add_failure(b, &text);
	if (!images && text.len >= b->text_len)
		return false;
	message_add_result(copy, b->id, b->name, text.data, text.len, b->is_error);
	return true;
}

/* A copy of the message in which results that are not among the newest are a line; NULL if all stay. */
static struct message *cleared(const struct rung_input *in, const struct message *m, size_t *keep)
{
	struct message *copy = message_new(m->role);
	size_t results = 0, seen = 0, changed = 0, images;

	for (size_t k = 0; k < m->n_blocks; k++)
		results += is_clearable(in, &m->blocks[k]);
	size_t stays = MIN(*keep, results);
	*keep -= stays;
	for (size_t k = 0; k < m->n_blocks; k++) {
		const struct block *b = &m->blocks[k];
		bool old = is_clearable(in, b) && seen++ < results - stays;

		if (!old || tokens_of(m, k, &images) <= SMALL ||
		    !add_cleared(copy, b, about_placeholder(b, in->knobs), images)) {
			message_add_block(copy, b);
			continue;
		}
		k += images; /* the pictures of a result go with it */
		changed++;
	}
	copy->round = m->round;
	if (changed)
		return copy;
	message_free(copy);
	return NULL;
}

void clear_old(struct rung_input *in, const char *rung, size_t keep)
{
	struct view *view = in->view;
	struct epoch_edit edit;

	rung_begin(in, rung, &edit);
	for (size_t i = view->n; i-- > 0;) {
		struct message *copy;

		if (!message_count(view->list[i], BLOCK_TOOL_RESULT))
			continue;
		copy = cleared(in, view->list[i], &keep);
		if (copy)
			epoch_change(&edit, i, i + 1, copy);
	}
	epoch_apply(&edit, &in->done);
}

bool clear_wanted(const struct rung_input *in)
{
	/* The walk over the view is for windows that can be near the share at all. */
	return ledger_results(in->ledger) > in->budget->clear_at;
}

int clear_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	size_t keep = (size_t)in->knobs->clear_keep;
	struct plan plan = make_plan(in, keep);

	if (plan.total > in->budget->clear_at && rung_earns(in, plan.first, plan.gain))
		clear_old(in, "clear", keep);
	*ret_freed = in->done.freed;
	return 0;
}
