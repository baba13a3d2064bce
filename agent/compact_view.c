/*
 * compact_view.c - puts the new head (layers.h) in the place of the older rounds.
 *
 * The boundary record (H12) says what was kept, so that the view can be built again from the transcript; the
 * old list is kept for an undo until the next rewrite.
 */
#include "agent/compact_job.h"
#include "agent/compact_review.h"

#include <inttypes.h>

#include "agent/context/epoch.h"
#include "agent/context/price.h"
#include "agent/events.h"
#include "agent/layers.h"
#include "agent/tools/tool.h"
#include "base/clock.h"
#include "base/memory.h"

static const char *const kind_names[] = {
	[KIND_FULL] = "full",	[KIND_UP_TO] = "up_to", [KIND_FROM] = "from",
	[KIND_NOTES] = "notes", [KIND_RULE] = "rule",
};

/* X1: what the work needs most is what it has done; the rest is on disk. */
void compact_facts(struct compact_job *job)
{
	const struct agent *a = job->a;
	size_t n = 0;
	const char *const *touched =
		a->toolbox.context ? tool_context_touched(a->toolbox.context, &n) : NULL;
	AUTO_JSON struct json_object *codes = record_exit_codes(&a->record);

	job->kind = KIND_RULE;
	job->from = 0;
	buf_clear(&job->summary);
	buf_addf(&job->summary,
		 "[The first part of this conversation did not fit any more and no summary could "
		 "be made. "
		 "What is on record:]\n- %" PRId64 " tool calls, %" PRId64 " of them failed\n",
		 a->record.tool_calls, a->record.failed_calls);
	for (size_t i = 0; i < n; i++)
		buf_addf(&job->summary, "- changed: %s\n", touched[i]);
	if (json_len(codes)) {
		buf_adds(&job->summary, "- exit codes of the last commands: ");
		json_write(&job->summary, codes);
		buf_addc(&job->summary, '\n');
	}
	buf_adds(&job->summary,
		 "Look at the working tree (git status, git diff) before you go on.");
}

/* H15's words for what began it. */
static const char *source_of(enum compact_trigger trigger)
{
	switch (trigger) {
	case COMPACT_PRICE:
	case COMPACT_BREAK: return "auto";
	case COMPACT_MANUAL: return "manual";
	case COMPACT_REACTIVE: return "reactive";
	case COMPACT_THRESHOLD: break;
	}
	return "threshold";
}

/* The new view stands. */
static void tell(const struct compact_job *job, int64_t after)
{
	struct agent *a = job->a;
	struct compact_cost cost = {
		.before = job->before,
		.after = after,
		.kept = a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS] +
			compact_estimate(&a->view, 0, job->from),
		.calls = job->spent,
		.asked = a->settings->compact_model,
	};
	struct event_compact_facts facts = {
		.trigger = compact_trigger_name(job->request->trigger),
		.kind = kind_names[job->kind],
		.before = job->before,
		.after = after,
		.messages = job->tail - job->from,
		.input = job->call_input,
		.output = job->call_output,
		.by_rule = job->kind == KIND_RULE,
		.reason = job->kind == KIND_RULE ? job->why : "",
		.duration_ms = clock_mono_ms() - job->began,
		.cache_lost = price_tokens_from(&a->view, job->from),
		.source = source_of(job->request->trigger),
		.call_cost = compact_cost_of_calls(a, &cost),
		.next_cost = compact_cost_of_next(a, &cost),
	};

	compact_account_open(a, facts.trigger, &cost);
	event_compact(a->channel, &facts);
}

static void count(const struct compact_job *job)
{
	struct context_counts *c = &job->a->counts;

	switch (job->kind) {
	case KIND_FULL: c->full++; break;
	case KIND_UP_TO: c->up_to++; break;
	case KIND_FROM: c->from++; break;
	case KIND_NOTES: c->by_notes++; break;
	case KIND_RULE: c->by_rule++; break;
	}
	c->reactive += job->request->trigger == COMPACT_REACTIVE;
	c->early += job->request->trigger == COMPACT_PRICE;
	c->manual += job->request->trigger == COMPACT_MANUAL;
}

/* For an undo: pointers only, the messages live as long as view and conversation. */
static void keep_old(struct agent *a, size_t words_shown)
{
	struct compact_undo *old = &a->undo;

	free(old->list);
	old->list = mem_array(NULL, a->view.n, sizeof(*old->list));
	memcpy(old->list, a->view.list, a->view.n * sizeof(*old->list));
	old->n = a->view.n;
	old->taken = a->view.taken;
	old->words_shown = words_shown;
}

int compact_replace(struct compact_job *job, struct err *err)
{
	struct agent *a = job->a;
	struct transcript_boundary boundary = {
		.trigger = compact_trigger_name(job->request->trigger),
		.content = buf_str(&job->summary),
		.pre_tokens = job->before,
		.head = message_position(a->view.list[job->tail]),
		.anchor = job->from ? message_position(a->view.list[job->from - 1])
				    : a->conversation.messages[0]->uid,
		.tail = message_position(a->view.list[a->view.n - 1]),
	};
	size_t words_shown = a->words_shown;
	struct message *head;

	if (layers_descend(job, &head, err) < 0)
		return -1;
	keep_old(a, words_shown);
	compact_keep_texts(job, head);
	epoch_end(&a->view, &a->ledger, &a->conversation, job->from, job->tail, head,
		  a->settings->model->preserved_thinking);
	a->undo.epoch = a->view.epoch;
	boundary.post_tokens = ledger_used(&a->ledger);
	transcript_boundary(a->transcript, &boundary);
	a->boundaries++;
	count(job);
	tell(job, boundary.post_tokens);
	return 0;
}

int compact_undo(struct agent *a, struct err *why)
{
	struct compact_undo *old = &a->undo;
	int64_t sum = a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS];

	view_sync(&a->view, &a->conversation);
	if (!old->list)
		return err_set(why, ERR_NOT_FOUND, "there is no compaction to undo") < 0;
	if (old->epoch != a->view.epoch)
		return err_set(why, ERR_NOT_FOUND,
			       "the window was rewritten again since the last compaction") < 0;
	for (size_t i = 0; i < old->n; i++)
		sum += old->list[i]->estimate;
	for (size_t i = old->taken; i < a->conversation.n; i++)
		sum += a->conversation.messages[i]->estimate;
	if (sum >= a->budget.closing)
		return err_set(why, ERR_TOO_LARGE,
			       "what was there before needs %" PRId64 " tokens, and %" PRId64
			       " are the most that can be used",
			       sum, a->budget.closing) < 0;
	epoch_restore(&a->view, &a->ledger, &a->conversation, old->list, old->n, old->taken,
		      a->settings->model->preserved_thinking);
	a->words_shown = old->words_shown;
	free(take_ptr(old->list));
	a->counts.undone++;
	a->compact_hold = true; /* else the next round would do it again */
	a->validator = (struct validator){.n = 0};
	transcript_undone(a->transcript);
	a->boundaries--;
	event_warning(a->channel, "the last compaction was undone");
	return 0;
}
