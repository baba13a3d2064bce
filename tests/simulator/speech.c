/*
 * speech.c - writes streams. Usage stands at the end in both forms: it is known only then.
 */
#include "speech.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

void speech_begin(struct speech *s, enum model_api api, const struct tokenizer *tokenizer)
{
	*s = (struct speech){.api = api, .tokenizer = tokenizer};
	if (api == MODEL_API_ANTHROPIC)
		buf_adds(&s->out,
			 "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"
			 "{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[]}}\n\n");
}

void speech_release(struct speech *s)
{
	buf_release(&s->out);
}

int64_t speech_tokens(const struct speech *s)
{
	return s->weight / READING_WEIGHT_UNIT + 1;
}

static void weigh(struct speech *s, const char *text, size_t n)
{
	s->weight += tokenizer_weigh(s->tokenizer, text, n) + s->tokenizer->block;
}

/* A block of the Anthropic form with one string that grows. */
static void add_block(struct speech *s, const char *start, const char *delta, const char *member,
		      const char *text, size_t n)
{
	int i = s->blocks++;

	buf_addf(&s->out,
		 "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%d,"
		 "\"content_block\":%s}\n\n",
		 i, start);
	buf_addf(&s->out,
		 "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%d,"
		 "\"delta\":{\"type\":\"%s\",\"%s\":",
		 i, delta, member);
	json_write_string(&s->out, text, n);
	buf_adds(&s->out, "}}  \n\n");
}

static void stop_block(struct speech *s)
{
	buf_addf(&s->out,
		 "event: content_block_stop\ndata: "
		 "{\"type\":\"content_block_stop\",\"index\":%d}\n\n",
		 s->blocks - 1);
}

static void begin_delta(struct speech *s)
{
	buf_adds(&s->out, "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{");
}

static void end_delta(struct speech *s)
{
	buf_adds(&s->out, "},\"finish_reason\":null}],\"usage\":null}\n\n");
}

void speech_thinking(struct speech *s, const char *text, size_t n, uint64_t prefix)
{
	weigh(s, text, n);
	if (s->api == MODEL_API_OPENAI) {
		begin_delta(s);
		buf_adds(&s->out, "\"reasoning_content\":");
		json_write_string(&s->out, text, n);
		end_delta(s);
		return;
	}
	add_block(s, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
		  "thinking_delta", "thinking", text, n);
	buf_addf(&s->out,
		 "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%d,"
		 "\"delta\":{\"type\":\"signature_delta\",\"signature\":\"%016" PRIx64 "%016" PRIx64
		 "\"}}\n\n",
		 s->blocks - 1, prefix, hash_bytes(text, n));
	stop_block(s);
}

void speech_text(struct speech *s, const char *text, size_t n)
{
	weigh(s, text, n);
	if (s->api == MODEL_API_OPENAI) {
		begin_delta(s);
		buf_adds(&s->out, "\"content\":");
		json_write_string(&s->out, text, n);
		end_delta(s);
		return;
	}
	add_block(s, "{\"type\":\"text\",\"text\":\"\"}", "text_delta", "text", text, n);
	stop_block(s);
}

void speech_call(struct speech *s, const char *id, const char *name, const char *arguments,
		 size_t n)
{
	weigh(s, arguments, n);
	if (s->api == MODEL_API_OPENAI) {
		begin_delta(s);
		buf_addf(&s->out,
			 "\"tool_calls\":[{\"index\":%d,\"id\":\"%s\",\"type\":\"function\","
			 "\"function\":{\"name\":\"%s\",\"arguments\":",
			 s->calls, id, name);
		json_write_string(&s->out, arguments, n);
		buf_adds(&s->out, "}}]");
		end_delta(s);
	} else {
		AUTO_FREE char *start = mem_printf(
			"{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":{}}", id,
			name);

		add_block(s, start, "input_json_delta", "partial_json", arguments, n);
		stop_block(s);
	}
	s->calls++;
}

static const char *openai_word(const struct speech *s, const char *stop)
{
	if (!strcmp(stop, "max_tokens"))
		return "length";
	if (!strcmp(stop, "refusal"))
		return "content_filter";
	if (!strcmp(stop, "tool_use") || s->calls)
		return strcmp(stop, "end_turn") ? "tool_calls" : "stop";
	return strcmp(stop, "end_turn") ? stop : "stop";
}

static void end_openai(struct speech *s, const char *stop, const struct speech_usage *u,
		       int64_t output)
{
	buf_addf(&s->out,
		 "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
		 "\"%s\"}],\"usage\":null}\n\n",
		 openai_word(s, stop));
	if (u->told)
		buf_addf(&s->out,
			 "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":%" PRId64
			 ",\"completion_tokens\":%" PRId64 ",\"total_tokens\":%" PRId64
			 ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRId64 "}}}\n\n",
			 u->prompt, output, u->prompt + output, u->cached);
	buf_adds(&s->out, "data: [DONE]\n\n");
}

void speech_end(struct speech *s, const char *stop, const struct speech_usage *u)
{
	int64_t output = u->output < 0 ? speech_tokens(s) : u->output;
	int64_t fresh = u->marked ? 0 : (u->prompt - u->cached) / 3;

	if (s->api == MODEL_API_OPENAI) {
		end_openai(s, stop, u, output);
		return;
	}
	buf_addf(&s->out,
		 "event: message_delta\ndata: "
		 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
		 "\"%s\",\"stop_sequence\":null}",
		 stop);
	if (u->told)
		buf_addf(&s->out,
			 ",\"usage\":{\"input_tokens\":%" PRId64
			 ",\"cache_read_input_tokens\":%" PRId64
			 ",\"cache_creation_input_tokens\":%" PRId64 ",\"output_tokens\":%" PRId64
			 "}",
			 fresh, u->cached, u->prompt - u->cached - fresh, output);
	if (u->cleared)
		buf_addf(&s->out,
			 ",\"context_management\":{\"applied_edits\":[{\"type\":"
			 "\"clear_tool_uses_20250919\",\"cleared_tool_uses\":%" PRId64
			 ",\"cleared_input_tokens\":%" PRId64 "}]}",
			 u->cleared_uses, u->cleared);
	buf_adds(&s->out, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}
