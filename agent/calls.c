/*
 * calls.c - the tool calls of one answer: dispatch, interruption, results.
 *
 * Calls run one after another, in the order in which the model gave them: most have effects on one
 * tree, and the model has no way to say which of them depend on each other. `report` runs last
 * wherever it stands, because it ends everything. Whatever happens, each call ends up with one
 * result: what was not run says so, what was interrupted says that it may have had effects. So the
 * transcript of a stopped agent is as well-formed as that of a finished one.
 */
#include "agent/calls.h"

#include "agent/context/arrival.h"
#include "agent/context/rungs.h"
#include "agent/events.h"
#include "agent/news.h"
#include "agent/prompt.h"
#include "agent/report_tool.h"
#include "agent/resume_calls.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

struct batch {
	struct arrival *list;
	size_t n;
	struct arrival *report; /* the first call of report; NULL */
	struct buf notes;	/* of repeated calls */
	bool resumed;		/* calls that a crash left without results */
	int rc;			/* as returned: 0, 1, -1 */
	struct err err;
};

static void refuse(struct arrival *a, const char *text)
{
	a->result.is_error = true;
	buf_clear(&a->result.text);
	buf_adds(&a->result.text, text);
}

/* Names what there is: a model that made a tool up corrects itself in one round by that, and one
 * that is told only "unknown" tries the next invention. */
static void refuse_unknown(struct agent *a, struct arrival *arrival)
{
	struct buf *text = &arrival->result.text;

	arrival->result.is_error = true;
	buf_addf(text, "Not run: the tool '%.100s' %s. Available: ", arrival->call->name,
		 tool_find(arrival->call->name) ? "is not available to this role"
						: "does not exist");
	toolbox_names(&a->toolbox, text);
}

/* One arrival for each call, in the order of the answer; the results stand in the same order. */
static struct arrival *prepare(const struct message *answer, struct batch *b)
{
	b->list = mem_alloc((answer->n_blocks + 1) * sizeof(*b->list));
	for (size_t i = 0; i < answer->n_blocks; i++) {
		struct arrival *a;

		if (answer->blocks[i].kind != BLOCK_TOOL_CALL)
			continue;
		a = &b->list[b->n++];
		a->call = &answer->blocks[i];
		a->result.exit_code = -1;
	}
	return b->list;
}

/* ---- one call ---- */

/* Calls that were refused count too: a model that keeps sending the same wrong input is as stuck.
 */
static void note_repetition(struct agent *a, struct batch *b, const struct arrival *arrival)
{
	const struct block *call = arrival->call;
	const struct tool_result *r = &arrival->result;
	bool changed = r->has_effects && !r->is_error && r->exit_code < 0;
	int times = repeat_count(&a->repeats, call->name, call->text, call->text_len, r->text.data,
				 r->text.len, changed);

	if (times >= REPEAT_STOP)
		b->rc = agent_end(a, OUTCOME_FAILED, CALL_CLASS_NONE,
				  "the same call of '%.60s' gave the same result %d times",
				  call->name, times);
	else if (times >= REPEAT_TELL)
		buf_addf(&b->notes, "%s" NUDGE_REPEAT, b->notes.len ? "\n" : "", call->name, times);
	if (times >= REPEAT_TELL)
		breaks_repeated(a);
}

/* The parent counts by these events (X5): what it saw stands beside what the report claims. */
static void tell_parent(struct agent *a, const struct arrival *arrival)
{
	const struct tool_result *r = &arrival->result;
	struct event_tool_facts facts = {
		.round = a->conversation.round,
		.call = arrival->call->id,
		.tool = arrival->call->name,
		.summary = r->summary ? r->summary : arrival->call->name,
		.ok = !r->is_error,
		.effects = r->has_effects,
		.exit_code = r->exit_code,
		.duration_ms = arrival->duration_ms,
	};

	event_tool(a->channel, &facts);
	if (r->has_effects)
		checkpoint_changed(a);
}

/* For a process that has to go on from here (R6): written and not synced, so that it costs a write. Only what must
 * not run twice is worth it. */
static void put_end_on_record(struct agent *a, const struct arrival *arrival)
{
	const struct tool_result *r = &arrival->result;
	struct transcript_tool ended = {
		.round = a->conversation.round,
		.call = arrival->call->id,
		.tool = arrival->call->name,
		.file = r->full_path,
		.ok = !r->is_error,
		.exit_code = r->exit_code,
	};

	if (arrival->tool->flags & TOOL_READS)
		return;
	transcript_tool_ended(a->transcript, &ended);
	transcript_write(a->transcript, NULL); /* what fails here fails again at the next sync */
}

/* An interruption ended the tool: what it had said so far stays, marked. */
static void mark_interrupted(struct arrival *arrival)
{
	struct buf *text = &arrival->result.text;

	arrival->result.is_error = true;
	arrival->result.has_effects = !(arrival->tool->flags & TOOL_READS);
	if (text->len)
		buf_addc(text, '\n');
	buf_adds(text, RESULT_INTERRUPTED);
}

/* Runs a tool. The wish to report ends it, a stop too: then -1. */
static int run_tool(struct agent *a, struct arrival *arrival, struct json_object *input,
		    struct err *err)
{
	int64_t began;
	int rc;

	event_state(a->channel, ACTIVITY_TOOL, arrival->call->name);
	began = clock_mono_ms();
	rc = arrival->tool->run(a->toolbox.context, arrival->call->id, input, &arrival->result,
				err);
	arrival->duration_ms = clock_mono_ms() - began;
	if (rc < 0)
		mark_interrupted(arrival);
	record_call(&a->record, arrival->result.summary, arrival->result.is_error,
		    arrival->result.exit_code);
	put_end_on_record(a, arrival);
	tell_parent(a, arrival);
	return rc;
}

/* Something failed in a way that the model cannot mend: `status`, if it was not a wish of the
 * parent. */
static void take_failure(struct agent *a, struct batch *b, enum outcome_status status,
			 const struct err *e)
{
	bool asked = e->code == ERR_CANCELLED && !waiter_stopping(a->waiter);

	if (asked)
		return; /* the parent wants a report: the loop sees it next */
	if (e->code == ERR_CANCELLED || e->code == ERR_CLOSED) {
		b->rc = -1;
		b->err = *e;
	} else {
		b->rc = agent_end(a, status, CALL_CLASS_NONE, "%s", e->message);
	}
}

/* The wish to report also ends the wait for a worktree that takes long. Whatever ends the tool, the
 * interruption is over when this returns, so that the request to report can be waited for. */
static void open_and_run(struct agent *a, struct batch *b, struct arrival *arrival,
			 struct json_object *input)
{
	struct err e = ERR_INIT;
	bool ran = false;

	waiter_interruptible(a->waiter, true);
	if (toolbox_open(&a->toolbox, a->waiter, &e) < 0) {
		refuse(arrival, RESULT_NOT_RUN);
		take_failure(a, b, OUTCOME_FAILED, &e);
	} else if (run_tool(a, arrival, input, &e) < 0) {
		take_failure(a, b, OUTCOME_LOST, &e);
	} else if (arrival->result.shortage) {
		b->rc = agent_end(a, OUTCOME_LOST, CALL_CLASS_NONE, "%s: %s", arrival->call->name,
				  buf_str(&arrival->result.text));
	} else {
		note_repetition(a, b, arrival);
		breaks_after_call(a, arrival, input);
		ran = true;
	}
	waiter_resume(a->waiter);
	if (ran && hooks_after_tool(a, arrival->call, input, &arrival->result, arrival->duration_ms,
				    &e) < 0)
		take_failure(a, b, OUTCOME_FAILED, &e);
}

/* A call that could not even start counts as a failed one (X5). */
static void not_run(struct agent *a, struct batch *b, struct arrival *arrival)
{
	arrival->result.summary = mem_printf("%.60s: not run", arrival->call->name);
	tell_parent(a, arrival);
	note_repetition(a, b, arrival);
}

/* M6, M7: a hook that denies is a rule and not a plea; the model hears why. */
static bool may_run(struct agent *a, struct batch *b, struct arrival *arrival,
		    struct json_object *input)
{
	struct err e = ERR_INIT;
	int rc = hooks_before_tool(a, arrival->call, input, &arrival->result.text, &e);

	if (rc < 0) {
		refuse(arrival, RESULT_NOT_RUN);
		take_failure(a, b, OUTCOME_FAILED, &e);
	} else if (rc > 0) {
		arrival->result.is_error = true;
		not_run(a, b, arrival);
	}
	return rc == 0;
}

/* Is it a call that a tool can take, and does no hook deny it? If not, its result says why. */
static bool check_call(struct agent *a, struct batch *b, struct arrival *arrival)
{
	const struct block *call = arrival->call;
	const struct toolbox_entry *entry = toolbox_find(&a->toolbox, call->name);
	AUTO_JSON struct json_object *input = NULL;
	struct err e = ERR_INIT;

	if (!entry) {
		refuse_unknown(a, arrival);
		not_run(a, b, arrival);
		return false;
	}
	/* Never repaired: half of a command is another command (trap 39). */
	if (call->partial || json_parse(call->text, call->text_len, &input, &e) < 0) {
		refuse(arrival, RESULT_NO_OBJECT);
		not_run(a, b, arrival);
		return false;
	}
	if (json_check_schema(entry->schema, input, &e) < 0) {
		arrival->result.is_error = true;
		buf_addf(&arrival->result.text, "Not run: the input of '%s' is wrong: %s",
			 call->name, e.message);
		not_run(a, b, arrival);
		return false;
	}
	arrival->tool = entry->tool;
	if (!may_run(a, b, arrival, input))
		return false;
	arrival->input = take_ptr(input);
	return true;
}

static void begin_call(struct agent *a, struct batch *b, struct arrival *arrival)
{
	arrival->begun = true;
	if (!check_call(a, b, arrival))
		return;
	waiter_interruptible(a->waiter, true);
	/* What fails here fails again where the call runs, and is told there. */
	if (toolbox_open(&a->toolbox, a->waiter, NULL) == 0)
		arrival->tool->begin(a->toolbox.context, arrival->call->id, arrival->input, NULL);
	waiter_resume(a->waiter);
}

/* A5: calls in a row of a tool that has to be waited for begin together. */
static void begin_row(struct agent *a, struct batch *b, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i < end && !b->rc; i++, n++) {
		const struct toolbox_entry *entry =
			toolbox_find(&a->toolbox, b->list[i].call->name);

		if (!entry || !entry->tool->begin || b->list[i].begun)
			break;
		begin_call(a, b, &b->list[i]);
	}
	if (n)
		a->subagents.batch = n;
}

static void run_call(struct agent *a, struct batch *b, struct arrival *arrival)
{
	if (!arrival->begun && !check_call(a, b, arrival))
		return;
	if (arrival->input)
		open_and_run(a, b, arrival, arrival->input);
}

static bool is_report(const struct arrival *a)
{
	return !strcmp(a->call->name, REPORT_TOOL);
}

static void tell_lost(struct agent *a, struct arrival *arrival)
{
	arrival->result.is_error = true;
	resume_tell(a, arrival->call, &arrival->result.text);
}

/* The order of the tests is their rank: a cut call is not run even when nothing else is (trap 37),
 * and after an end nothing runs any more. */
static void run_all(struct agent *a, struct batch *b, bool cut)
{
	for (size_t i = 0; i < b->n; i++) {
		struct arrival *arrival = &b->list[i];

		if (cut && i == b->n - 1) {
			refuse(arrival, RESULT_CUT);
			not_run(a, b, arrival);
			continue;
		}
		if (b->rc)
			refuse(arrival, RESULT_NOT_RUN);
		else if (b->resumed && !resume_may_run(a, arrival->call))
			tell_lost(a, arrival);
		else if (is_report(arrival) && !b->report)
			b->report = arrival;
		else if (is_report(arrival))
			refuse(arrival, "Not run: one report is enough.");
		else if (a->forced || waiter_report_wanted(a->waiter, NULL))
			refuse(arrival, RESULT_ONLY_REPORT);
		else {
			begin_row(a, b, i, b->n - (cut ? 1 : 0));
			run_call(a, b, arrival);
		}
	}
}

static void run_report(struct agent *a, struct batch *b)
{
	struct err e = ERR_INIT;
	int rc;

	if (b->rc) {
		refuse(b->report, RESULT_NOT_RUN);
		return;
	}
	if (!a->forced && !waiter_report_wanted(a->waiter, NULL) &&
	    subagents_hold_report(a, &b->report->result.text)) {
		b->report->result.is_error = true;
		return;
	}
	rc = report_take(a, b->report, &e);
	if (rc < 0) {
		b->rc = -1;
		b->err = e;
		refuse(b->report, RESULT_NOT_RUN);
		return;
	}
	b->rc = rc;
}

/* ---- the message ---- */

static void add_images(struct message *m, const struct arrival *a)
{
	for (size_t i = 0; !a->images_left_out && i < a->result.n_images; i++) {
		const struct tool_image *image = &a->result.images[i];

		message_add_image(m, a->call->id, image->media_type, image->base64,
				  image->base64_len);
	}
}

/* One message for all results of the answer, at once after it (wire.md 1.5). */
static void append_results(struct agent *a, struct batch *b)
{
	struct message *m = message_new(MESSAGE_USER);

	for (size_t i = 0; i < b->n; i++) {
		const struct arrival *r = &b->list[i];

		message_add_result(m, r->call->id, r->call->name, r->text.data, r->text.len,
				   r->result.is_error);
		add_images(m, r);
		if (r->file)
			transcript_result_file(a->transcript, a->conversation.round, r->call->id,
					       r->file, r->result.text.len);
	}
	message_add_text(m, ORIGIN_NUDGE, b->notes.data, b->notes.len);
	news_add(a, m);
	agent_add_user(a, m);
}

/* W7: what arrives is cut to the room before it is in the conversation, where nothing can be
 * changed. */
static int admit(struct agent *a, struct batch *b, struct err *err)
{
	struct rung_input in = {
		.view = &a->view,
		.ledger = &a->ledger,
		.budget = &a->budget,
		.knobs = &a->settings->knobs,
		.offload = &a->offload,
		.arriving = b->list,
		.n_arriving = b->n,
	};
	int64_t freed = 0;

	return rungs_run(RUNG_ARRIVAL, &in, 0, &freed, err);
}

/* Cut off in a wait for other agents: nothing of the answer is lost if all of it runs again in a process that goes on
 * from here, and its model gets what it waited for instead of word of an interruption. */
static bool is_left_open(const struct batch *b)
{
	bool waited = false;

	for (size_t i = 0; i < b->n; i++) {
		const struct tool *tool = b->list[i].tool;

		if (tool && !(tool->flags & (TOOL_SPAWNS | TOOL_READS)))
			return false;
		waited |= tool && (tool->flags & TOOL_SPAWNS);
	}
	return b->rc < 0 && waited && !b->report;
}

static int run_batch(struct agent *a, struct batch *b, const struct message *answer, bool cut,
		     struct err *err)
{
	prepare(answer, b);
	run_all(a, b, cut);
	if (b->report)
		run_report(a, b);
	if (!is_left_open(b)) {
		if (admit(a, b, &b->err) < 0)
			b->rc = -1;
		append_results(a, b);
	}
	for (size_t i = 0; i < b->n; i++)
		arrival_release(&b->list[i]);
	free(b->list);
	buf_release(&b->notes);
	if (b->rc < 0 && err)
		*err = b->err;
	return b->rc;
}

int calls_run(struct agent *a, const struct message *answer, bool cut, struct err *err)
{
	struct batch b = {.rc = 0};

	return run_batch(a, &b, answer, cut, err);
}

int calls_finish(struct agent *a, const struct message *answer, const char *note, struct err *err)
{
	struct batch b = {.resumed = true};

	buf_adds(&b.notes, note);
	return run_batch(a, &b, answer, false, err);
}
