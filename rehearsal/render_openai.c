/*
 * render_openai.c - an answer as a Chat Completions document or chunk stream (wire.md 2.2), with
 * the deviations of imitations (wire.md 4) switched on by quirks.
 */
#include "rehearsal/reply.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/quirks.h"
#include "rehearsal/thinking.h"

struct render {
	struct reply *reply;
	const struct request *r;
	const struct answer *a;
	size_t delta;
	int64_t created;
	struct buf data;
};

static const char *finish_reason(const struct answer *a)
{
	if (a->stop == STOP_TOOLS)
		return a->quirks & QUIRK_FINISH_STOP ? "stop" : "tool_calls";
	if (a->stop == STOP_MAX_TOKENS || a->stop == STOP_WINDOW)
		return "length";
	if (a->stop != STOP_OTHER)
		return "stop";
	/* A scenario for both protocols may use the other one's words. */
	if (strcmp(a->stop_text, "end_turn") == 0)
		return "stop";
	if (strcmp(a->stop_text, "tool_use") == 0)
		return "tool_calls";
	if (strcmp(a->stop_text, "max_tokens") == 0)
		return "length";
	return strcmp(a->stop_text, "refusal") == 0 ? "content_filter" : a->stop_text;
}

static void write_usage(struct buf *out, const struct answer *a)
{
	buf_addf(out,
		 "{\"prompt_tokens\":%" PRId64 ",\"completion_tokens\":%" PRId64
		 ",\"total_tokens\":%" PRId64
		 ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRId64
		 "},\"completion_tokens_details\":{\"reasoning_tokens\":%" PRId64 "}}",
		 a->input_tokens, a->output_tokens, a->input_tokens + a->output_tokens,
		 a->usage.read, a->thinking_tokens);
}

static void write_head(struct buf *out, const struct render *v, const char *object)
{
	buf_addf(out,
		 "{\"id\":\"chatcmpl-rehearsal%016" PRIx64
		 "\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
		 v->r->chain, object, v->created);
	json_write_cstr(out, v->r->model);
	buf_adds(out, ",\"system_fingerprint\":\"fp_rehearsal\"");
}

/* Without include_usage a stream has no figures at all. */
static bool usage_wanted(const struct render *v)
{
	return v->r->include_usage && !(v->a->quirks & QUIRK_NO_USAGE);
}

static void chunk_begin(struct render *v)
{
	write_head(&v->data, v, "chat.completion.chunk");
	buf_adds(&v->data, ",\"choices\":[{\"index\":0,\"delta\":");
}

/* `tail` is what follows the delta inside the choice, with its comma. */
static void chunk_end(struct render *v, const char *tail)
{
	bool separate = !(v->a->quirks & (QUIRK_USAGE_ON_FINISH | QUIRK_USAGE_IN_CHOICE));

	buf_addf(&v->data, "%s}]", tail);
	if (usage_wanted(v) && separate)
		buf_adds(&v->data, ",\"usage\":null");
	buf_adds(&v->data, "}");
	reply_event(v->reply, v->a->quirks, NULL, buf_str(&v->data), v->data.len);
	buf_clear(&v->data);
}

/* More than one field only for servers that say the same twice. */
static void send_text(struct render *v, const char *const *fields, const struct answer_block *b)
{
	for (size_t at = 0; at < b->len;) {
		size_t next = text_ceil(b->text, b->len, MIN(at + v->delta, b->len));

		chunk_begin(v);
		for (size_t i = 0; fields[i]; i++) {
			buf_addf(&v->data, "%s\"%s\":", i ? "," : "{", fields[i]);
			json_write_string(&v->data, b->text + at, next - at);
		}
		buf_adds(&v->data, "}");
		chunk_end(v, ",\"finish_reason\":null");
		at = next;
	}
}

static void send_reasoning(struct render *v, const struct answer_block *b)
{
	static const char *const plain[] = {"reasoning_content", NULL};
	static const char *const other[] = {"reasoning", NULL};
	static const char *const both[] = {"reasoning_content", "reasoning", NULL};

	send_text(v,
		  v->a->quirks & QUIRK_REASONING_TWICE ? both
		  : v->a->quirks & QUIRK_REASONING     ? other
						       : plain,
		  b);
}

/* Raw control characters inside the argument strings, as some models emit them (trap 39): \n and \t
 * written as escapes in our JSON become the bytes themselves. */
static void write_raw_arguments(struct buf *out, const struct answer_block *b)
{
	for (size_t i = 0; i < b->len; i++) {
		if (b->text[i] == '\\' && i + 1 < b->len) {
			char c = b->text[++i];

			if (c == 'n' || c == 't') {
				buf_addc(out, c == 'n' ? '\n' : '\t');
				continue;
			}
			buf_addc(out, '\\');
			buf_addc(out, c);
			continue;
		}
		buf_addc(out, b->text[i]);
	}
}

/* A fragment as a string, unless a quirk makes it an object or null. */
static void write_arguments(struct render *v, const struct answer_block *b, const char *s, size_t n)
{
	bool empty = strcmp(b->text, "{}") == 0;

	if (empty && (v->a->quirks & QUIRK_ARGS_NULL))
		buf_adds(&v->data, "null");
	else if (v->a->quirks & QUIRK_ARGS_OBJECT)
		buf_add(&v->data, b->text, b->len);
	else
		json_write_string(&v->data, s, n);
}

/* Bound to the call's id, so that the reader can check it without memory. */
static void write_extra(struct buf *out, const struct render *v, const struct answer_block *b)
{
	AUTO_BUF struct buf signature = BUF_INIT;

	if (!(v->a->quirks & QUIRK_THOUGHT_SIGNATURE))
		return;
	thinking_sign(&signature, thinking_hash(b->id, strlen(b->id)), 0);
	buf_addf(out, ",\"extra_content\":{\"google\":{\"thought_signature\":\"%s\"}}",
		 buf_str(&signature));
}

/* One fragment of a call; the first one carries id and name. */
static void send_fragment(struct render *v, size_t index, const struct answer_block *b,
			  size_t number, const char *s, size_t n)
{
	uint32_t quirks = v->a->quirks;
	const char *comma = "";

	chunk_begin(v);
	buf_adds(&v->data, "{\"tool_calls\":[{");
	if (!(quirks & QUIRK_NO_INDEX)) {
		buf_addf(&v->data, "\"index\":%zu", quirks & QUIRK_INDEX_ZERO ? (size_t)0 : index);
		comma = ",";
	}
	if (number == 0)
		buf_addf(&v->data, "%s\"id\":\"%s\",\"type\":\"function\"", comma, b->id);
	else if (quirks & QUIRK_NEW_IDS)
		buf_addf(&v->data, "%s\"id\":\"%s-%zu\"", comma, b->id, number);
	if (number == 0 || (quirks & QUIRK_NEW_IDS))
		comma = ",";
	buf_addf(&v->data, "%s\"function\":{", comma);
	if (number == 0) {
		buf_adds(&v->data, "\"name\":");
		json_write_cstr(&v->data, b->name);
		buf_adds(&v->data, ",");
	}
	buf_adds(&v->data, "\"arguments\":");
	write_arguments(v, b, s, n);
	buf_adds(&v->data, "}");
	if (number == 0)
		write_extra(&v->data, v, b);
	buf_adds(&v->data, "}]}");
	chunk_end(v, ",\"finish_reason\":null");
}

static void send_call(struct render *v, size_t index, const struct answer_block *b)
{
	AUTO_BUF struct buf raw = BUF_INIT;
	const char *s = b->text;
	size_t len = b->len, number = 0, at = 0;

	if (v->a->quirks & QUIRK_RAW_CONTROLS) {
		write_raw_arguments(&raw, b);
		s = buf_str(&raw);
		len = raw.len;
	}
	if (v->a->quirks & QUIRK_WHOLE_ARGS) {
		send_fragment(v, index, b, 0, s, len);
		return;
	}
	send_fragment(v, index, b, number++, "", 0);
	while (at < len) {
		size_t next = text_ceil(s, len, MIN(at + v->delta, len));

		send_fragment(v, index, b, number++, s + at, next - at);
		at = next;
	}
}

/* The chunk that ends the choice, with usage where a quirk puts it. */
static void send_finish(struct render *v)
{
	AUTO_BUF struct buf tail = BUF_INIT;
	uint32_t quirks = v->a->quirks;

	buf_adds(&tail, ",\"finish_reason\":");
	json_write_cstr(&tail, finish_reason(v->a));
	if ((quirks & QUIRK_USAGE_IN_CHOICE) && usage_wanted(v)) {
		buf_adds(&tail, ",\"usage\":");
		write_usage(&tail, v->a);
	}
	chunk_begin(v);
	buf_adds(&v->data, "{}");
	if ((quirks & QUIRK_USAGE_ON_FINISH) && usage_wanted(v)) {
		buf_addf(&v->data, "%s}],\"usage\":", buf_str(&tail));
		write_usage(&v->data, v->a);
		buf_adds(&v->data, "}");
		reply_event(v->reply, quirks, NULL, buf_str(&v->data), v->data.len);
		buf_clear(&v->data);
		return;
	}
	chunk_end(v, buf_str(&tail));
}

/* A chunk of its own, with an empty list of choices: the official form. */
static void send_usage(struct render *v)
{
	if (!usage_wanted(v) || (v->a->quirks & (QUIRK_USAGE_ON_FINISH | QUIRK_USAGE_IN_CHOICE)))
		return;
	write_head(&v->data, v, "chat.completion.chunk");
	buf_adds(&v->data, ",\"choices\":[],\"usage\":");
	write_usage(&v->data, v->a);
	buf_adds(&v->data, "}");
	reply_event(v->reply, v->a->quirks, NULL, buf_str(&v->data), v->data.len);
	buf_clear(&v->data);
}

static void render_stream(struct render *v)
{
	static const char azure[] = "{\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\","
				    "\"choices\":[],\"prompt_filter_results\":[]}";
	static const char *const content[] = {"content", NULL};
	size_t calls = 0;

	if (v->a->quirks & QUIRK_AZURE)
		reply_event(v->reply, v->a->quirks, NULL, azure, sizeof(azure) - 1);
	chunk_begin(v);
	buf_adds(&v->data, "{\"role\":\"assistant\",\"content\":\"\"}");
	chunk_end(v, ",\"finish_reason\":null");
	for (size_t i = 0; i < v->a->n_blocks; i++) {
		const struct answer_block *b = &v->a->blocks[i];

		if (b->kind == PART_CALL)
			send_call(v, calls++, b);
		else if (b->kind == PART_THINKING)
			send_reasoning(v, b);
		else
			send_text(v, content, b);
	}
	send_finish(v);
	send_usage(v);
	if (!(v->a->quirks & QUIRK_NO_DONE))
		reply_event(v->reply, v->a->quirks, NULL, "[DONE]", 6);
}

static void document_call(struct render *v, struct buf *out, const struct answer_block *b,
			  bool first)
{
	buf_addf(out,
		 "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", first ? "" : ",",
		 b->id);
	json_write_cstr(out, b->name);
	buf_adds(out, ",\"arguments\":");
	if (v->a->quirks & QUIRK_ARGS_OBJECT)
		buf_add(out, b->text, b->len);
	else
		json_write_string(out, b->text, b->len);
	buf_adds(out, "}");
	write_extra(out, v, b);
	buf_adds(out, "}");
}

/* Content is null if there is none, as the API writes it. */
static void document_message(struct render *v, struct buf *out)
{
	const char *reasoning = v->a->quirks & QUIRK_REASONING ? "reasoning" : "reasoning_content";
	bool text = false, calls = false;

	buf_adds(out, "{\"role\":\"assistant\"");
	for (size_t i = 0; i < v->a->n_blocks; i++) {
		const struct answer_block *b = &v->a->blocks[i];

		if (b->kind == PART_CALL) {
			buf_adds(out, calls ? "" : ",\"tool_calls\":[");
			document_call(v, out, b, !calls);
			calls = true;
			continue;
		}
		text |= b->kind == PART_TEXT;
		buf_addf(out, ",\"%s\":", b->kind == PART_TEXT ? "content" : reasoning);
		json_write_string(out, b->text, b->len);
	}
	buf_adds(out, calls ? "]" : "");
	buf_addf(out, "%s,\"refusal\":null}", text ? "" : ",\"content\":null");
}

static void render_document(struct render *v)
{
	struct buf *out = &v->reply->body;

	write_head(out, v, "chat.completion");
	buf_adds(out, ",\"choices\":[{\"index\":0,\"message\":");
	document_message(v, out);
	buf_adds(out, ",\"logprobs\":null,\"finish_reason\":");
	json_write_cstr(out, finish_reason(v->a));
	buf_adds(out, "}]");
	if (!(v->a->quirks & QUIRK_NO_USAGE)) {
		buf_adds(out, ",\"usage\":");
		write_usage(out, v->a);
	}
	buf_adds(out, "}");
}

void openai_render(struct reply *reply, const struct request *r, const struct answer *a,
		   size_t delta_bytes, int64_t now_ms)
{
	struct render v = {
		.reply = reply, .r = r, .a = a, .delta = delta_bytes, .created = now_ms / 1000};

	reply->stream = r->stream;
	reply->content_type = r->stream ? "text/event-stream; charset=utf-8" : "application/json";
	if (r->stream)
		render_stream(&v);
	else
		render_document(&v);
	buf_release(&v.data);
}
