/*
 * reset.c - see reset.h.
 *
 * The key of each question is new, because each carries another document; the parent journals the one that it takes.
 * From its acknowledgement on this generation is over, whatever becomes of the process.
 */
#include "agent/reset.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/effect.h"
#include "agent/events.h"
#include "agent/handoff_ask.h"
#include "agent/handoff_make.h"
#include "agent/state.h"
#include "base/memory.h"

#define TRIES 3 /* the model's, the model's once more, facts alone */

bool reset_possible(const struct agent *a)
{
	return strcmp(a->settings->reset, "never") != 0 && !a->resets.refused && !a->forced;
}

/* ---- the parent's word ---- */

static void write_body(const struct handoff *h, const char *why, struct buf *out)
{
	AUTO_JSON struct json_object *body = json_object_new_object();

	json_set_str(body, "reason", h->reason);
	json_set_str(body, "why", why);
	json_set_bool(body, "facts_only", h->facts_only);
	json_set(body, "handoff", handoff_to_json(h));
	json_write(out, body);
}

static void join_reasons(struct json_object *answer, struct buf *out)
{
	struct json_object *reasons = json_arr(answer, "reasons");

	for (size_t i = 0; i < json_len(reasons); i++)
		buf_addf(out, "%s- %s", i ? "\n" : "", json_object_get_string(json_at(reasons, i)));
	if (!json_len(reasons))
		buf_adds(out, "- no reason was given");
}

enum parent_word { WORD_YES, WORD_AGAIN, WORD_NEVER };

/* *ret_word and, of a refusal, its reasons in `wrong`. */
static int ask_parent(struct agent *a, const struct handoff *h, const char *why,
		      enum parent_word *ret_word, struct buf *wrong, struct err *err)
{
	AUTO_FREE char *key = effect_key(a, "reset", ++a->resets.asked);
	AUTO_JSON struct json_object *answer = NULL;
	AUTO_BUF struct buf body = BUF_INIT;
	const char *text = "";
	bool ok = false;

	write_body(h, why, &body);
	struct effect_ask ask = {
		.type = FRAME_RESET,
		.kind = ACK_RESET,
		.call = key,
		.body = body.data,
		.len = body.len,
	};
	event_state(a->channel, ACTIVITY_REPORTING, "handoff");
	effect_settle(a);
	if (effect_run(a, &ask, &ok, &text, err) < 0)
		return -1;
	buf_clear(wrong);
	json_parse(text, strlen(text), &answer, NULL);
	join_reasons(answer, wrong);
	*ret_word = ok ? WORD_YES : json_flag(answer, "final", true) ? WORD_NEVER : WORD_AGAIN;
	return 0;
}

/* ---- the document ---- */

/* Each try begins from the records: what was refused is not mended but left out. */
static int make_document(struct agent *a, enum handoff_reason reason, const char *why, int try,
			 const char *wrong, struct handoff **ret, struct err *err)
{
	struct handoff *h = handoff_make(a, reason, why);
	struct err none = ERR_INIT;
	int rc = try < TRIES ? handoff_ask(a, h, wrong, &none, err) : 0;

	if (rc < 0) {
		handoff_free(h);
		return -1;
	}
	if (rc > 0)
		event_warning(a->channel, "the handoff has no judgement of the model: %s",
			      none.message);
	*ret = h;
	return 0;
}

static int refuse(struct agent *a, const char *why)
{
	a->resets.refused = true;
	snprintf(a->resets.why, sizeof(a->resets.why), "%s", why);
	event_warning(a->channel, "no reset: %s", a->resets.why);
	return 0;
}

static int accepted(struct agent *a, const char *why)
{
	return agent_end(a, OUTCOME_RESET, CALL_CLASS_NONE, "%s", why);
}

int reset_run(struct agent *a, enum handoff_reason reason, const char *why, struct err *err)
{
	AUTO_BUF struct buf wrong = BUF_INIT;
	bool judged = true;

	for (int try = 1; try <= TRIES; try++) {
		struct handoff *h = NULL;
		enum parent_word word = WORD_NEVER;
		int rc;

		/* Without a judgement the second try would send the same. */
		if (try == 2 && !judged)
			try = TRIES;
		if (make_document(a, reason, why, try, try > 1 ? buf_str(&wrong) : NULL, &h, err) <
		    0)
			return -1;
		judged = !h->facts_only;
		rc = ask_parent(a, h, why, &word, &wrong, err);
		handoff_free(h);
		if (rc < 0)
			return -1;
		if (word == WORD_YES)
			return accepted(a, why);
		if (word == WORD_NEVER)
			return refuse(a, buf_str(&wrong));
		event_warning(a->channel, "the handoff was refused: %.400s", buf_str(&wrong));
	}
	return refuse(a, "no handoff passed the parent's check");
}

/* ---- R7 ---- */

/* The newest end of this command on record is a failure. */
static bool fails_on_record(const struct agent *a, const char *command)
{
	for (size_t i = 0; i < a->facts.n_commands; i++) {
		const struct fact_command *c = &a->facts.commands[i];
		if (c->failure && strcmp(c->command, command) == 0)
			return true;
	}
	return false;
}

/* A check is red by the report's own word, or by the record where the report says that it passed. */
static bool is_red(struct agent *a, struct json_object *report)
{
	struct json_object *tests = json_arr(report, "tests");

	facts_take(&a->facts, &a->conversation);
	for (size_t i = 0; i < json_len(tests); i++) {
		const char *result = json_str(json_at(tests, i), "result", "");

		if (strcmp(result, "failed") == 0 ||
		    (strcmp(result, "passed") == 0 &&
		     fails_on_record(a, json_str(json_at(tests, i), "command", ""))))
			return true;
	}
	return false;
}

/* Open by the plan, by the working memory, by a check, or by the report's own word. */
static const char *open_work(struct agent *a, struct json_object *report)
{
	if (a->memory.plan.items > a->memory.plan.done)
		return "the plan has open items";
	if (a->memory.fields[MEMORY_PENDING].n)
		return "its notes hold pending actions";
	if (strcmp(json_str(report, "status", ""), "partial") == 0)
		return "it reports the task as partly done";
	if (strcmp(json_str(report, "status", ""), "done") == 0 && is_red(a, report))
		return "a check that it reports is red";
	return NULL;
}

/* Once per point of work: a successor that comes to the same place with the same words is believed. */
static bool was_here(struct agent *a)
{
	const struct handoff_statement *now, *then;
	bool same;

	if (!a->handoff || !a->settings->handoff_reason ||
	    strcmp(a->settings->handoff_reason, handoff_reason_name(HANDOFF_ANXIETY)) != 0)
		return false;
	struct handoff *h = handoff_make(a, HANDOFF_ANXIETY, "");
	now = handoff_the(h, HANDOFF_POINT);
	then = handoff_the(a->handoff, HANDOFF_POINT);
	same = !now || (then && now->file && then->file && !strcmp(now->file, then->file)) ||
	       (then && !now->file && !then->file);
	handoff_free(h);
	return same;
}

bool reset_is_anxious(struct agent *a, struct json_object *report)
{
	int64_t pct = a->settings->knobs.anxiety_pct, used = ledger_used(&a->ledger);
	const char *open = open_work(a, report);

	if (!pct || !open || a->settings->model->no_anxiety || !reset_possible(a) ||
	    waiter_report_wanted(a->waiter, NULL) || used * 100 <= a->budget.effective * pct ||
	    was_here(a))
		return false;
	snprintf(a->resets.anxious, sizeof(a->resets.anxious),
		 "it wanted to end with work open (%s) and %" PRId64 " %% of its window used", open,
		 used * 100 / a->budget.effective);
	return true;
}
