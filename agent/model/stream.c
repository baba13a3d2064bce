/*
 * stream.c - what both stream parsers share: framing, limits, errors in the stream, the end.
 *
 * The parser is lenient in form and strict in substance: unknown events, fields and reasons are
 * passed over, but what is not JSON ends the stream, and an answer without a stop reason is
 * incomplete whatever it holds (wire.md 4 rule 5).
 */
#include "agent/model/stream.h"

#include <inttypes.h>

#include "agent/model/arguments.h"
#include "agent/model/render.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

/* --- helpers of the APIs' parsers --- */

int stream_hold(struct stream_parser *p, size_t n, struct err *err)
{
	p->held += n;
	if (p->held > ANSWER_MAX)
		return err_set(err, ERR_TOO_LARGE, "the answer exceeds %d MiB", ANSWER_MAX >> 20);
	return 0;
}

/* Both APIs in one table: proxies let the reasons of one through in the form of the other. */
enum stop_reason stream_stop_reason(const char *name)
{
	static const struct {
		const char *name;
		enum stop_reason reason;
	} names[] = {
		{"end_turn", STOP_END},
		{"stop", STOP_END},
		{"stop_sequence", STOP_END},
		{"tool_use", STOP_TOOL_USE},
		{"tool_calls", STOP_TOOL_USE},
		{"function_call", STOP_TOOL_USE},
		{"max_tokens", STOP_MAX_TOKENS},
		{"length", STOP_MAX_TOKENS},
		{"model_context_window_exceeded", STOP_WINDOW},
		{"refusal", STOP_REFUSAL},
		{"content_filter", STOP_REFUSAL},
		{"pause_turn", STOP_PAUSE},
		{"error", STOP_ERROR},
		{"insufficient_system_resource", STOP_ERROR},
	};
	if (!name || !*name)
		return STOP_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].reason;
	return STOP_END;
}

void stream_take_stop(struct stream_parser *p, enum stop_reason stop)
{
	if (stop != STOP_NONE && !stream_is_cut(p->stop))
		p->stop = stop;
}

bool stream_is_cut(enum stop_reason stop)
{
	return stop == STOP_MAX_TOKENS || stop == STOP_WINDOW || stop == STOP_REFUSAL ||
	       stop == STOP_ERROR;
}

static bool has_call(const struct message *m, const char *id)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_CALL && strcmp(m->blocks[i].id, id) == 0)
			return true;
	return false;
}

struct block *stream_add_call(struct stream_parser *p, struct message *m, const char *id,
			      const char *name, const struct buf *arguments, const char *extra_raw)
{
	AUTO_FREE char *made_up = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	if (!id || !*id || has_call(m, id)) {
		/* Unique beyond this answer: effects are keyed by it. */
		AUTO_FREE char *key =
			mem_printf("%" PRId64 " %s %zu %s", p->seed,
				   p->answer_id ? p->answer_id : "", m->n_blocks, name);
		made_up = mem_printf("call_%016" PRIx64, text_hash(key, strlen(key)));
		id = made_up;
	}
	bool whole = arguments_normalise(&text, buf_str(arguments), arguments->len);
	/* The text of a broken call is kept for the error result and the transcript only; it is
	 * never sent as arguments. */
	if (!whole)
		text_sanitize(&text, buf_str(arguments), arguments->len);
	struct block *b = message_add_call(m, id, name, buf_str(&text), text.len, extra_raw);
	b->partial = !whole;
	return b;
}

void stream_tell_text(struct stream_parser *p, const char *text, size_t n)
{
	if (n && p->events.on_text)
		p->events.on_text(p->arg, text, n);
}

void stream_tell_thinking(struct stream_parser *p, const char *text, size_t n)
{
	if (n && p->events.on_thinking)
		p->events.on_thinking(p->arg, text, n);
}

void stream_tell_call(struct stream_parser *p, const char *name)
{
	if (p->events.on_call)
		p->events.on_call(p->arg, name);
}

#define COUNT_MAX 1000000000

void stream_take_count(struct stream_parser *p, struct json_object *obj, const char *key,
		       int64_t *field)
{
	int64_t value = json_i64(obj, key, -1);
	if (value < 0)
		return;
	/* No call has a milliard tokens; sums of what a hostile server says must not overflow. */
	*field = MIN(value, (int64_t)COUNT_MAX);
	p->usage.known = true;
}

/* --- errors within the stream --- */

/* Those that a new attempt may cure; the rest is the provider's last word on this request. */
static bool is_retryable(const char *type, int64_t code)
{
	static const char *const types[] = {
		"overloaded_error",    "api_error",    "timeout_error",
		"rate_limit_error",    "server_error", "server_busy",
		"rate_limit_exceeded", "overloaded",   "internal_server_error",
	};
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return code == 408 || code == 409 || code == 429 || code >= 500;
}

static int fail_in_band(struct json_object *error, struct err *err)
{
	/* Three shapes: "text" (LM Studio), {message, type, code}, and one of these within another
	 * "error" (proxies wrap what they got). */
	if (json_object_is_type(error, json_type_string))
		return err_set(err, ERR_DENIED, "%s", json_object_get_string(error));
	struct json_object *inner = json_obj(error, "error");
	if (inner)
		error = inner;
	const char *type = json_str(error, "type", json_str(error, "code", ""));
	const char *text = json_str(error, "message", json_str(error, "error", ""));
	int64_t code = json_i64(error, "code", 0);
	enum err_code kind = is_retryable(type, code) ? ERR_BUSY : ERR_DENIED;
	if (!*text)
		text = "the server reports an error without a text";
	if (*type)
		return err_set(err, kind, "%s: %s", type, text);
	if (code)
		return err_set(err, kind, "%lld: %s", (long long)code, text);
	return err_set(err, kind, "%s", text);
}

/* The error of an event: an object, a string (LM Studio), or an event of that name (wire.md 13). */
static bool is_error(const char *name, struct json_object *event)
{
	struct json_object *error = json_get(event, "error");
	return strcmp(name, "error") == 0 || strcmp(json_str(event, "type", ""), "error") == 0 ||
	       json_object_is_type(error, json_type_object) ||
	       (json_object_is_type(error, json_type_string) && json_str_len(event, "error"));
}

static int on_event(const char *name, const char *data, size_t n, void *arg, struct err *err)
{
	struct stream_parser *p = arg;
	AUTO_JSON struct json_object *event = NULL;
	while (n && strchr(" \t\r\n", data[n - 1]) && data[n - 1])
		n--; /* real streams pad the line */
	if (n == 0 || (n >= 6 && memcmp(data, "[DONE]", 6) == 0))
		return 0;
	if (json_parse(data, n, &event, err) < 0) {
		/* An error in plain words is still its server's word, not a broken stream. */
		if (strcmp(name, "error") == 0)
			return err_set(err, ERR_DENIED, "%.*s", (int)MIN(n, 400), data);
		return err_prefix(err, "model stream");
	}
	if (is_error(name, event)) {
		struct json_object *error = json_get(event, "error");
		return fail_in_band(error ? error : event, err);
	}
	if (!json_object_is_type(event, json_type_object))
		return 0; /* padding of a kind that we do not know; the end decides */
	return p->ops->event(p, name, event, err);
}

/* --- life cycle --- */

static void begin(struct stream_parser *p)
{
	sse_init(&p->sse, on_event, p);
	p->state = p->ops->state_new();
}

static void end(struct stream_parser *p)
{
	sse_release(&p->sse);
	p->ops->state_free(p->state);
	buf_release(&p->refusal);
	free(p->answer_id);
}

struct stream_parser *stream_new(const struct model_client *client,
				 const struct stream_events *events, void *arg)
{
	struct stream_parser *p = mem_alloc(sizeof(*p));
	p->ops = client->model->api == MODEL_API_ANTHROPIC ? &anthropic_stream : &openai_stream;
	p->provider = client->model->provider;
	p->model = client->model->name;
	if (events)
		p->events = *events;
	p->arg = arg;
	p->seed = clock_wall_ms();
	begin(p);
	return p;
}

void stream_free(struct stream_parser *p)
{
	if (!p)
		return;
	end(p);
	free(p);
}

void stream_reset(struct stream_parser *p)
{
	end(p);
	*p = (struct stream_parser){.ops = p->ops,
				    .provider = p->provider,
				    .model = p->model,
				    .events = p->events,
				    .arg = p->arg,
				    .seed = p->seed};
	begin(p);
}

int stream_feed(struct stream_parser *p, const char *bytes, size_t n, struct err *err)
{
	if (p->failed)
		return err_set(err, ERR_INVALID, "the model stream failed before");
	if (sse_feed(&p->sse, bytes, n, err) == 0)
		return 0;
	p->failed = true;
	return -1;
}

/* Calls are run because they are there, whatever the reason says (traps 35, 41). */
static enum stop_reason settle_stop(enum stop_reason stop, const struct message *m)
{
	bool calls = message_count(m, BLOCK_TOOL_CALL) > 0;
	if (stop == STOP_NONE || stop == STOP_END || stop == STOP_TOOL_USE)
		return calls ? STOP_TOOL_USE : STOP_END;
	return stop;
}

int stream_finish(struct stream_parser *p, struct stream_answer *ret, struct err *err)
{
	if (p->failed)
		return err_set(err, ERR_INVALID, "the model stream failed before");
	if (sse_finish(&p->sse, err) < 0) {
		p->failed = true;
		return -1;
	}
	/* Nothing of an incomplete answer is given out: a caller who has it would use it (trap 60).
	 */
	if (p->stop == STOP_NONE && !p->ended)
		return err_set(err, ERR_CLOSED, "the answer broke off: no stop reason came");
	struct message *m = message_new(MESSAGE_ASSISTANT);
	m->provider = mem_strdup(p->provider);
	m->model = mem_strdup(p->model);
	p->ops->collect(p, m);
	*ret = (struct stream_answer){.message = m,
				      .usage = p->usage,
				      .dropped_blocks = p->dropped_blocks,
				      .cleared = p->cleared};
	ret->stop = settle_stop(p->stop, m);
	if (ret->stop == STOP_REFUSAL)
		ret->refusal =
			mem_strdup(p->refusal.len ? buf_str(&p->refusal) : "no reason given");
	return 0;
}

void stream_answer_release(struct stream_answer *answer)
{
	message_free(answer->message);
	free(answer->refusal);
	*answer = (struct stream_answer){.message = NULL};
}
