/*
 * report_tool.c - checks, bounds and delivers the report.
 *
 * Delivery is an effect at the parent with the key (generation, call id): the frame is sent, and
 * the work ends only when the parent has acknowledged, that is, journaled it. If the agent dies in
 * between, its successor sends the same key again and gets the same answer. What is too long for
 * its reader is bounded by head and tail, and all of it stays in a file of the agent.
 */
#include "agent/report_tool.h"

#include <fcntl.h>
#include "agent/effect.h"
#include "agent/events.h"
#include "agent/prompt.h"
#include "agent/reset.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/report.h"

#define KEY_MAX 200

/* Writes all of a report that is going to be bounded beside the transcript. */
static void keep_whole(struct agent *a, const struct buf *text)
{
	AUTO_FREE char *path = file_join(a->settings->dir_generation, "report.json");
	struct err e = ERR_INIT;

	if (file_write_atomic(AT_FDCWD, path, text->data, text->len, 0600, &e) < 0)
		event_warning(a->channel, "the whole report could not be kept: %s", e.message);
}

/* A4: bounded for the reader; the file is written only where something is cut. */
static struct json_object *bound(struct agent *a, struct json_object *report)
{
	AUTO_BUF struct buf text = BUF_INIT;
	size_t tokens = (size_t)a->settings->report_tokens;

	json_write(&text, report);
	if (text.len > tokens * BYTES_PER_TOKEN)
		keep_whole(a, &text);
	return report_bound(report, tokens, "report.json");
}

static void frame_body(const struct agent *a, struct json_object *report, struct buf *out)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	struct json_object *transcript = json_object_new_object();

	json_set(body, "report", json_object_get(report));
	json_set_i64(body, "tool_calls", a->record.tool_calls);
	json_set_i64(body, "failed_calls", a->record.failed_calls);
	json_set(body, "last_exit_codes", record_exit_codes(&a->record));
	json_set_i64(transcript, "records", transcript_records(a->transcript));
	json_set_i64(transcript, "bytes", transcript_bytes(a->transcript));
	json_set(body, "transcript", transcript);
	json_write(out, body);
}

/* Sends the report and waits until the parent has it on record. */
static int deliver(struct agent *a, struct json_object *report, const char *call, struct err *err)
{
	AUTO_FREE char *key = mem_strndup(call, MIN(strlen(call), (size_t)KEY_MAX));
	AUTO_JSON struct json_object *bounded = bound(a, report);
	AUTO_BUF struct buf body = BUF_INIT;
	const char *answer = "";
	bool ok = false;

	frame_body(a, bounded, &body);
	struct effect_ask ask = {
		.type = FRAME_REPORT,
		.kind = ACK_REPORT,
		.call = key,
		.body = body.data,
		.len = body.len,
	};
	event_state(a->channel, ACTIVITY_REPORTING, "");
	effect_settle(a);
	if (effect_run(a, &ask, &ok, &answer, err) < 0)
		return -1;
	if (!ok)
		return err_set(err, ERR_DENIED, "the parent did not take the report: %.300s",
			       answer);
	a->reported = true;
	return 0;
}

static void end_as_reported(struct agent *a)
{
	/* A report that was forced by a limit of this conversation is delivered, but the work is
	 * cut. */
	if (a->forced == FORCED_ROUNDS || a->forced == FORCED_WINDOW || a->forced == FORCED_RESET)
		agent_end(a, OUTCOME_LIMIT,
			  a->forced == FORCED_ROUNDS ? CALL_CLASS_NONE : CALL_OVERFLOW, "%s",
			  a->forced_why);
	else
		agent_end(a, OUTCOME_DONE, CALL_CLASS_NONE, "%s", "");
}

/* What can be saved of a report whose shape stays wrong. */
static int give_up(struct agent *a, struct json_object *input, struct arrival *arrival,
		   struct err *err)
{
	const char *text = json_str(input, "summary", a->end_text);

	buf_adds(&arrival->result.text,
		 "\nIt was refused for the last time; a report was made by rule.");
	if (report_by_rule(a, "the model's report had a wrong shape", text, err) < 0)
		return -1;
	end_as_reported(a);
	return 1;
}

int report_take(struct agent *a, struct arrival *arrival, struct err *err)
{
	const struct block *call = arrival->call;
	AUTO_JSON struct json_object *input = NULL;
	AUTO_JSON struct json_object *report = NULL;
	struct err e = ERR_INIT;

	if (json_parse(call->text, call->text_len, &input, &e) < 0 ||
	    report_check(input, a->settings->output_schema, &report, &e) < 0) {
		arrival->result.is_error = true;
		buf_adds(&arrival->result.text, e.message);
		return ++a->wrong_reports > REPORT_WRONG_MAX ? give_up(a, input, arrival, err) : 0;
	}
	if (reset_is_anxious(a, report)) {
		buf_adds(&arrival->result.text, RESULT_GOES_ON);
		return 0;
	}
	if (deliver(a, report, call->id, err) < 0)
		return -1;
	buf_adds(&arrival->result.text, RESULT_ACCEPTED);
	end_as_reported(a);
	return 1;
}

int report_by_rule(struct agent *a, const char *why, const char *text, struct err *err)
{
	AUTO_JSON struct json_object *report = NULL;
	const char *const *touched = NULL;
	size_t n = 0;

	if (a->toolbox.context)
		touched = tool_context_touched(a->toolbox.context, &n);
	report = record_report(&a->record, why, text, fork_own_rounds(a), touched, n);
	return deliver(a, report, "by-rule", err);
}
