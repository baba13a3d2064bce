/*
 * compact.c - decides what a compaction replaces, and by what.
 *
 * First the notes (H4), which cost no call; then a summary (H5, compact_call.c), of all that is older than
 * the tail or of what lies behind an earlier summary (H8); then, where the window needs room, facts by rule
 * (X1: a valid next request exists whatever the model does). A cut by rule counts as a failed compaction.
 */
#include "agent/compact.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/compact_job.h"
#include "agent/compact_review.h"
#include "agent/context/epoch.h"
#include "agent/context/progress.h"
#include "agent/events.h"
#include "agent/room.h"
#include "base/clock.h"
#include "base/memory.h"

#define TAIL_SHARE	4
#define ROUNDS_TO_GO	3 /* that should fit behind a compaction before the next one */
#define RECENT_MESSAGES 6
#define SUMMARY_TOKENS	2000 /* that a summary is taken to need */
#define WORK_SHARE	40   /* per cent of it, where the present work reaches back further */
#define SUMMARIES_MOST	3    /* one behind the other, before all become one */
#define HEAD_SHARE	30   /* per cent of the threshold that summaries which stay may take */
#define LEAST_FREED	10   /* per cent (X3) */

static const char *const trigger_names[] = {
	[COMPACT_THRESHOLD] = "threshold", [COMPACT_PRICE] = "price",	[COMPACT_BREAK] = "break",
	[COMPACT_REACTIVE] = "reactive",   [COMPACT_MANUAL] = "manual",
};

const char *compact_trigger_name(enum compact_trigger trigger)
{
	return trigger_names[trigger];
}

/* Only a window that is full justifies a cut by rule. */
static bool is_need(enum compact_trigger trigger)
{
	return trigger == COMPACT_THRESHOLD || trigger == COMPACT_REACTIVE;
}

/* ---- the range ---- */

/* What the newest rounds added, on average. */
static int64_t recent_growth(const struct view *view)
{
	size_t from = view->n > RECENT_MESSAGES ? view->n - RECENT_MESSAGES : 1;

	return compact_estimate(view, from, view->n) / (RECENT_MESSAGES / 2);
}

/* A quarter of the threshold, if more rounds fit; less in a small window, where what stays would fill it
 * again within a round or two (H10). */
static int64_t tail_room(const struct agent *a, size_t *least)
{
	int64_t threshold = room_threshold(a), share = threshold / TAIL_SHARE;
	int64_t head = a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS] +
		       a->conversation.messages[0]->estimate +
		       MIN(a->budget.reserve / 4, SUMMARY_TOKENS);
	int64_t room = threshold - head - ROUNDS_TO_GO * recent_growth(&a->view);

	if (room >= 2 * share)
		return share;
	*least = 0;
	return MAX(MIN(room, share), 0);
}

static size_t find_tail(struct agent *a)
{
	size_t least = (size_t)a->settings->knobs.tail_messages, tail;

	view_sync(&a->view, &a->conversation);
	if (!a->view.n)
		return 0;
	int64_t room = tail_room(a, &least);
	tail = epoch_tail(&a->view, 0, least, room);
	/* Our estimates say that all of it is small, and the provider's count that it is not. */
	return tail >= 2 ? tail : epoch_tail(&a->view, 0, 0, 0);
}

bool compact_possible(struct agent *a)
{
	return a->breaker.state == BREAKER_CLOSED && find_tail(a) >= 2;
}

/* Summaries at the view's beginning. */
static size_t leading_summaries(const struct view *view)
{
	size_t n = 0;

	while (n < view->n && message_is_summary(view->list[n]))
		n++;
	return n;
}

/* H8 `from`: the earlier summary stays, with its prefix in the cache and without being told once more. */
static bool keeps_summaries(const struct compact_job *job, size_t n)
{
	const struct agent *a = job->a;

	return n > 0 && n < SUMMARIES_MOST && n + 2 <= job->tail &&
	       compact_estimate(&a->view, 0, n) * 100 < room_threshold(a) * HEAD_SHARE;
}

/* H8 by rule. */
static void choose_range(struct compact_job *job)
{
	struct agent *a = job->a;
	size_t n = leading_summaries(&a->view);
	size_t work = progress_begin(&a->view, job->tail, room_threshold(a) * WORK_SHARE / 100);

	if (work >= 2 && work < job->tail) {
		job->tail = work;
		job->kind = KIND_UP_TO;
	} else if (keeps_summaries(job, n)) {
		job->from = n;
		job->kind = KIND_FROM;
	}
}

/* The index of the first message of a round at or after this one; 0: there is none. */
static size_t round_index(const struct view *view, int64_t round)
{
	for (size_t i = 1; i < view->n; i++)
		if (view->list[i]->round >= round && view->list[i]->role == MESSAGE_ASSISTANT)
			return i;
	return 0;
}

/* H8 by hand. */
static int take_pivot(struct compact_job *job, struct err *why)
{
	const struct compact_request *r = job->request;
	size_t at = round_index(&job->a->view, r->pivot);

	if (at < 2 && r->mode == COMPACT_UP_TO)
		return err_set(why, ERR_USAGE, "nothing lies before round %" PRId64, r->pivot);
	if (at < 1 || (r->mode == COMPACT_FROM && at >= job->tail))
		return err_set(why, ERR_USAGE,
			       "round %" PRId64 " is among those that stay as they are", r->pivot);
	if (r->mode == COMPACT_UP_TO) {
		job->tail = MIN(at, job->tail);
		job->kind = KIND_UP_TO;
	} else {
		job->from = at;
		job->kind = KIND_FROM;
	}
	return 0;
}

/* ---- by notes ---- */

/* What the view would hold with the notes in the place of [0, tail). */
static int64_t size_with_notes(const struct agent *a, size_t tail)
{
	return a->ledger.category[LEDGER_SYSTEM] + a->ledger.category[LEDGER_TOOLS] +
	       a->conversation.messages[0]->estimate + notes_tokens(&a->notes.notes, &a->ledger) +
	       compact_estimate(&a->view, tail, a->view.n);
}

/* H4 with its fall-throughs. A focus asks for a summary that follows it. */
static bool take_notes(struct compact_job *job)
{
	struct agent *a = job->a;
	size_t tail = 0;
	enum notes_use use;

	if (!a->settings->knobs.notes || job->focus.len || job->request->mode != COMPACT_BY_RULE)
		return false;
	use = session_notes_use(a, &tail);
	tail = MIN(tail, job->tail);
	if (use == NOTES_NONE)
		a->counts.notes_empty++;
	else if (use == NOTES_LOST || tail < 2)
		a->counts.notes_lost++;
	else if (size_with_notes(a, tail) * 100 > MIN(room_threshold(a), job->before) * 90)
		a->counts.notes_too_large++;
	else {
		job->tail = tail;
		job->kind = KIND_NOTES;
		notes_render(&a->notes.notes, &job->summary);
		return true;
	}
	return false;
}

/* ---- deciding ---- */

/* X3, H12: what was gained is judged by the new payload. */
static void judge(struct compact_job *job)
{
	struct agent *a = job->a;
	int64_t after = ledger_used(&a->ledger);
	const char *why = NULL;

	if (job->kind == KIND_RULE)
		why = job->why;
	else if (after > a->budget.compact)
		why = "what is left is still above the threshold";
	else if ((job->before - after) * 100 < job->before * LEAST_FREED)
		why = "it freed less than a tenth";
	a->counts.futile += why && job->kind != KIND_RULE;
	breaker_compacted(&a->breaker);
	if (!why)
		breaker_succeeded(&a->breaker, a->conversation.round);
	else if (is_need(job->request->trigger))
		breaker_failed(&a->breaker, why);
	a->compact_base = after;
	a->compact_round = a->conversation.round;
	a->compact_hold = false;
}

/* 0: something stands ready for [from, tail); 1: nothing does. */
static int find_substitute(struct compact_job *job, struct err *why, struct err *err)
{
	int rc;

	if (take_notes(job))
		return 0;
	if (job->request->mode == COMPACT_BY_RULE)
		choose_range(job);
	else if (take_pivot(job, why) < 0)
		return 1;
	job->replaced = compact_estimate(&job->a->view, MAX(job->from, (size_t)1), job->tail);
	rc = compact_ask(job, err);
	if (rc > 0)
		err_set(why, ERR_INVALID, "%s", job->why);
	if (rc > 0 && is_need(job->request->trigger)) {
		job->tail = find_tail(job->a);
		compact_facts(job);
		rc = 0;
	}
	return rc;
}

/* A person does not want this summary: facts where the window is full, else nothing happens. */
static int review(struct compact_job *job, struct err *why, struct err *err)
{
	int rc = compact_review(job, err);

	if (rc <= 0)
		return rc;
	snprintf(job->why, sizeof(job->why), "a person rejected the summary");
	err_set(why, ERR_DENIED, "%s", job->why);
	if (!is_need(job->request->trigger))
		return 1;
	job->tail = find_tail(job->a);
	compact_facts(job);
	return 0;
}

/* A trigger in the words of hooks (docs/hooks.md). */
static const char *hook_trigger(const struct compact_request *request)
{
	if (request->trigger == COMPACT_MANUAL)
		return "manual";
	return request->trigger == COMPACT_REACTIVE ? "reactive" : "auto";
}

/* 1 and why: a hook says no. */
static int ask_hooks(struct compact_job *job, struct err *why, struct err *err)
{
	const char *focus = job->request->focus ? job->request->focus : "";

	buf_adds(&job->focus, focus);
	return hooks_before_compact(job->a, hook_trigger(job->request), focus, &job->focus, why,
				    err);
}

static int tell_hooks(const struct compact_job *job, struct err *err)
{
	struct hooks_compacted facts = {
		.trigger = hook_trigger(job->request),
		.before = job->before,
		.after = ledger_used(&job->a->ledger),
		.by_rule = job->kind == KIND_RULE,
		.summary = buf_str(&job->summary),
	};

	return hooks_after_compact(job->a, &facts, err);
}

static int run_job(struct compact_job *job, struct err *why, struct err *err)
{
	struct agent *a = job->a;
	int rc = ask_hooks(job, why, err);

	if (rc)
		return rc;
	job->tail = find_tail(a);
	event_state(a->channel, ACTIVITY_COMPACTING,
		    a->settings->compact_model ? a->settings->compact_model->name
					       : a->settings->model->name);
	rc = find_substitute(job, why, err);
	if (rc == 0 && job->kind != KIND_RULE)
		rc = review(job, why, err);
	if (rc == 0)
		rc = compact_replace(job, err);
	if (rc)
		return rc;
	judge(job);
	return tell_hooks(job, err);
}

int compact_now(struct agent *a, const struct compact_request *request, struct err *why,
		struct err *err)
{
	struct compact_job job = {
		.a = a,
		.request = request,
		.before = ledger_used(&a->ledger),
		.began = clock_mono_ms(),
	};
	int rc;

	if (!compact_possible(a)) {
		err_set(why, ERR_BUSY, "%s",
			a->breaker.state == BREAKER_OPEN ? a->breaker.why
							 : "there is nothing that could go");
		return 1;
	}
	rc = run_job(&job, why, err);
	buf_release(&job.focus);
	buf_release(&job.summary);
	return rc;
}
