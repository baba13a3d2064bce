/*
 * openai_stream.c - answers in the form of OpenAI Chat Completions and its imitations (wire.md 2.2,
 * 4).
 *
 * Text, reasoning and calls have no order among each other in this form: an answer becomes one
 * thinking block, one text block and the calls. Usage is taken wherever a server puts it.
 */
#include "agent/model/stream.h"

#include "agent/model/call_assembly.h"
#include "base/memory.h"

enum part { PART_NONE, PART_TEXT, PART_THINKING, PART_CALL };

struct state {
	struct buf text;
	struct buf thinking;
	char *thinking_field;
	struct json_object *details; /* reasoning_details, fragments joined */
	struct call_assembly calls;
	enum part last; /* what was added last: that is what a limit cuts */
	/* prompt_tokens holds the cached ones (trap 82): taken apart at the end */
	int64_t prompt, cached, written;
};

static void *state_new(void)
{
	return mem_alloc(sizeof(struct state));
}

static void state_free(void *arg)
{
	struct state *s = arg;
	buf_release(&s->text);
	buf_release(&s->thinking);
	free(s->thinking_field);
	json_object_put(s->details);
	call_assembly_release(&s->calls);
	free(s);
}

/* --- text and reasoning --- */

static int add_text(struct stream_parser *p, const char *text, size_t n, struct err *err)
{
	struct state *s = p->state;
	if (n == 0)
		return 0;
	buf_add(&s->text, text, n);
	/* Some tool parsers let a line end through between calls: no text was cut then. */
	if (!message_text_is_blank(text, n))
		s->last = PART_TEXT;
	stream_tell_text(p, text, n);
	return stream_hold(p, n, err);
}

static int add_thinking(struct stream_parser *p, const char *field, const char *text, size_t n,
			struct err *err)
{
	struct state *s = p->state;
	if (n == 0)
		return 0;
	if (!s->thinking_field)
		s->thinking_field = mem_strdup(field);
	buf_add(&s->thinking, text, n);
	s->last = PART_THINKING;
	stream_tell_thinking(p, text, n);
	return stream_hold(p, n, err);
}

/* Content as a list of parts, thinking among them (Mistral). */
static int add_parts(struct stream_parser *p, struct json_object *parts, bool thinking,
		     struct err *err)
{
	for (size_t i = 0; i < json_len(parts); i++) {
		struct json_object *part = json_at(parts, i);
		const char *text = json_str(part, "text", "");
		size_t n = json_str_len(part, "text");
		if (json_arr(part, "thinking")) {
			if (!thinking && add_parts(p, json_arr(part, "thinking"), true, err) < 0)
				return -1;
		} else if (thinking ? add_thinking(p, "thinking", text, n, err) < 0
				    : add_text(p, text, n, err) < 0) {
			return -1;
		}
	}
	return 0;
}

/* The same text may stand in two fields: the first that is not empty counts. */
static int take_thinking(struct stream_parser *p, struct json_object *delta, struct err *err)
{
	static const char *const fields[] = {"reasoning_content", "reasoning", "reasoning_text"};
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (json_str_len(delta, fields[i]))
			return add_thinking(p, fields[i], json_str(delta, fields[i], ""),
					    json_str_len(delta, fields[i]), err);
	return 0;
}

/* --- reasoning_details: a list whose items come in fragments --- */

static bool same_member(struct json_object *a, struct json_object *b, const char *key)
{
	return json_object_equal(json_get(a, key), json_get(b, key));
}

/* Strings of the running text are joined, all else is replaced. */
static void join_detail(struct json_object *into, struct json_object *item)
{
	json_object_object_foreach (item, key, value) {
		bool text = strcmp(key, "text") == 0 || strcmp(key, "summary") == 0;
		if (!value)
			continue;
		if (text && json_object_is_type(value, json_type_string)) {
			AUTO_BUF struct buf joined = BUF_INIT;
			buf_add(&joined, json_str(into, key, ""), json_str_len(into, key));
			buf_add(&joined, json_object_get_string(value),
				(size_t)json_object_get_string_len(value));
			json_set_strn(into, key, buf_str(&joined), joined.len);
		} else {
			json_set(into, key, json_object_get(value));
		}
	}
}

static int take_details(struct stream_parser *p, struct json_object *list, struct err *err)
{
	struct state *s = p->state;
	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *item = json_at(list, i);
		struct json_object *last = json_at(s->details, json_len(s->details) - 1);
		if (!json_object_is_type(item, json_type_object))
			continue;
		if (stream_hold(p, strlen(json_object_to_json_string(item)), err) < 0)
			return -1;
		if (!s->details)
			s->details = json_object_new_array();
		bool continues = last && json_has(item, "index") &&
				 same_member(last, item, "index") &&
				 same_member(last, item, "type") && !json_has(item, "data");
		if (continues)
			join_detail(last, item);
		else
			json_object_array_add(s->details, json_object_get(item));
	}
	return 0;
}

/* --- calls --- */

static int take_call(struct stream_parser *p, struct json_object *fragment, size_t place,
		     size_t count, struct err *err)
{
	struct state *s = p->state;
	size_t bytes = 0, before = s->calls.n;
	if (!json_object_is_type(fragment, json_type_object))
		return 0;
	struct call_part *call = call_assembly_add(&s->calls, fragment, place, count, &bytes);
	s->last = PART_CALL;
	if (s->calls.n > PARTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the answer has more than %d calls", PARTS_MAX);
	if (s->calls.n > before && call->name)
		stream_tell_call(p, call->name);
	return stream_hold(p, bytes, err);
}

static int take_calls(struct stream_parser *p, struct json_object *delta, struct err *err)
{
	struct json_object *list = json_arr(delta, "tool_calls");
	size_t count = json_len(list);
	for (size_t i = 0; i < count; i++)
		if (take_call(p, json_at(list, i), i, count, err) < 0)
			return -1;
	struct json_object *old_form = json_obj(delta, "function_call");
	if (!old_form)
		return 0;
	/* The form before tool_calls: one call without index and id. */
	AUTO_JSON struct json_object *fragment = json_object_new_object();
	json_set(fragment, "function", json_object_get(old_form));
	return take_call(p, fragment, 0, 1, err);
}

/* --- chunks --- */

static void take_usage(struct stream_parser *p, struct json_object *usage)
{
	struct state *s = p->state;
	struct json_object *details = json_obj(usage, "prompt_tokens_details");
	stream_take_count(p, usage, "prompt_tokens", &s->prompt);
	stream_take_count(p, usage, "prompt_cache_hit_tokens", &s->cached); /* DeepSeek */
	stream_take_count(p, usage, "cached_tokens", &s->cached);	    /* Moonshot */
	stream_take_count(p, details, "cached_tokens", &s->cached);
	stream_take_count(p, details, "cache_write_tokens", &s->written);
	stream_take_count(p, usage, "completion_tokens", &p->usage.output);
	stream_take_count(p, json_obj(usage, "completion_tokens_details"), "reasoning_tokens",
			  &p->usage.thinking);
	/* A server that counts the parts wrongly must not make a negative count of ours. */
	p->usage.cache_read = MIN(s->cached, s->prompt);
	p->usage.cache_write = MIN(s->written, s->prompt - p->usage.cache_read);
	p->usage.input = s->prompt - p->usage.cache_read - p->usage.cache_write;
}

static void take_finish(struct stream_parser *p, struct json_object *choice)
{
	enum stop_reason stop = stream_stop_reason(json_str(choice, "finish_reason", NULL));
	/* OpenRouter: the native reason may be the only sign. */
	if (stop == STOP_NONE)
		stop = stream_stop_reason(json_str(choice, "native_finish_reason", NULL));
	if (stop == STOP_END && p->refusal.len)
		stop = STOP_REFUSAL;
	stream_take_stop(p, stop);
}

static int take_delta(struct stream_parser *p, struct json_object *delta, struct err *err)
{
	struct json_object *content = json_get(delta, "content");
	if (take_thinking(p, delta, err) < 0 ||
	    take_details(p, json_arr(delta, "reasoning_details"), err) < 0)
		return -1;
	if (json_object_is_type(content, json_type_array)) {
		if (add_parts(p, content, false, err) < 0)
			return -1;
	} else if (add_text(p, json_str(delta, "content", ""), json_str_len(delta, "content"),
			    err) < 0) {
		return -1;
	}
	size_t refusal = json_str_len(delta, "refusal");
	buf_add(&p->refusal, json_str(delta, "refusal", ""), refusal);
	if (stream_hold(p, refusal, err) < 0)
		return -1;
	return take_calls(p, delta, err);
}

static int on_event(struct stream_parser *p, const char *name, struct json_object *chunk,
		    struct err *err)
{
	struct json_object *choices = json_arr(chunk, "choices");
	if (!p->answer_id && json_str_len(chunk, "id"))
		p->answer_id = mem_strdup(json_str(chunk, "id", NULL));
	for (size_t i = 0; i < json_len(choices); i++) {
		struct json_object *choice = json_at(choices, i);
		struct json_object *delta = json_obj(choice, "delta");
		if (json_i64(choice, "index", 0) != 0)
			continue; /* one answer was asked for */
		if (take_delta(p, delta ? delta : json_obj(choice, "message"), err) < 0)
			return -1;
		take_finish(p, choice);
		take_usage(p, json_obj(choice, "usage")); /* Moonshot */
	}
	take_usage(p, json_obj(chunk, "usage"));
	return 0;
}

/* --- at the end --- */

static void collect_calls(struct stream_parser *p, struct message *m)
{
	struct state *s = p->state;
	struct block *last = NULL;
	for (size_t i = 0; i < s->calls.n; i++) {
		struct call_part *c = &s->calls.calls[i];
		AUTO_BUF struct buf extra = BUF_INIT;
		bool is_last = i == s->calls.current;
		if (!c->name)
			continue; /* cut before its name came: nothing can answer it */
		if (c->extra && json_object_object_length(c->extra) > 0)
			json_write(&extra, c->extra);
		last = stream_add_call(p, m, c->id, c->name, &c->arguments,
				       extra.len ? buf_str(&extra) : NULL);
		if (is_last && s->last == PART_CALL && stream_is_cut(p->stop))
			last->partial = true;
	}
}

static void collect(struct stream_parser *p, struct message *m)
{
	struct state *s = p->state;
	bool cut = stream_is_cut(p->stop);
	AUTO_BUF struct buf details = BUF_INIT;
	if (s->details)
		json_write(&details, s->details);
	if (s->thinking.len || details.len) {
		struct block *b = message_add_thinking(m, s->thinking_field, buf_str(&s->thinking),
						       s->thinking.len,
						       details.len ? buf_str(&details) : NULL);
		b->partial = cut && s->last == PART_THINKING;
	}
	struct block *text = message_add_text(m, ORIGIN_MODEL, buf_str(&s->text), s->text.len);
	if (text)
		text->partial = cut && s->last == PART_TEXT;
	collect_calls(p, m);
}

const struct stream_ops openai_stream = {
	.state_new = state_new,
	.state_free = state_free,
	.event = on_event,
	.collect = collect,
};
