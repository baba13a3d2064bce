/*
 * events.c - writes the bodies of event frames.
 */
#include "agent/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define TEXT_MAX    200
#define SUMMARY_MAX 300

/* A channel that is full queues it; an event never waits and never fails. News does not wake the parent
 * by itself: it goes with what comes next, at the latest when this process waits (poll_once). */
static void send_event(struct channel *ch, enum agent_event event, const struct buf *body)
{
	if (!ch)
		return; /* nobody listens */
	channel_hold(ch, true);
	channel_sendf(ch, FRAME_EVENT, body->data, body->len, "\"name\":\"%s\"",
		      agent_event_name(event));
	channel_hold(ch, false);
}

/* Members with the comma that they need: the body begins with its brace. */
static void add_i64(struct buf *out, const char *key, int64_t value)
{
	buf_addf(out, "%s\"%s\":%" PRId64, out->len > 1 ? "," : "", key, value);
}

static void add_str(struct buf *out, const char *key, const char *s, size_t n)
{
	buf_addf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
	json_write_string(out, s, n);
}

static void add_cstr(struct buf *out, const char *key, const char *s)
{
	add_str(out, key, s ? s : "", s ? strlen(s) : 0);
}

static void add_flag(struct buf *out, const char *key, bool value)
{
	buf_addf(out, "%s\"%s\":%s", out->len > 1 ? "," : "", key, value ? "true" : "false");
}

/* USD with six digits; nothing where it is not known. */
static void add_cost(struct buf *out, const char *key, double cost)
{
	buf_addf(out, "%s\"%s\":%.6f", out->len > 1 ? "," : "", key, cost);
}

static void add_thresholds(struct buf *out, const struct window_budget *budget)
{
	struct budget_row rows[BUDGET_ROWS_MAX];
	size_t n = budget_rows(budget, rows, ARRAY_SIZE(rows));
	AUTO_BUF struct buf inner = BUF_INIT;

	buf_addc(&inner, '{');
	for (size_t i = 0; i < n; i++)
		add_i64(&inner, rows[i].name, rows[i].tokens);
	buf_addf(out, "%s\"thresholds\":%s}", out->len > 1 ? "," : "", buf_str(&inner));
}

void event_round(struct channel *ch, const struct event_round_facts *facts)
{
	AUTO_BUF struct buf body = BUF_INIT;

	if (!ch)
		return;
	buf_addc(&body, '{');
	add_i64(&body, "round", facts->round);
	add_i64(&body, "request_bytes", (int64_t)facts->request_bytes);
	add_i64(&body, "estimate", facts->estimate);
	add_i64(&body, "input", facts->usage->input);
	add_i64(&body, "cache_read", facts->usage->cache_read);
	add_i64(&body, "cache_write", facts->usage->cache_write);
	add_i64(&body, "output", facts->usage->output);
	add_cstr(&body, "stop", stop_reason_name(facts->stop));
	add_i64(&body, "used", facts->used);
	add_i64(&body, "window", facts->budget->window);
	add_i64(&body, "ttft_ms", facts->ttft_ms);
	add_i64(&body, "duration_ms", facts->duration_ms);
	add_flag(&body, "cache_hit", prefix_hit(facts->usage));
	add_flag(&body, "warning", facts->used >= facts->budget->warning);
	add_flag(&body, "error", facts->used >= facts->budget->error);
	add_thresholds(&body, facts->budget);
	if (facts->usage->known)
		ledger_write_shares(facts->ledger, &body);
	buf_addc(&body, '}');
	send_event(ch, EVENT_ROUND, &body);
}

void event_compact(struct channel *ch, const struct event_compact_facts *facts)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "trigger", facts->trigger);
	if (facts->kind)
		add_cstr(&body, "kind", facts->kind);
	add_i64(&body, "before", facts->before);
	add_i64(&body, "after", facts->after);
	add_i64(&body, "messages", (int64_t)facts->messages);
	add_i64(&body, "input", facts->input);
	add_i64(&body, "output", facts->output);
	add_flag(&body, "by_rule", facts->by_rule);
	add_cstr(&body, "reason", facts->reason);
	add_i64(&body, "duration_ms", facts->duration_ms);
	add_i64(&body, "saved", MAX(facts->before - facts->after, 0));
	add_i64(&body, "cache_lost", facts->cache_lost);
	/* The names of H15's span. */
	if (facts->source) {
		add_cstr(&body, "trigger_source", facts->source);
		add_i64(&body, "input_tokens", facts->input);
		add_i64(&body, "output_tokens", facts->output);
		add_i64(&body, "messages_compacted", (int64_t)facts->messages);
	}
	if (facts->source && facts->next_cost >= 0) {
		add_cost(&body, "call_cost", MAX(facts->call_cost, 0));
		add_cost(&body, "next_cost", facts->next_cost);
	}
	buf_addc(&body, '}');
	send_event(ch, EVENT_COMPACT, &body);
}

void event_review(struct channel *ch, const char *path, int64_t ms)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "summary", path);
	add_i64(&body, "waits_ms", ms);
	buf_addc(&body, '}');
	send_event(ch, EVENT_COMPACT_REVIEW, &body);
}

void event_compact_return(struct channel *ch, const struct event_return_facts *facts)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "trigger", facts->trigger);
	add_i64(&body, "saved", facts->saved);
	add_i64(&body, "rounds", facts->rounds);
	add_i64(&body, "tokens", facts->saved * facts->rounds);
	if (facts->spent >= 0) {
		add_cost(&body, "gained", facts->gained);
		add_cost(&body, "spent", facts->spent);
		add_cost(&body, "return", facts->gained - facts->spent);
	}
	buf_addc(&body, '}');
	send_event(ch, EVENT_COMPACT_RETURN, &body);
}

void event_budget(struct channel *ch, const struct event_budget_facts *facts)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_i64(&body, "window", facts->budget->window);
	add_i64(&body, "system", facts->system);
	add_i64(&body, "tools", facts->tools);
	add_i64(&body, "reserve", facts->budget->reserve);
	add_i64(&body, "compact_buffer", facts->budget->effective - facts->budget->compact);
	add_i64(&body, "working_space", facts->working_space);
	add_thresholds(&body, facts->budget);
	buf_addc(&body, '}');
	send_event(ch, EVENT_BUDGET, &body);
}

void event_reminder(struct channel *ch, int64_t used, int64_t threshold, int64_t effective)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_i64(&body, "used", used);
	add_i64(&body, "threshold", threshold);
	add_i64(&body, "effective", effective);
	buf_addc(&body, '}');
	send_event(ch, EVENT_REMINDER, &body);
}

void event_alarm(struct channel *ch, const char *kind, const char *message)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "kind", kind);
	add_cstr(&body, "message", message);
	buf_addc(&body, '}');
	send_event(ch, EVENT_ALARM, &body);
}

void event_cache_break(struct channel *ch, const struct event_cache_facts *facts)
{
	const struct prefix_break *b = facts->broken;
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_i64(&body, "expected", b->expected);
	add_i64(&body, "read", b->read);
	add_cstr(&body, "part", prefix_part_name(b->part));
	if (b->part == PREFIX_MESSAGE) {
		add_i64(&body, "message", (int64_t)b->index);
		add_i64(&body, "round", facts->round);
	}
	add_i64(&body, "idle_ms", b->idle_ms);
	buf_addc(&body, '}');
	send_event(ch, EVENT_CACHE_BREAK, &body);
}

void event_tool(struct channel *ch, const struct event_tool_facts *facts)
{
	AUTO_BUF struct buf body = BUF_INIT;
	const char *summary = facts->summary ? facts->summary : "";
	size_t n = strlen(summary);

	buf_addc(&body, '{');
	add_i64(&body, "round", facts->round);
	add_cstr(&body, "call", facts->call);
	add_cstr(&body, "tool", facts->tool);
	add_str(&body, "summary", summary, text_floor(summary, n, MIN(n, (size_t)SUMMARY_MAX)));
	add_flag(&body, "ok", facts->ok);
	/* null and 0 differ: no command ran, or one ran well. */
	if (facts->exit_code >= 0)
		add_i64(&body, "exit_code", facts->exit_code);
	else
		buf_adds(&body, ",\"exit_code\":null");
	add_i64(&body, "duration_ms", facts->duration_ms);
	add_flag(&body, "effects", facts->effects);
	buf_addc(&body, '}');
	send_event(ch, EVENT_TOOL, &body);
}

void event_child(struct channel *ch, const char *child)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "child", child);
	buf_addc(&body, '}');
	send_event(ch, EVENT_CHILD, &body);
}

void event_state(struct channel *ch, enum activity activity, const char *detail)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "state", activity_name(activity));
	add_cstr(&body, "detail", detail);
	buf_addc(&body, '}');
	send_event(ch, EVENT_STATE, &body);
}

/* Bytes of the first n characters. */
static size_t head_of(const char *s, size_t len, size_t n)
{
	size_t at = 0;

	while (at < len && n--)
		at = text_ceil(s, len, at + 1);
	return at;
}

/* The first text block only: a line for people who watch, not a copy of the answer. */
void event_text(struct channel *ch, const struct message *answer)
{
	for (size_t i = 0; i < answer->n_blocks; i++) {
		const struct block *b = &answer->blocks[i];
		AUTO_BUF struct buf body = BUF_INIT;

		if (b->kind != BLOCK_TEXT)
			continue;
		buf_addc(&body, '{');
		add_str(&body, "text", b->text, head_of(b->text, b->text_len, TEXT_MAX));
		buf_addc(&body, '}');
		send_event(ch, EVENT_TEXT, &body);
		return;
	}
}

void event_warning(struct channel *ch, const char *fmt, ...)
{
	AUTO_BUF struct buf body = BUF_INIT;
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	buf_addc(&body, '{');
	add_str(&body, "message", buf_str(&text), text.len);
	buf_addc(&body, '}');
	send_event(ch, EVENT_WARNING, &body);
}

void event_retry(struct channel *ch, int attempt, const char *reason, int64_t until_wall_ms)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_i64(&body, "attempt", attempt);
	add_cstr(&body, "reason", reason);
	add_i64(&body, "until", until_wall_ms);
	buf_addc(&body, '}');
	send_event(ch, EVENT_RETRY, &body);
}

void event_instructions(struct channel *ch, const struct instructions_load *load)
{
	AUTO_BUF struct buf body = BUF_INIT;

	buf_addc(&body, '{');
	add_cstr(&body, "path", load->path);
	add_cstr(&body, "origin", load->origin);
	add_cstr(&body, "why", instructions_why_name(load->why));
	if (load->file)
		add_cstr(&body, "file", load->file);
	add_i64(&body, "bytes", (int64_t)load->bytes);
	buf_addc(&body, '}');
	send_event(ch, EVENT_INSTRUCTIONS, &body);
}

void event_job_ended(struct channel *ch, const struct job_end *end)
{
	AUTO_BUF struct buf body = BUF_INIT;
	const char *line = buf_str(&end->line);
	size_t n = end->line.len;

	buf_addc(&body, '{');
	add_cstr(&body, "id", end->id);
	add_cstr(&body, "state", "ended");
	add_i64(&body, "exit_code", end->exit_code);
	add_str(&body, "summary", line, text_floor(line, n, MIN(n, (size_t)SUMMARY_MAX)));
	buf_addc(&body, '}');
	send_event(ch, EVENT_JOB, &body);
}
