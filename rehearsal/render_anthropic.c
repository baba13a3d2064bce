/*
 * render_anthropic.c - an answer as a Messages document or event stream (wire.md 1.2 to 1.4).
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
	struct buf data; /* of the event being made */
};

/* Every event's name is its type: the SDKs read either. */
static void event_send(struct render *v, const char *name)
{
	reply_event(v->reply, v->a->quirks, name, buf_str(&v->data), v->data.len);
	buf_clear(&v->data);
}

static const char *stop_reason(const struct answer *a)
{
	switch (a->stop) {
	case STOP_END: return "end_turn";
	case STOP_TOOLS: return "tool_use";
	case STOP_MAX_TOKENS: return "max_tokens";
	case STOP_WINDOW: return "model_context_window_exceeded";
	default: return a->stop_text;
	}
}

/* The three input figures are disjoint; their sum is the prompt (wire.md 1.3). */
static void write_usage(struct buf *out, const struct answer *a, int64_t output, bool zero)
{
	const struct cache_usage *u = &a->usage;

	buf_addf(out,
		 "{\"input_tokens\":%" PRId64 ",\"cache_creation_input_tokens\":%" PRId64
		 ",\"cache_read_input_tokens\":%" PRId64
		 ",\"cache_creation\":{\"ephemeral_5m_input_tokens\":%" PRId64
		 ",\"ephemeral_1h_input_tokens\":%" PRId64 "},\"output_tokens\":%" PRId64,
		 zero ? 0 : u->fresh, zero ? 0 : u->write, zero ? 0 : u->read,
		 zero ? 0 : u->write - u->write_1h, zero ? 0 : u->write_1h, output);
	if (a->thinking_tokens)
		buf_addf(out, ",\"output_tokens_details\":{\"thinking_tokens\":%" PRId64 "}",
			 a->thinking_tokens);
	buf_adds(out, ",\"service_tier\":\"standard\"}");
}

static void write_stop(struct buf *out, const struct answer *a)
{
	buf_adds(out, "\"stop_reason\":");
	json_write_cstr(out, stop_reason(a));
	buf_adds(out, ",\"stop_sequence\":null");
	if (a->stop_details) {
		buf_adds(out, ",\"stop_details\":");
		json_write(out, a->stop_details);
	}
}

/* The blocks that the client asked to have dropped (wire.md 1.6 no. 5). */
static void write_transformations(struct buf *out, const struct request *r)
{
	if (!r->n_dropped)
		return;
	buf_adds(out, ",\"input_transformations\":[");
	for (size_t i = 0; i < r->n_dropped; i++)
		buf_addf(out,
			 "%s{\"type\":\"thinking_dropped\",\"path\":\"messages.%zu.content.%zu\","
			 "\"reason\":\"prefix_mismatch\"}",
			 i ? "," : "", r->dropped[i].message, r->dropped[i].block);
	buf_adds(out, "]");
}

/* What the server left out of the prompt by itself (wire.md 1.9). */
static void write_edits(struct buf *out, const struct request *r)
{
	if (r->cleared_uses)
		buf_addf(out,
			 ",\"context_management\":{\"applied_edits\":[{\"type\":"
			 "\"clear_tool_uses_20250919\",\"cleared_tool_uses\":%zu,"
			 "\"cleared_input_tokens\":%" PRId64 "}]}",
			 r->cleared_uses, r->cleared_tokens);
}

static void write_head(struct buf *out, const struct request *r)
{
	buf_addf(out,
		 "\"id\":\"msg_rehearsal%016" PRIx64
		 "\",\"type\":\"message\",\"role\":\"assistant\","
		 "\"model\":",
		 r->chain);
	json_write_cstr(out, r->model);
	write_transformations(out, r);
}

static void write_signature(struct buf *out, const struct render *v)
{
	if (!(v->a->quirks & QUIRK_NO_SIGNATURE))
		thinking_sign(out, v->a->thinking, v->r->chain);
}

/* A whole block of a document, or the empty start of one in a stream. */
static void write_block(struct buf *out, const struct render *v, const struct answer_block *b,
			bool start)
{
	switch (b->kind) {
	case PART_THINKING:
		buf_adds(out, "{\"type\":\"thinking\",\"thinking\":");
		json_write_string(out, b->text, start ? 0 : b->len);
		buf_adds(out, ",\"signature\":\"");
		if (!start)
			write_signature(out, v);
		buf_adds(out, "\"}");
		break;
	case PART_OTHER:
		buf_adds(out, "{\"type\":\"redacted_thinking\",\"data\":");
		json_write_string(out, b->text, b->len);
		buf_adds(out, "}");
		break;
	case PART_CALL:
		buf_addf(out, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", b->id);
		json_write_cstr(out, b->name);
		buf_adds(out, ",\"input\":");
		/* A document cannot hold half arguments: the real API gives what was parsed so far.
		 */
		buf_add(out, start || b->cut ? "{}" : b->text, start || b->cut ? 2 : b->len);
		buf_adds(out, "}");
		break;
	default:
		buf_adds(out, "{\"type\":\"text\",\"text\":");
		json_write_string(out, b->text, start ? 0 : b->len);
		buf_adds(out, "}");
		break;
	}
}

static void send_delta(struct render *v, size_t index, const char *type, const char *member,
		       const char *s, size_t n)
{
	buf_addf(&v->data,
		 "{\"type\":\"content_block_delta\",\"index\":%zu,\"delta\":{\"type\":\"%s\",\"%"
		 "s\":",
		 index, type, member);
	json_write_string(&v->data, s, n);
	buf_adds(&v->data, "}}");
	event_send(v, "content_block_delta");
}

/* Cut at characters, never inside one; arguments may be cut anywhere, even inside an escape. */
static void send_pieces(struct render *v, size_t index, const char *type, const char *member,
			const struct answer_block *b)
{
	for (size_t at = 0; at < b->len;) {
		size_t next = text_ceil(b->text, b->len, MIN(at + v->delta, b->len));

		send_delta(v, index, type, member, b->text + at, next - at);
		at = next;
	}
}

/* The real stream opens arguments with an empty fragment, and has no more of them for no arguments.
 */
static void send_call(struct render *v, size_t index, const struct answer_block *b)
{
	bool empty = strcmp(b->text, "{}") == 0;

	if (empty && (v->a->quirks & QUIRK_NO_INPUT_DELTA))
		return;
	send_delta(v, index, "input_json_delta", "partial_json", "", 0);
	if (!empty)
		send_pieces(v, index, "input_json_delta", "partial_json", b);
}

/* The signature is a delta of its own behind the text. */
static void send_thinking(struct render *v, size_t index, const struct answer_block *b)
{
	AUTO_BUF struct buf signature = BUF_INIT;

	send_pieces(v, index, "thinking_delta", "thinking", b);
	write_signature(&signature, v);
	if (signature.len)
		send_delta(v, index, "signature_delta", "signature", buf_str(&signature),
			   signature.len);
}

static void send_block(struct render *v, size_t index)
{
	const struct answer_block *b = &v->a->blocks[index];
	bool last = index + 1 == v->a->n_blocks;

	buf_addf(&v->data,
		 "{\"type\":\"content_block_start\",\"index\":%zu,\"content_block\":", index);
	write_block(&v->data, v, b, true);
	buf_adds(&v->data, "}");
	event_send(v, "content_block_start");
	if (index == 0 && !(v->a->quirks & QUIRK_NO_PING)) {
		buf_adds(&v->data, "{\"type\":\"ping\"}");
		event_send(v, "ping");
	}
	if (b->kind == PART_CALL)
		send_call(v, index, b);
	else if (b->kind == PART_THINKING)
		send_thinking(v, index, b);
	else if (b->kind == PART_TEXT)
		send_pieces(v, index, "text_delta", "text", b);
	/* A block cut by max_tokens can lack its stop (wire.md 1.2). */
	if (last && (b->cut || (v->a->quirks & QUIRK_NO_BLOCK_STOP)))
		return;
	buf_addf(&v->data, "{\"type\":\"content_block_stop\",\"index\":%zu}", index);
	event_send(v, "content_block_stop");
}

/* message_start has the input and a first output token, message_delta the final, cumulative
 * figures. */
static void render_stream(struct render *v)
{
	bool late = v->a->quirks & QUIRK_USAGE_LATE, none = v->a->quirks & QUIRK_NO_USAGE;

	buf_adds(&v->data, "{\"type\":\"message_start\",\"message\":{");
	write_head(&v->data, v->r);
	buf_adds(&v->data,
		 ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
	write_usage(&v->data, v->a, late || none ? 0 : 1, late || none);
	buf_adds(&v->data, "}}");
	event_send(v, "message_start");
	for (size_t i = 0; i < v->a->n_blocks; i++)
		send_block(v, i);
	buf_adds(&v->data, "{\"type\":\"message_delta\",\"delta\":{");
	write_stop(&v->data, v->a);
	buf_adds(&v->data, "}");
	if (!none) {
		buf_adds(&v->data, ",\"usage\":");
		write_usage(&v->data, v->a, v->a->output_tokens, false);
	}
	write_edits(&v->data, v->r);
	buf_adds(&v->data, "}");
	event_send(v, "message_delta");
	buf_adds(&v->data, "{\"type\":\"message_stop\"}");
	event_send(v, "message_stop");
}

static void render_document(struct render *v)
{
	struct buf *out = &v->reply->body;

	buf_adds(out, "{");
	write_head(out, v->r);
	buf_adds(out, ",\"content\":[");
	for (size_t i = 0; i < v->a->n_blocks; i++) {
		if (i)
			buf_adds(out, ",");
		write_block(out, v, &v->a->blocks[i], false);
	}
	buf_adds(out, "],");
	write_stop(out, v->a);
	if (!(v->a->quirks & QUIRK_NO_USAGE)) {
		buf_adds(out, ",\"usage\":");
		write_usage(out, v->a, v->a->output_tokens, false);
	}
	write_edits(out, v->r);
	buf_adds(out, "}");
}

void anthropic_render(struct reply *reply, const struct request *r, const struct answer *a,
		      size_t delta_bytes)
{
	struct render v = {.reply = reply, .r = r, .a = a, .delta = delta_bytes};

	reply->stream = r->stream;
	reply->content_type = r->stream ? "text/event-stream; charset=utf-8" : "application/json";
	if (r->stream)
		render_stream(&v);
	else
		render_document(&v);
	buf_release(&v.data);
}
