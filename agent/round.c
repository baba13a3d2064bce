/*
 * round.c - decides what comes after each answer.
 *
 *   answer                          what follows
 *   calls (any stop reason)         run them; the last one not if the output limit cut it
 *   text, end of turn               once: a nudge to report; again: a report by rule
 *   text, cut at the limit          a nudge to go on in smaller parts; the third time: as text at an end
 *   nothing (trap 26, 28)           a nudge as a new message, twice; then failed
 *   pause_turn                      the content goes back as it is
 *   refusal                         failed, with the reason
 *   window exceeded                 a report by rule, limit
 *
 * Before each request the limits are looked at: a wish of the parent to report, max_rounds, the
 * window. Each makes the next request the last one, forced: a nudge says so, and only `report` runs.
 */
#include "agent/round.h"

#include <stdio.h>

#include "agent/ask.h"
#include "agent/calls.h"
#include "agent/events.h"
#include "agent/instructions_news.h"
#include "agent/memory_show.h"
#include "agent/prompt.h"
#include "agent/handoff_take.h"
#include "agent/report_tool.h"
#include "agent/resume.h"
#include "agent/room.h"
#include "agent/subagents.h"
#include "base/memory.h"

#define BLANK_MAX  2 /* nudges before it is a failure */
#define CUT_MAX	   2
#define PAUSED_MAX 10

/* ---- before a request ---- */

/* R5: whoever reads the report learns why nobody went on. */
static void add_refusal(struct agent *a)
{
	size_t n = strlen(a->forced_why);

	if (a->resets.refused)
		snprintf(a->forced_why + n, sizeof(a->forced_why) - n, "; no reset: %s",
			 a->resets.why);
}

/* forced_why is filled in. */
static void force(struct agent *a, enum forced forced)
{
	add_refusal(a);
	AUTO_FREE char *text = mem_printf(NUDGE_FORCED, a->forced_why);

	a->forced = forced;
	agent_nudge(a, text);
}

static void force_by_parent(struct agent *a, const char *reason)
{
	snprintf(a->forced_why, sizeof(a->forced_why), "%s",
		 *reason ? reason : "you are asked to report now");
	waiter_take_report(a->waiter);
	force(a, FORCED_PARENT);
}

static void force_by_rounds(struct agent *a)
{
	snprintf(a->forced_why, sizeof(a->forced_why), "the limit of %lld round%s is reached",
		 (long long)a->settings->max_rounds, a->settings->max_rounds == 1 ? "" : "s");
	force(a, FORCED_ROUNDS);
}

static void force_by_window(struct agent *a)
{
	snprintf(a->forced_why, sizeof(a->forced_why),
		 "the context window is nearly full (%lld of %lld tokens)",
		 (long long)ledger_used(&a->ledger), (long long)a->budget.effective);
	force(a, FORCED_WINDOW);
}

/* There is no successor to go on with a fresh window: the work so far is reported and kept. */
static void force_by_breaker(struct agent *a)
{
	snprintf(a->forced_why, sizeof(a->forced_why), "a reset of the context is wanted: %s",
		 a->breaker.why);
	force(a, FORCED_RESET);
}

/* W8, H10, X1: what ends a generation and not the work, if its role lets it. 1: it has ended. */
static int end_generation(struct agent *a, enum handoff_reason reason, const char *why,
			  void (*report)(struct agent *a), struct err *err)
{
	int rc = reset_possible(a) ? reset_run(a, reason, why, err) : 0;

	if (rc || !report)
		return rc;
	report(a);
	return 0;
}

static int end_by_rounds(struct agent *a, struct err *err)
{
	AUTO_FREE char *why = mem_printf("the limit of %lld rounds of one conversation is reached",
					 (long long)a->settings->max_rounds);

	return end_generation(a, HANDOFF_ROUNDS, why, force_by_rounds, err);
}

static int end_by_breaker(struct agent *a, struct err *err)
{
	bool checks = a->breaker.checks >= BREAKER_CHECKS;
	AUTO_FREE char *why = mem_printf("compaction is given up: %s", a->breaker.why);

	return end_generation(a, checks ? HANDOFF_SUMMARY : HANDOFF_BREAKER, why, force_by_breaker,
			      err);
}

static int end_by_request(struct agent *a, char *why, struct err *err)
{
	int rc = 0;

	if (reset_possible(a))
		rc = reset_run(a, HANDOFF_REQUEST, *why ? why : "somebody asked for it", err);
	else
		event_warning(a->channel, "no reset: %s",
			      a->resets.refused ? a->resets.why : "the role says never");
	free(why);
	return rc;
}

static int end_by_anxiety(struct agent *a, struct err *err)
{
	AUTO_FREE char *why = mem_strdup(a->resets.anxious);

	*a->resets.anxious = '\0';
	int rc = reset_run(a, HANDOFF_ANXIETY, why, err);
	if (rc == 0)
		agent_nudge(a, NUDGE_NO_RESET);
	return rc;
}

/* The parent's wish goes first, since it may come while another limit has forced the agent already.
 */
static int check_limits(struct agent *a, struct err *err)
{
	int64_t used = ledger_used(&a->ledger);
	const char *reason = "";
	char *wish;

	if (waiter_report_wanted(a->waiter, &reason)) {
		force_by_parent(a, reason);
		return 0;
	}
	if (a->forced)
		return 0;
	if ((wish = waiter_take_reset(a->waiter)))
		return end_by_request(a, wish, err);
	if (fork_own_rounds(a) >= a->settings->max_rounds)
		return end_by_rounds(a, err);
	if (a->breaker.state == BREAKER_OPEN)
		return end_by_breaker(a, err);
	if (*a->resets.anxious)
		return end_by_anxiety(a, err);
	if (a->resets.due)
		return end_generation(a, HANDOFF_COMPACTIONS,
				      "the most compactions of one conversation are made", NULL,
				      err);
	if (used >= a->budget.closing)
		return end_generation(a, HANDOFF_WINDOW, "the window is full", force_by_window,
				      err);
	return 0;
}

/* ---- after an answer ---- */

static enum outcome_status forced_status(const struct agent *a)
{
	return a->forced == FORCED_PARENT ? OUTCOME_DONE : OUTCOME_LIMIT;
}

/* The model did not call report although it had to: facts and its text have to do. */
static int close_by_rule(struct agent *a, enum outcome_status status, const char *why,
			 struct err *err)
{
	if (report_by_rule(a, why, a->end_text, err) < 0)
		return -1;
	return agent_end(a, status,
			 a->forced == FORCED_WINDOW || a->forced == FORCED_RESET ? CALL_OVERFLOW
										 : CALL_CLASS_NONE,
			 "%s", why);
}

/* One request, and as many more as a report of the wrong shape may be sent back. What is not
 * reported then is reported by rule: an agent never ends without a word. */
static int check_forced(struct agent *a, struct err *err)
{
	if (!a->forced || ++a->forced_requests <= 1 + (a->wrong_reports ? REPORT_WRONG_MAX : 0))
		return 0;
	return close_by_rule(a, forced_status(a), a->forced_why, err);
}

static void keep_end_text(struct agent *a, const struct message *m)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TEXT)
			buf_addf(&text, "%s%s", text.len ? "\n" : "", m->blocks[i].text);
	/* "As I said above." must not replace what was said above. */
	if (text.len && (!a->end_text || text.len >= strlen(a->end_text))) {
		free(a->end_text);
		a->end_text = buf_take(&text);
	}
}

static int take_blank(struct agent *a, const struct stream_answer *answer)
{
	ledger_answer(&a->ledger, NULL, &answer->usage);
	if (answer->stop == STOP_WINDOW)
		return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
				 "the answer filled the model's context window");
	if (++a->blank > BLANK_MAX)
		return agent_end(a, OUTCOME_FAILED, CALL_CLASS_NONE,
				 "the model gave %d empty answers in a row", a->blank);
	agent_nudge(a, answer->stop == STOP_MAX_TOKENS ? NUDGE_CUT : NUDGE_BLANK);
	return 0;
}

/* H2: the prompt of this answer had less in it than was sent, and so will the next ones. The usage tells it; what the
 * estimates say of the rest must not be learned from it. */
static void book_edits(struct agent *a, const struct stream_answer *answer)
{
	int64_t more = answer->cleared - a->provider_cleared;

	if (more > 0) {
		ledger_removed(&a->ledger, more);
		ledger_cleared(&a->ledger, more);
	}
	a->provider_cleared = answer->cleared;
}

/* Takes the answer into the conversation; with calls the record is on disk before they run (I5). */
static int append_answer(struct agent *a, struct stream_answer *answer, struct err *err)
{
	struct message *m = conversation_append(&a->conversation, take_ptr(answer->message));
	size_t calls = message_count(m, BLOCK_TOOL_CALL);

	client_render_message(a->client, m);
	book_edits(a, answer);
	ledger_answer(&a->ledger, m, &answer->usage);
	transcript_message(a->transcript, m);
	transcript_usage(a->transcript, m->round, &answer->usage, &a->ledger);
	transcript_tools_started(a->transcript, m);
	event_text(a->channel, m);
	return calls ? transcript_sync(a->transcript, err) : 0;
}

/* Calls are run whatever the stop reason says (wire.md 4, rule 4); a limit cuts at most the last
 * one. */
static int take_calls(struct agent *a, enum stop_reason stop, struct err *err)
{
	const struct message *m = conversation_last(&a->conversation);
	bool at_end = m->blocks[m->n_blocks - 1].kind == BLOCK_TOOL_CALL;
	bool cut = (stop == STOP_MAX_TOKENS || stop == STOP_WINDOW) && at_end;

	a->cut = 0;
	a->told_to_report = false;
	return calls_run(a, m, cut, err);
}

/* Models end their turn with a text when they think that they are done: one reminder, then the text
 * is taken for what it is, marked as not reported by the model. */
static int take_text(struct agent *a, enum stop_reason stop, struct err *err)
{
	keep_end_text(a, conversation_last(&a->conversation));
	if (a->forced)
		return 0; /* the next request's check ends it */
	if (stop == STOP_MAX_TOKENS && ++a->cut <= CUT_MAX) {
		agent_nudge(a, NUDGE_CUT);
		return 0;
	}
	if (a->told_to_report) {
		if (report_by_rule(a, "the model ended without calling report", a->end_text, err) <
		    0)
			return -1;
		return agent_end(a, OUTCOME_DONE, CALL_CLASS_NONE, "%s", "");
	}
	a->told_to_report = true;
	if (a->toolbox.context && tool_context_running_jobs(a->toolbox.context))
		agent_nudge(a, NUDGE_NO_REPORT " " NUDGE_JOBS);
	else
		agent_nudge(a, NUDGE_NO_REPORT);
	return 0;
}

/* The server works on in its own tools: the same content goes back, and that is the whole next
 * request. */
static int take_pause(struct agent *a)
{
	if (++a->paused > PAUSED_MAX)
		return agent_end(a, OUTCOME_FAILED, CALL_CLASS_NONE,
				 "the server paused the turn %d times in a row", a->paused);
	if (!message_count(conversation_last(&a->conversation), BLOCK_OPAQUE))
		agent_nudge(a, NUDGE_PAUSED);
	return 0;
}

static void tell_round(struct agent *a, const struct ask_result *r)
{
	struct event_round_facts facts = {
		.round = fork_own_rounds(a),
		.request_bytes = r->request_bytes,
		.estimate = r->estimate,
		.usage = &r->answer.usage,
		.stop = r->answer.stop,
		.used = ledger_used(&a->ledger),
		.budget = &a->budget,
		.ledger = &a->ledger,
		.ttft_ms = r->ttft_ms,
		.duration_ms = r->duration_ms,
	};
	int64_t learned = ledger_learned_window(&a->ledger);

	event_round(a->channel, &facts);
	occupancy_answered(a, &r->answer.usage);
	if (learned && learned < a->budget.window) {
		event_warning(
			a->channel,
			"the server cuts the prompt silently at %lld tokens: that is the window "
			"from now on (give the model a larger one, or --window)",
			(long long)learned);
		a->settings->model->window = learned;
		agent_set_budget(a, NULL);
		occupancy_start(a);
	}
}

/* Text or calls of an answer that is worth keeping. */
static int take_content(struct agent *a, struct ask_result *r, struct err *err)
{
	enum stop_reason stop = r->answer.stop;
	int rc;

	if (append_answer(a, &r->answer, err) < 0)
		return -1;
	tell_round(a, r);
	if (message_count(conversation_last(&a->conversation), BLOCK_TOOL_CALL))
		rc = take_calls(a, stop, err);
	else if (stop == STOP_PAUSE)
		return take_pause(a);
	else
		rc = take_text(a, stop, err);
	a->paused = 0;
	if (!rc && stop == STOP_WINDOW)
		return agent_end(a, OUTCOME_LIMIT, CALL_OVERFLOW,
				 "the answer filled the model's context window");
	return rc;
}

static int take_answer(struct agent *a, struct ask_result *r, struct err *err)
{
	int rc;

	conversation_next_round(&a->conversation);
	/* X3: whatever the answer is worth, its usage judges the compaction before it. */
	if (r->answer.usage.known)
		breaker_judged(&a->breaker, usage_prompt(&r->answer.usage) > a->budget.compact);
	if (r->answer.dropped_blocks)
		event_warning(a->channel, "the server dropped thinking blocks of earlier rounds");
	if (r->answer.stop == STOP_REFUSAL) {
		tell_round(a, r);
		return agent_end(a, OUTCOME_FAILED, CALL_REFUSED, "the model declined: %.400s",
				 r->answer.refusal ? r->answer.refusal : "no reason was given");
	}
	if (message_is_blank(r->answer.message)) {
		rc = take_blank(a, &r->answer);
		tell_round(a, r);
		return rc;
	}
	a->blank = 0;
	return take_content(a, r, err);
}

int work_round(struct agent *a, struct err *err)
{
	struct ask_result r = {.ttft_ms = -1};
	int rc;

	if (room_make(a, err) < 0)
		return -1;
	rc = check_limits(a, err);
	if (!rc)
		rc = check_forced(a, err);
	if (!rc)
		rc = ask_model(a, &r, err);
	if (rc)
		return rc;
	rc = take_answer(a, &r, err);
	stream_answer_release(&r.answer);
	return rc;
}

static const char *limit_reason(const struct agent *a)
{
	return *a->outcome.reason ? a->outcome.reason : "a limit was reached";
}

/* An end that no report led to still leaves one of facts behind, where somebody can take it. */
static int leave_report(struct agent *a, struct err *err)
{
	bool by_limit = a->outcome.status == OUTCOME_LIMIT;
	bool by_loop = a->outcome.status == OUTCOME_FAILED && a->record.tool_calls > 0;

	if (a->reported || (!by_limit && !by_loop))
		return 1;
	return report_by_rule(a, limit_reason(a), a->end_text, err) < 0 ? -1 : 1;
}

int work_begin(struct agent *a, struct err *err)
{
	if (a->fork.fresh)
		return fork_begin(a, err);
	if (a->settings->resume)
		return resume_begin(a, err);
	struct message *opening = handoff_opening(a, conversation_opening(a->settings));
	int rc = hooks_at_start(a, opening, err);

	memory_add_earlier(a, opening);
	memory_add_news(a, opening);	 /* what an earlier generation noted */
	subagents_add_state(a, opening); /* whom it started */
	subagents_news(a, opening);
	agent_add_user(a, opening);
	instructions_tell(a);
	return rc;
}

int work_end(struct agent *a, int rc, struct err *err)
{
	compact_account_settle(a);
	if (rc > 0)
		rc = leave_report(a, err);
	/* What a full disk does not take is told by the first error, not by this one. */
	transcript_sync(a->transcript, NULL);
	return rc;
}

int work_run(struct agent *a, struct err *err)
{
	int rc = work_begin(a, err);

	while (!rc)
		rc = work_round(a, err);
	return work_end(a, rc, err);
}
