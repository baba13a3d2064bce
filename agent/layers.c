/*
 * layers.c - see layers.h.
 *
 * The head that stands in the place of older rounds holds the opening's own parts, the user's words by code (X2),
 * the summary, and what attach.c brings back: facts, memory, jobs, files.
 */
#include "agent/layers.h"

#include <string.h>

#include "agent/attach.h"
#include "agent/compact_job.h"
#include "agent/context/summary.h"
#include "agent/events.h"
#include "agent/instructions_news.h"
#include "agent/state.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define LASTING_MOST 3 /* decisions, and rejected approaches, of one agent: the newest */

/* ---- which layer ---- */

enum layer layer_of(const struct message *m, const struct block *b)
{
	switch (b->origin) {
	case ORIGIN_SUMMARY: return LAYER_SUMMARY;
	case ORIGIN_USER:
	case ORIGIN_TASK:
	case ORIGIN_EVALUATOR:
	case ORIGIN_INSTRUCTIONS:
	case ORIGIN_ENVIRONMENT:
	case ORIGIN_HANDOFF: /* what an earlier generation distilled */
	case ORIGIN_MEMORY: return LAYER_CORE;
	case ORIGIN_NUDGE: /* in a head: the user's words, as baton writes them */
	case ORIGIN_ATTACHMENT:
	case ORIGIN_HOOK: return message_is_summary(m) ? LAYER_CORE : LAYER_LATEST;
	case ORIGIN_MODEL:
	case ORIGIN_TOOL: break;
	}
	/* A picture of no call is one that a person gave. */
	return b->kind == BLOCK_IMAGE && !b->id ? LAYER_CORE : LAYER_LATEST;
}

/* ---- from the latest down ---- */

void layers_add_words(struct agent *a, struct message *head)
{
	struct user_words_rendered rendered;
	AUTO_BUF struct buf text = BUF_INIT;
	struct err why = ERR_INIT;

	if (user_words_render(&a->words, 0, &a->ledger, &text, &rendered, &why) < 0)
		event_warning(a->channel, "%s", why.message);
	message_add_text(head, ORIGIN_NUDGE, text.data, text.len);
	a->words_shown = a->words.n;
}

/* The opening's blocks, with the words of its speaker in their rendered form. */
static void add_opening(struct agent *a, struct message *head)
{
	const struct message *opening = a->conversation.messages[0];
	bool words = false;

	for (size_t i = 0; i < opening->n_blocks; i++) {
		enum block_origin origin = opening->blocks[i].origin;

		if (origin == ORIGIN_MEMORY || origin == ORIGIN_HOOK)
			continue; /* their present state is an attachment */
		if (origin == ORIGIN_INSTRUCTIONS)
			continue; /* instructions_head has them */
		if (origin != ORIGIN_USER && origin != ORIGIN_TASK)
			message_add_block(head, &opening->blocks[i]);
		else if (!words)
			layers_add_words(a, head);
		words |= origin == ORIGIN_USER || origin == ORIGIN_TASK;
	}
}

static void add_summary(const struct compact_job *job, struct message *head)
{
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t last = job->a->view.list[job->tail]->round - 1;

	switch (job->kind) {
	case KIND_RULE: buf_add(&text, job->summary.data, job->summary.len); break;
	case KIND_NOTES:
		summary_frame_notes(&text, job->summary.data, job->summary.len, last);
		break;
	case KIND_FROM:
		summary_frame(&text, job->summary.data, job->summary.len,
			      job->a->view.list[job->from]->round, last);
		break;
	case KIND_FULL:
	case KIND_UP_TO: summary_frame(&text, job->summary.data, job->summary.len, 1, last); break;
	}
	message_add_text(head, ORIGIN_SUMMARY, text.data, text.len);
}

/* X2: a summary that goes takes along the words that stood with it. */
static bool takes_words_along(const struct compact_job *job)
{
	for (size_t i = job->from; i < job->tail; i++)
		if (message_is_summary(job->a->view.list[i]))
			return true;
	return false;
}

/* What comes back takes half of what is left below the threshold at most: it must not be what fills the
 * window again (H12). */
static int64_t attach_room(const struct compact_job *job, const struct message *head)
{
	const struct agent *a = job->a;
	int64_t left = a->budget.compact - a->ledger.category[LEDGER_SYSTEM] -
		       a->ledger.category[LEDGER_TOOLS] - compact_estimate(&a->view, 0, job->from) -
		       compact_estimate(&a->view, job->tail, a->view.n);

	for (size_t i = 0; i < head->n_blocks; i++)
		left -= ledger_estimate_text(&a->ledger, head->blocks[i].text,
					     head->blocks[i].text_len);
	return MAX(MIN(left / 2, a->budget.rehydrate), INT64_C(0));
}

/* A summary behind another one leaves the head alone; words that are new since come with it. */
int layers_descend(const struct compact_job *job, struct message **ret, struct err *err)
{
	struct agent *a = job->a;
	struct message *head = message_new(MESSAGE_USER);
	struct attach_input in = {
		.summary = buf_str(&job->summary),
		.summary_len = job->summary.len,
		.from = job->from,
		.tail = job->tail,
		.by_notes = job->kind == KIND_NOTES,
		.head_stays = job->kind == KIND_FROM,
	};

	instructions_head(a, head, in.head_stays);
	if (!in.head_stays)
		add_opening(a, head);
	else if (a->words.n > a->words_shown || takes_words_along(job))
		layers_add_words(a, head);
	add_summary(job, head);
	in.room = attach_room(job, head);
	if (attach_all(a, &in, head, err) < 0) {
		message_free(head);
		return -1;
	}
	*ret = head;
	return 0;
}

/* ---- from the core down ---- */

static bool names_a_reason(const char *line)
{
	static const char *const signs[] = {"because", "since", "so that", "otherwise",
					    "as it",   "因为",	"以免",	   "否则"};

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (text_find_nocase(line, strlen(line), signs[i]))
			return true;
	return false;
}

static void add_line(struct buf *out, const char *lead, const char *line, size_t *n)
{
	AUTO_FREE char *text = mem_printf("%s%s", lead, line);

	buf_adds(out, (*n)++ ? "," : "");
	json_write_cstr(out, text);
}

/* Is it among these already? Models note the same thing twice. */
static bool is_noted(const struct memory_lines *l, const char *line)
{
	for (size_t i = 0; i < l->n; i++)
		if (strstr(l->list[i], line))
			return true;
	return false;
}

static void add_reasoned(const struct agent *a, enum memory_field field, const char *lead,
			 struct buf *out, size_t *n)
{
	const struct memory_lines *l = &a->memory.fields[field];
	size_t taken = 0;

	for (size_t i = l->n; i-- > 0 && taken < LASTING_MOST;) {
		if (!names_a_reason(l->list[i]) ||
		    is_noted(&a->memory.fields[MEMORY_LESSONS], l->list[i]))
			continue;
		add_line(out, lead, l->list[i], n);
		taken++;
	}
}

static void add_noted(const struct agent *a, enum memory_field field, struct buf *out, size_t *n)
{
	for (size_t i = 0; i < a->memory.fields[field].n; i++)
		add_line(out, "", a->memory.fields[field].list[i], n);
}

void layers_end(const struct agent *a, struct buf *out)
{
	size_t n = 0;

	buf_adds(out, "{\"preferences\":[");
	add_noted(a, MEMORY_PREFERENCES, out, &n);
	buf_adds(out, "],\"lessons\":[");
	n = 0;
	add_noted(a, MEMORY_LESSONS, out, &n);
	if (a->outcome.status == OUTCOME_DONE) {
		add_reasoned(a, MEMORY_DECISIONS, "decided: ", out, &n);
		add_reasoned(a, MEMORY_REJECTED, "ruled out: ", out, &n);
	}
	buf_adds(out, "]}");
}
