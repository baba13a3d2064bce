/*
 * clear.c - which results go, and whether it pays.
 *
 * The newest stay (knob clear_keep), wherever they are. Subagent reports, notes and MCP results are not on the list:
 * nobody can get them again. A result that was cleared is small, so it is never found a second time.
 */
#include "agent/context/clear.h"

#include "agent/context/epoch.h"
#include "base/memory.h"

#define ROUNDS_TO_COME 20 /* at most that many are counted on */
#define SMALL	       60 /* tokens: a result of this size gains nothing */

static const struct {
	const char *name;
	bool effects;
} clearable[] = {
	{"read", false}, {"grep", false}, {"glob", false},
	{"shell", true}, {"edit", true},  {"write", true},
};

static const char *placeholder(const struct block *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(clearable); i++) {
		if (b->kind == BLOCK_TOOL_RESULT && strcmp(b->name, clearable[i].name) == 0)
			return clearable[i].effects ? CLEARED_EFFECT : CLEARED;
	}
	return NULL;
}

static int64_t tokens_of(const struct ledger *ledger, const struct block *b)
{
	return ledger_estimate_text(ledger, b->text, b->text_len);
}

/* What would be gained, and the first message that changes. */
struct plan {
	int64_t total; /* tokens of all clearable results */
	int64_t gain;
	size_t first; /* index in the view */
	size_t keep;  /* results from the end that stay */
};

/* From the newest to the oldest. */
static struct plan make_plan(const struct view *view, const struct ledger *ledger, size_t stay)
{
	struct plan plan = {.first = view->n};

	for (size_t i = view->n; i-- > 0;) {
		const struct message *m = view->list[i];

		for (size_t k = m->n_blocks; k-- > 0;) {
			if (!placeholder(&m->blocks[k]))
				continue;
			int64_t tokens = tokens_of(ledger, &m->blocks[k]);
			plan.total += tokens;
			if (plan.keep < stay) {
				plan.keep++;
			} else if (tokens > SMALL) {
				plan.gain += tokens - SMALL / 2;
				plan.first = i;
			}
		}
	}
	return plan;
}

/* The rest of the prefix is written again once; each round to come reads less from the cache. */
static bool pays(const struct rung_input *in, const struct plan *plan)
{
	const struct model_price *price = &in->model->price;
	int64_t rewritten = 0;

	if (ledger_used(in->ledger) > in->budget->compact)
		return true;
	if (!price->known)
		return false;
	for (size_t i = plan->first; i < in->view->n; i++)
		rewritten += in->view->list[i]->estimate;
	rewritten -= plan->gain;
	double cost = (double)rewritten * (price->cache_write - price->cache_read);
	double saved = (double)plan->gain * price->cache_read *
		       (double)MIN(in->rounds_left, ROUNDS_TO_COME);
	return saved > cost;
}

bool clear_wanted(const struct rung_input *in)
{
	struct plan plan;

	/* The walk over the view is for windows that can be near the share at all. */
	if (in->ledger->category[LEDGER_RESULTS] <= in->budget->clear_at)
		return false;
	plan = make_plan(in->view, in->ledger, (size_t)in->knobs->clear_keep);
	return plan.total > in->budget->clear_at && plan.gain >= in->budget->clear_gain &&
	       pays(in, &plan);
}

/* A copy of the message in which results that are not among the newest are a line. */
static struct message *cleared(const struct message *m, const struct ledger *ledger, size_t *keep,
			       int64_t *freed)
{
	struct message *copy = message_new(m->role);
	size_t results = 0;

	for (size_t k = 0; k < m->n_blocks; k++)
		results += placeholder(&m->blocks[k]) != NULL;
	size_t stays = MIN(*keep, results), seen = 0;
	*keep -= stays;
	for (size_t k = 0; k < m->n_blocks; k++) {
		const struct block *b = &m->blocks[k];
		const char *line = placeholder(b);
		bool old = line && seen++ < results - stays;

		if (!old || tokens_of(ledger, b) <= SMALL) {
			message_add_block(copy, b);
			continue;
		}
		*freed += tokens_of(ledger, b);
		message_add_result(copy, b->id, b->name, line, strlen(line), b->is_error);
		while (k + 1 < m->n_blocks && m->blocks[k + 1].kind == BLOCK_IMAGE)
			k++; /* the pictures of a result go with it */
	}
	copy->round = m->round;
	return copy;
}

int clear_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	struct view *view = in->view;
	size_t keep = (size_t)in->knobs->clear_keep, first = view->n;
	int64_t freed = 0;

	for (size_t i = view->n; i-- > 0;) {
		int64_t before = freed;
		struct message *copy;

		if (!message_count(view->list[i], BLOCK_TOOL_RESULT))
			continue;
		copy = cleared(view->list[i], in->ledger, &keep, &freed);
		if (freed == before) {
			message_free(copy);
			continue;
		}
		copy->estimate = MAX(view->list[i]->estimate - (freed - before), 1);
		epoch_put(view, in->conversation, i, copy);
		first = i;
	}
	if (first < view->n)
		epoch_close(view, in->conversation, first + 1, in->model->preserved_thinking);
	ledger_cleared(in->ledger, freed);
	*ret_freed = freed;
	return 0;
}
