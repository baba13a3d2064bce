/*
 * compact.c - makes room by a summary.
 *
 *   view:   opening | m1 m2 ... | tail        the tail: at least six messages from a round's beginning
 *   call:   opening | m1 m2 ... | tail | "summarise"      same head, same prefix: it reads the cache
 *   after:  opening + words + summary | tail
 *
 * Two tries, then the cut by rule: what is dropped is named by facts that the agent has on record (X1: a
 * valid next request exists whatever the model does). Where the call itself does not fit, the oldest
 * rounds are left out of it (H7). A cut counts as a failed compaction. The compaction's calls pass
 * through ask_side, which never looks at thresholds, so none can trigger another (H11).
 */
#include "agent/compact.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/ask.h"
#include "agent/attach.h"
#include "agent/context/epoch.h"
#include "agent/context/summary.h"
#include "agent/events.h"
#include "agent/tools/tool.h"
#include "base/clock.h"
#include "base/memory.h"

#define TRIES	      2
#define SHRINK_TRIES  3 /* H7 */
#define TAIL_MESSAGES 6
#define TAIL_SHARE    4	 /* the tail takes a quarter of the threshold, if more rounds fit */
#define LEAST_FREED   10 /* per cent (X3) */
#define BYTES_A_TOKEN 8

const char *compact_trigger_name(enum compact_trigger trigger)
{
	return trigger == COMPACT_REACTIVE ? "reactive" : "threshold";
}

/* One compaction. */
struct job {
	struct agent *a;
	enum compact_trigger trigger;
	size_t tail; /* index of the first message that stays */
	int64_t before, replaced;
	int64_t began;
	struct buf summary;
	bool by_rule;
	char why[300]; /* of the last failure */
	int64_t call_input, call_output;
};

/* ---- the call ---- */

/* Rounds begin with an answer: the index of the first one at or behind `from` (H7 never parts a call
 * from its result). */
static size_t round_start(const struct view *view, size_t from)
{
	while (from < view->n && view->list[from]->role != MESSAGE_ASSISTANT)
		from++;
	return from;
}

static int64_t estimate_of(const struct view *view, size_t from, size_t to)
{
	int64_t sum = 0;

	for (size_t i = from; i < to; i++)
		sum += view->list[i]->estimate;
	return sum;
}

/* The first message that stands in the call behind the opening: 1, or later where all do not fit. */
static size_t fit_call(const struct job *job, int64_t asked, int64_t output)
{
	const struct agent *a = job->a;
	int64_t room = a->budget.window - a->budget.window / 100 - output - asked;
	int64_t used = job->before;
	size_t from = 1;

	while (used > room && from < job->tail) {
		size_t next = round_start(&a->view, from + 1);

		used -= estimate_of(&a->view, from, next);
		from = next;
	}
	return MIN(from, job->tail);
}

/* X2, trap 16: a rule that nobody gave does not become one by standing in a summary. */
static void drop_inventions(struct job *job)
{
	struct agent *a = job->a;
	struct user_words_check check = {.summary = buf_str(&job->summary),
					 .summary_len = job->summary.len};
	AUTO_FREE const char **also =
		mem_array(NULL, a->settings->n_instructions + 1, sizeof(*also));
	struct user_words_findings found = {0};
	struct buf clean = BUF_INIT;

	for (size_t i = 0; i < a->settings->n_instructions; i++)
		also[i] = a->settings->instructions[i].text;
	check.also = also;
	check.n_also = a->settings->n_instructions;
	if (!user_words_check(&a->words, &check, &found) && found.invented)
		event_warning(a->channel, "%zu rules that nobody gave were taken out of a summary",
			      found.invented);
	user_words_clean(buf_str(&job->summary), job->summary.len, &found, &clean);
	buf_release(&job->summary);
	job->summary = clean;
	user_words_findings_release(&found);
}

/* One call without the messages [1, from). 0: its answer's summary is in job->summary. */
static int call_once(struct job *job, struct message *request, size_t from,
		     enum call_class *ret_class, struct err *err)
{
	struct agent *a = job->a;
	size_t n = a->view.n - (from - 1) + 1;
	AUTO_FREE struct message **list = mem_array(NULL, n, sizeof(*list));
	int64_t estimate = job->before - estimate_of(&a->view, 1, from) +
			   ledger_estimate_text(&a->ledger, request->blocks[0].text,
						request->blocks[0].text_len);
	struct ask_result r = {.ttft_ms = -1};
	struct err why = ERR_INIT;

	list[0] = a->view.list[0];
	memcpy(list + 1, a->view.list + from, (a->view.n - from) * sizeof(*list));
	list[n - 1] = request;
	int rc = ask_side(a, CALL_COMPACT, list, n, estimate,
			  MIN(a->budget.reserve, a->budget.max_output), &r, err);
	if (rc < 0)
		return -1;
	*ret_class = r.class;
	if (rc > 0) {
		snprintf(job->why, sizeof(job->why), "%s", r.why);
		return 1;
	}
	job->call_input += usage_prompt(&r.answer.usage);
	job->call_output += r.answer.usage.output;
	bool cut = r.answer.stop == STOP_MAX_TOKENS || r.answer.stop == STOP_WINDOW;
	buf_clear(&job->summary);
	rc = summary_take(r.answer.message, cut, (size_t)job->replaced * BYTES_A_TOKEN,
			  &job->summary, &why);
	if (rc < 0)
		snprintf(job->why, sizeof(job->why), "%.290s", why.message);
	else
		drop_inventions(job);
	stream_answer_release(&r.answer);
	return rc < 0;
}

/* Drops a fifth of what the call holds, at least a round. */
static size_t shrink(const struct job *job, size_t from)
{
	int64_t drop = estimate_of(&job->a->view, from, job->tail) / 5, sum = 0;

	do {
		size_t next = round_start(&job->a->view, from + 1);

		sum += estimate_of(&job->a->view, from, next);
		from = next;
	} while (sum < drop && from < job->tail);
	return MIN(from, job->tail);
}

/* 0: a summary; 1: none; -1. */
static int ask_summary(struct job *job, struct err *err)
{
	struct agent *a = job->a;
	struct message *request = summary_request(NULL);
	size_t from = fit_call(job, 2000, a->budget.reserve);
	int rc = 1, shrunk = 0;

	request->uid = conversation_take_uid(&a->conversation);
	view_own(&a->view, request);
	for (int tries = 0; rc > 0 && tries < TRIES && from < a->view.n;) {
		enum call_class class = CALL_CLASS_NONE;

		rc = call_once(job, request, from, &class, err);
		if (rc > 0 && class == CALL_OVERFLOW && shrunk++ < SHRINK_TRIES &&
		    from < job->tail) {
			from = shrink(job, from);
			continue;
		}
		tries++;
		/* Without money or a model a second try is no better than the first. */
		if (class == CALL_BUDGET || class == CALL_AUTH)
			break;
	}
	return rc;
}

/* ---- the new view ---- */

/* X1: without a model. What the work needs most is what it has done; the rest is on disk. */
static void facts_summary(struct job *job)
{
	const struct agent *a = job->a;
	size_t n = 0;
	const char *const *touched =
		a->toolbox.context ? tool_context_touched(a->toolbox.context, &n) : NULL;
	AUTO_JSON struct json_object *codes = record_exit_codes(&a->record);

	job->by_rule = true;
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

/* X2: what the user said is put back by code, constraints whole and word for word. */
static void add_words(struct agent *a, struct message *head)
{
	struct user_words_rendered rendered;
	AUTO_BUF struct buf text = BUF_INIT;
	struct err why = ERR_INIT;

	if (user_words_render(&a->words, 0, &a->ledger, &text, &rendered, &why) < 0)
		event_warning(a->channel, "%s", why.message);
	message_add_text(head, ORIGIN_NUDGE, text.data, text.len);
}

/* The opening, with the words of its speaker in their rendered form, and the summary behind it. */
static int make_head(const struct job *job, struct message **ret, struct err *err)
{
	struct agent *a = job->a;
	const struct message *opening = a->conversation.messages[0];
	struct message *head = message_new(MESSAGE_USER);
	AUTO_BUF struct buf text = BUF_INIT;
	bool words = false;

	for (size_t i = 0; i < opening->n_blocks; i++) {
		enum block_origin origin = opening->blocks[i].origin;

		if (origin != ORIGIN_USER && origin != ORIGIN_TASK)
			message_add_block(head, &opening->blocks[i]);
		else if (!words)
			add_words(a, head);
		words |= origin == ORIGIN_USER || origin == ORIGIN_TASK;
	}
	if (job->by_rule)
		buf_add(&text, job->summary.data, job->summary.len);
	else
		summary_frame(&text, job->summary.data, job->summary.len,
			      a->view.list[job->tail]->round - 1);
	message_add_text(head, ORIGIN_SUMMARY, text.data, text.len);
	struct attach_input in = {
		.summary = buf_str(&job->summary),
		.summary_len = job->summary.len,
		.tail = job->tail,
		.room = a->budget.rehydrate,
	};
	if (attach_all(a, &in, head, err) < 0) {
		message_free(head);
		return -1;
	}
	*ret = head;
	return 0;
}

static void tell(const struct job *job, int64_t after)
{
	struct agent *a = job->a;
	struct event_compact_facts facts = {
		.trigger = compact_trigger_name(job->trigger),
		.before = job->before,
		.after = after,
		.messages = job->tail - 1,
		.input = job->call_input,
		.output = job->call_output,
		.by_rule = job->by_rule,
		.reason = job->by_rule ? job->why : "",
		.duration_ms = clock_mono_ms() - job->began,
	};

	event_compact(a->channel, &facts);
}

static int replace(struct job *job, struct err *err)
{
	struct message *head;
	struct agent *a = job->a;
	struct transcript_boundary boundary = {
		.trigger = compact_trigger_name(job->trigger),
		.content = buf_str(&job->summary),
		.pre_tokens = job->before,
		.head = a->view.list[job->tail]->uid,
		.anchor = a->conversation.messages[0]->uid,
		.tail = a->view.list[a->view.n - 1]->uid,
	};

	if (make_head(job, &head, err) < 0)
		return -1;
	epoch_end(&a->view, &a->ledger, &a->conversation, 0, job->tail, head,
		  a->settings->model->preserved_thinking);
	boundary.post_tokens = ledger_used(&a->ledger);
	transcript_boundary(a->transcript, &boundary);
	tell(job, boundary.post_tokens);
	return 0;
}

/* ---- deciding ---- */

/* An alarm, once (H15). */
static void tell_open(struct agent *a)
{
	if (a->breaker.state != BREAKER_OPEN || a->breaker.told)
		return;
	a->breaker.told = true;
	event_warning(a->channel, "compaction is given up (%s): a reset is wanted", a->breaker.why);
}

/* X3, H12: what was gained is judged by the new payload. */
static void judge(struct job *job)
{
	struct agent *a = job->a;
	int64_t after = ledger_used(&a->ledger);
	const char *why = job->why;

	if (!job->by_rule && after > a->budget.compact)
		why = "what is left is still above the threshold";
	else if (!job->by_rule && (job->before - after) * 100 < job->before * LEAST_FREED)
		why = "it freed less than a tenth";
	else if (!job->by_rule)
		why = NULL;
	if (why)
		breaker_failed(&a->breaker, why);
	else
		breaker_succeeded(&a->breaker, a->conversation.round);
	tell_open(a);
}

static size_t find_tail(struct agent *a)
{
	view_sync(&a->view, &a->conversation);
	size_t tail = epoch_tail(&a->view, 0, TAIL_MESSAGES, a->budget.compact / TAIL_SHARE);

	/* Our estimates say that all of it is small, and the provider's count that it is not. */
	return tail >= 2 ? tail : epoch_tail(&a->view, 0, 0, 0);
}

bool compact_possible(struct agent *a)
{
	return a->breaker.state == BREAKER_CLOSED && find_tail(a) >= 2;
}

int compact_now(struct agent *a, enum compact_trigger trigger, struct err *err)
{
	struct job job = {
		.a = a,
		.trigger = trigger,
		.before = ledger_used(&a->ledger),
		.began = clock_mono_ms(),
	};
	int rc;

	if (!compact_possible(a))
		return 1;
	job.tail = find_tail(a);
	job.replaced = estimate_of(&a->view, 1, job.tail);
	event_state(a->channel, "compacting", a->settings->model->name);
	rc = ask_summary(&job, err);
	if (rc > 0)
		facts_summary(&job);
	if (rc >= 0)
		rc = replace(&job, err);
	if (rc == 0)
		judge(&job);
	buf_release(&job.summary);
	return rc;
}

int compact_if_needed(struct agent *a, struct err *err)
{
	if (ledger_used(&a->ledger) <= a->budget.compact)
		return 0;
	breaker_wanted(&a->breaker, a->conversation.round);
	tell_open(a);
	return compact_now(a, COMPACT_THRESHOLD, err) < 0 ? -1 : 0;
}
