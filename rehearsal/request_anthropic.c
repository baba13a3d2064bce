/*
 * request_anthropic.c - reads and checks a Messages request as the API does (wire.md 1.1, 1.5
 * to 1.7).
 *
 * The texts are the provider's own where they are known, because clients classify by them. Order of
 * the checks: fields, tools, system, each message, pairing, markers; the first refusal is answered.
 * Consecutive messages of one role are accepted, as the API merges them, unless the scenario says
 * otherwise.
 */
#include "rehearsal/request.h"

#include <inttypes.h>
#include <stdio.h>

#include "rehearsal/hash.h"
#include "rehearsal/thinking.h"

struct reader {
	struct request *r;
	struct id_set *ids;
	uint8_t last_ttl; /* of the markers so far: an hour must not follow five minutes */
};

static const char *const top_fields[] = {
	"model",
	"messages",
	"max_tokens",
	"system",
	"tools",
	"tool_choice",
	"stream",
	"temperature",
	"top_p",
	"top_k",
	"stop_sequences",
	"metadata",
	"thinking",
	"cache_control",
	"service_tier",
	"container",
	"context_management",
	"mcp_servers",
	"output_config",
	"output_format",
	"inference_geo",
	"speed",
	"compaction",
	"betas",
	NULL,
};

/* Block types, who may send them, and the members they may have. */
static const struct block_type {
	const char *name;
	bool user, assistant;
	const char *fields[8];
} block_types[] = {
	{"text", true, true, {"type", "text", "cache_control", "citations"}},
	{"image", true, false, {"type", "source", "cache_control"}},
	{"document",
	 true,
	 false,
	 {"type", "source", "cache_control", "title", "context", "citations"}},
	{"search_result",
	 true,
	 false,
	 {"type", "source", "title", "content", "cache_control", "citations"}},
	{"tool_use", false, true, {"type", "id", "name", "input", "cache_control", "caller"}},
	{"tool_result",
	 true,
	 false,
	 {"type", "tool_use_id", "content", "is_error", "cache_control"}},
	{"thinking", false, true, {"type", "thinking", "signature"}},
	{"redacted_thinking", false, true, {"type", "data"}},
	{"compaction", false, true, {"type", "content", "encrypted_content", "cache_control"}},
};

static bool in_list(const struct doc *doc, uint32_t key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n && list[i]; i++)
		if (doc_is(doc, key, list[i]))
			return true;
	return false;
}

static bool is_blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != ' ' && s[i] != '\n' && s[i] != '\t' && s[i] != '\r')
			return false;
	return true;
}

static bool is_name(const struct doc_node *node, size_t max)
{
	if (node->type != DOC_STRING || !node->len || node->len > max)
		return false;
	for (size_t i = 0; i < node->len; i++) {
		char c = node->s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* Sets *ret to 0, 5 or 60 minutes. */
static int read_marker(struct reader *rd, uint32_t block, const char *path, uint8_t *ret)
{
	const struct doc *doc = &rd->r->doc;
	uint32_t marker = doc_get(doc, block, "cache_control"), ttl;

	*ret = 0;
	if (!marker || doc_type(doc, marker) == DOC_NULL)
		return 0;
	if (!doc_is(doc, doc_get(doc, marker, "type"), "ephemeral"))
		return request_refuse(rd->r, "cache_control",
				      "%s.cache_control.type: Input should be 'ephemeral'", path);
	ttl = doc_get(doc, marker, "ttl");
	if (ttl && !doc_is(doc, ttl, "5m") && !doc_is(doc, ttl, "1h"))
		return request_refuse(
			rd->r, "cache_control",
			"%s.cache_control.ephemeral.ttl: Input should be '5m' or '1h'", path);
	*ret = ttl && doc_is(doc, ttl, "1h") ? 60 : 5;
	if (*ret == 60 && rd->last_ttl == 5)
		return request_refuse(
			rd->r, "cache_control",
			"%s.cache_control.ttl: a ttl='1h' cache_control block must not come "
			"after a ttl='5m' cache_control block. Note that blocks are processed "
			"in the following order: `tools`, `system`, `messages`.",
			path);
	rd->last_ttl = *ret;
	return 0;
}

/* A text that may not be empty or blank (traps 28, 30). */
static int check_text(struct reader *rd, uint32_t block, const char *where, const char *path)
{
	const struct doc *doc = &rd->r->doc;
	uint32_t text = doc_get(doc, block, "text");

	if (doc_type(doc, text) != DOC_STRING)
		return request_refuse(rd->r, "text", "%s.text.text: Input should be a valid string",
				      path);
	if (!doc->nodes[text].len) {
		if (doc_get(doc, block, "cache_control"))
			return request_refuse(
				rd->r, "empty_text",
				"%s: cache_control cannot be set for empty text blocks", path);
		return request_refuse(rd->r, "empty_text",
				      "%s: text content blocks must be non-empty", where);
	}
	if (is_blank(doc->nodes[text].s, doc->nodes[text].len))
		return request_refuse(rd->r, "empty_text",
				      "%s: text content blocks must contain non-whitespace text",
				      where);
	return 0;
}

static int read_tools(struct reader *rd)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	struct id_set *names = NULL;
	size_t i = 0;

	r->tools = doc_get(doc, DOC_ROOT, "tools");
	if (!r->tools)
		return 0;
	if (doc_type(doc, r->tools) != DOC_ARRAY)
		return request_refuse(r, "tools", "tools: Input should be a valid list");
	r->n_tools = doc->nodes[r->tools].count;
	DOC_EACH(doc, r->tools, tool)
	{
		uint32_t name = doc_get(doc, tool, "name"), type = doc_get(doc, tool, "type");
		uint32_t schema = doc_get(doc, tool, "input_schema");
		char path[32];
		uint8_t ttl;

		snprintf(path, sizeof(path), "tools.%zu", i++);
		if (!is_name(&doc->nodes[name], 128))
			return request_refuse(r, "tools",
					      "%s.custom.name: String should match pattern "
					      "'^[a-zA-Z0-9_-]{1,128}$'",
					      path);
		if ((!type || doc_is(doc, type, "custom")) &&
		    !doc_is(doc, doc_get(doc, schema, "type"), "object"))
			return request_refuse(r, "tools",
					      "%s.custom.input_schema.type: Field required", path);
		if (!id_set_add(r, &names, doc->nodes[name].s, doc->nodes[name].len))
			return request_refuse(r, "tools", "tools: Tool names must be unique.");
		if (read_marker(rd, tool, path, &ttl) < 0)
			return -1;
		request_add_unit(r, doc_hash(doc, tool, 1, "cache_control"),
				 TOKENS_TOOL + request_count_node(r, tool), ttl);
	}
	request_end_message(r);
	return 0;
}

static void add_system(struct request *r, uint32_t text, uint8_t ttl)
{
	const struct doc_node *node = &r->doc.nodes[text];
	uint64_t hash = hash_bytes(2, node->s, node->len);

	request_use_system(r, node->s, node->len);
	request_add_unit(r, hash, request_count(r, hash, node->s, node->len), ttl);
}

static int read_system(struct reader *rd)
{
	const struct doc *doc = &rd->r->doc;
	uint32_t system = doc_get(doc, DOC_ROOT, "system");
	size_t i = 0;

	if (!system)
		return 0;
	if (doc_type(doc, system) == DOC_STRING) {
		if (doc->nodes[system].len)
			add_system(rd->r, system, 0);
		request_end_message(rd->r);
		return 0;
	}
	if (doc_type(doc, system) != DOC_ARRAY)
		return request_refuse(rd->r, "system", "system: Input should be a valid list");
	DOC_EACH(doc, system, block)
	{
		char path[32];
		uint8_t ttl;

		snprintf(path, sizeof(path), "system.%zu", i++);
		if (!doc_is(doc, doc_get(doc, block, "type"), "text"))
			return request_refuse(rd->r, "system", "%s.type: Input should be 'text'",
					      path);
		if (check_text(rd, block, "system", path) < 0 ||
		    read_marker(rd, block, path, &ttl) < 0)
			return -1;
		add_system(rd->r, doc_get(doc, block, "text"), ttl);
	}
	request_end_message(rd->r);
	return 0;
}

static void add_text(struct request *r, const struct doc_node *node, uint8_t ttl)
{
	struct part *part = request_add_part(r, PART_TEXT);
	uint64_t hash = hash_bytes(3, node->s, node->len);

	part->text = node->s;
	part->len = node->len;
	request_add_unit(r, hash, request_count(r, hash, node->s, node->len), ttl);
}

static int read_call(struct reader *rd, uint32_t block, const char *path, uint8_t ttl)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, block, "id"), name = doc_get(doc, block, "name");
	uint32_t input = doc_get(doc, block, "input");
	struct part *part;
	uint64_t hash;

	if (!is_name(&doc->nodes[id], 200))
		return request_refuse(
			r, "tool_use",
			"%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", path);
	if (!is_name(&doc->nodes[name], 200))
		return request_refuse(r, "tool_use",
				      "%s.tool_use.name: String should match pattern "
				      "'^[a-zA-Z0-9_-]{1,200}$'",
				      path);
	if (doc_type(doc, input) != DOC_OBJECT)
		return request_refuse(r, "tool_use",
				      "%s.tool_use.input: Input should be a valid dictionary",
				      path);
	if (!id_set_add(r, &rd->ids, doc->nodes[id].s, doc->nodes[id].len))
		return request_refuse(r, "tool_use", "messages: `tool_use` ids must be unique");
	part = request_add_part(r, PART_CALL);
	part->id = doc->nodes[id].s;
	part->id_len = doc->nodes[id].len;
	part->name = doc->nodes[name].s;
	part->name_len = doc->nodes[name].len;
	part->input = input;
	hash = hash_bytes(hash_bytes(4, part->id, part->id_len), part->name, part->name_len);
	request_add_unit(r, doc_hash(doc, input, hash, NULL),
			 TOKENS_CALL + request_count_node(r, input), ttl);
	return 0;
}

static uint64_t add_image(struct request *r, uint32_t block, int64_t *tokens)
{
	uint32_t data = doc_get(&r->doc, doc_get(&r->doc, block, "source"), "data");
	const struct doc_node *node = &r->doc.nodes[data];

	*tokens = node->type == DOC_STRING ? tokens_of_image(node->s, node->len) : 1600;
	return doc_hash(&r->doc, block, 5, "cache_control");
}

/* A result's blocks: the texts are joined for the matcher, pictures are counted. */
static int read_result_blocks(struct reader *rd, uint32_t content, struct part *part,
			      uint64_t *hash, int64_t *tokens)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;

	DOC_EACH(doc, content, block)
	{
		uint32_t text = doc_get(doc, block, "text");

		if (doc_is(doc, doc_get(doc, block, "type"), "image")) {
			int64_t image_tokens;

			*hash = hash_mix(*hash, add_image(r, block, &image_tokens));
			*tokens += image_tokens;
			continue;
		}
		if (!doc_is(doc, doc_get(doc, block, "type"), "text")) {
			*hash = doc_hash(doc, block, *hash, "cache_control");
			*tokens += request_count_node(r, block);
			continue;
		}
		if (check_text(rd, block, "messages", "messages") < 0)
			return -1;
		*hash = hash_bytes(*hash, doc->nodes[text].s, doc->nodes[text].len);
		*tokens += request_count(r, hash_bytes(3, doc->nodes[text].s, doc->nodes[text].len),
					 doc->nodes[text].s, doc->nodes[text].len);
		if (!part->len) {
			part->text = doc->nodes[text].s;
			part->len = doc->nodes[text].len;
		} else {
			char *joined = arena_alloc(r->arena, part->len + doc->nodes[text].len + 2);

			memcpy(joined, part->text, part->len);
			joined[part->len] = '\n';
			memcpy(joined + part->len + 1, doc->nodes[text].s, doc->nodes[text].len);
			part->text = joined;
			part->len += doc->nodes[text].len + 1;
		}
	}
	return 0;
}

static int read_result(struct reader *rd, uint32_t block, const char *path, uint8_t ttl)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, block, "tool_use_id"), content = doc_get(doc, block, "content");
	enum doc_type error_type = doc_type(doc, doc_get(doc, block, "is_error"));
	struct part *part;
	uint64_t hash;
	int64_t tokens = TOKENS_RESULT;

	if (!is_name(&doc->nodes[id], 200))
		return request_refuse(r, "tool_result",
				      "%s.tool_result.tool_use_id: Field required", path);
	part = request_add_part(r, PART_RESULT);
	part->id = doc->nodes[id].s;
	part->id_len = doc->nodes[id].len;
	part->is_error = error_type == DOC_TRUE;
	hash = hash_mix(hash_bytes(6, part->id, part->id_len), part->is_error);
	if (doc_type(doc, content) == DOC_STRING) {
		part->text = doc->nodes[content].s;
		part->len = doc->nodes[content].len;
		hash = hash_bytes(hash, part->text, part->len);
		tokens += request_count(r, hash_bytes(3, part->text, part->len), part->text,
					part->len);
	} else if (doc_type(doc, content) == DOC_ARRAY) {
		if (read_result_blocks(rd, content, part, &hash, &tokens) < 0)
			return -1;
	} else if (content) {
		return request_refuse(r, "tool_result",
				      "%s.tool_result.content: Input should be a valid string",
				      path);
	}
	request_add_unit(r, hash, tokens, ttl);
	return 0;
}

static bool drop_block(struct request *r, size_t index)
{
	if (!r->drop_mismatched)
		return false;
	MEM_GROW(r->dropped, r->cap_dropped, r->n_dropped + 1);
	r->dropped[r->n_dropped].message = r->n_messages - 1;
	r->dropped[r->n_dropped++].block = index;
	return true;
}

static int check_signature(struct reader *rd, size_t index, const struct doc_node *text,
			   const struct doc_node *signature, uint64_t hash)
{
	struct request *r = rd->r;
	uint64_t before = r->messages[r->n_messages - 1].before;
	size_t m = r->n_messages - 1;

	switch (thinking_verify(signature->s, signature->len, hash, before,
				r->policy->bind_thinking)) {
	case THINKING_GOOD: return 0;
	case THINKING_MODIFIED:
		return request_refuse(
			r, "thinking_modified",
			"messages.%zu.content.%zu: `thinking` or `redacted_thinking` blocks in "
			"the latest assistant message cannot be modified. These blocks must "
			"remain as they were in the original response.",
			m, index);
	case THINKING_OTHER_PREFIX:
		if (drop_block(r, index))
			return 1;
		return request_refuse(
			r, "thinking_prefix",
			"messages.%zu.content.%zu: Invalid `signature` in `thinking` block. The "
			"block is bound to a different conversation. The system prompt, the tools "
			"or an earlier message changed since the block was made.",
			m, index);
	default:
		return request_refuse(
			r, "thinking_signature",
			"messages.%zu.content.%zu: Invalid `signature` in `thinking` block", m,
			index);
	}
}

static int read_thinking(struct reader *rd, uint32_t block, size_t index, const char *path)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t text = doc_get(doc, block, "thinking"),
		 signature = doc_get(doc, block, "signature");
	struct part *part;
	uint64_t hash;
	int verdict = 0;

	if (doc_type(doc, text) != DOC_STRING)
		return request_refuse(r, "thinking", "%s.thinking.thinking: Field required", path);
	if (doc_type(doc, signature) != DOC_STRING && !r->policy->free_thinking)
		return request_refuse(r, "thinking", "%s.thinking.signature: Field required", path);
	hash = thinking_hash(doc->nodes[text].s, doc->nodes[text].len);
	if (!r->policy->free_thinking)
		verdict =
			check_signature(rd, index, &doc->nodes[text], &doc->nodes[signature], hash);
	if (verdict < 0)
		return -1;
	r->messages[r->n_messages - 1].thinking = true;
	if (verdict > 0)
		return 0;
	part = request_add_part(r, PART_THINKING);
	part->text = doc->nodes[text].s;
	part->len = doc->nodes[text].len;
	request_add_unit(r, hash_mix(7, hash), request_count(r, hash, part->text, part->len), 0);
	return 0;
}

static int read_other(struct reader *rd, uint32_t block, uint8_t ttl)
{
	struct request *r = rd->r;
	bool image = doc_is(&r->doc, doc_get(&r->doc, block, "type"), "image");
	int64_t tokens;
	uint64_t hash;

	request_add_part(r, image ? PART_IMAGE : PART_OTHER);
	if (image) {
		hash = add_image(r, block, &tokens);
	} else {
		hash = doc_hash(&r->doc, block, 8, "cache_control");
		tokens = request_count_node(r, block);
	}
	request_add_unit(r, hash, tokens, ttl);
	return 0;
}

static int check_block_type(struct reader *rd, uint32_t block, size_t index, enum speaker speaker)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t type = doc_get(doc, block, "type");
	size_t m = r->n_messages - 1;

	for (size_t i = 0; i < ARRAY_SIZE(block_types); i++) {
		const struct block_type *bt = &block_types[i];

		if (!doc_is(doc, type, bt->name))
			continue;
		if (!(speaker == SPEAKER_USER ? bt->user : bt->assistant))
			return request_refuse(
				r, "block_role",
				"messages.%zu: `%s` blocks can only be in `%s` messages", m,
				bt->name, bt->user ? "user" : "assistant");
		DOC_EACH_KEY(doc, block, key)
		{
			if (!in_list(doc, key, bt->fields, ARRAY_SIZE(bt->fields)))
				return request_refuse(r,
						      doc_is(doc, key, "cache_control")
							      ? "cache_control"
							      : "extra",
						      "messages.%zu.content.%zu.%s.%.*s: Extra "
						      "inputs are not permitted",
						      m, index, bt->name,
						      (int)MIN(doc->nodes[key].len, (size_t)60),
						      doc->nodes[key].s);
		}
		return 0;
	}
	return request_refuse(
		r, "block_type",
		"messages.%zu.content.%zu: Input tag '%.*s' found using 'type' does not match any "
		"of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', "
		"'text', 'thinking', 'tool_result', 'tool_use'",
		m, index, (int)MIN(doc->nodes[type].len, (size_t)60),
		doc->nodes[type].s ? doc->nodes[type].s : "");
}

static int read_block(struct reader *rd, uint32_t block, size_t index, enum speaker speaker)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t type = doc_get(doc, block, "type");
	char path[64];
	uint8_t ttl;

	snprintf(path, sizeof(path), "messages.%zu.content.%zu", r->n_messages - 1, index);
	if (doc_type(doc, block) != DOC_OBJECT)
		return request_refuse(r, "content", "%s: Input should be a valid dictionary", path);
	if (check_block_type(rd, block, index, speaker) < 0)
		return -1;
	if (doc_is(doc, type, "text") && check_text(rd, block, "messages", path) < 0)
		return -1;
	if (read_marker(rd, block, path, &ttl) < 0)
		return -1;
	if (doc_is(doc, type, "text")) {
		add_text(r, &doc->nodes[doc_get(doc, block, "text")], ttl);
		return 0;
	}
	if (doc_is(doc, type, "tool_use"))
		return read_call(rd, block, path, ttl);
	if (doc_is(doc, type, "tool_result"))
		return read_result(rd, block, path, ttl);
	if (doc_is(doc, type, "thinking"))
		return read_thinking(rd, block, index, path);
	if (doc_is(doc, type, "redacted_thinking"))
		r->messages[r->n_messages - 1].thinking = true;
	return read_other(rd, block, ttl);
}

static int read_string_content(struct reader *rd, uint32_t content)
{
	struct request *r = rd->r;
	const struct doc_node *node = &r->doc.nodes[content];

	if (!node->len)
		return request_refuse(r, "empty_text",
				      "messages.%zu: user messages must have non-empty content",
				      r->n_messages - 1);
	if (is_blank(node->s, node->len))
		return request_refuse(
			r, "empty_text",
			"messages: text content blocks must contain non-whitespace text");
	add_text(r, node, 0);
	return 0;
}

/* In a tool loop thinking comes back first (wire.md 1.6 no. 1): the call's id knows that it was
 * sent. */
static int check_thinking_kept(struct request *r, const struct req_message *m)
{
	if (m->thinking || !r->thinking_on || r->policy->free_thinking)
		return 0;
	for (uint32_t i = m->first; i < m->first + m->count; i++) {
		const struct part *part = &r->parts[i];

		if (part->kind == PART_CALL && call_id_reasoning(part->id, part->id_len))
			return request_refuse(r, "thinking_missing",
					      "messages.%zu.content.0.type: Expected `thinking` or "
					      "`redacted_thinking`, but "
					      "found `%s`. When `thinking` is enabled, a final "
					      "`assistant` message must start "
					      "with a thinking block (preceeding the lastmost set "
					      "of `tool_use` and "
					      "`tool_result` blocks).",
					      (size_t)(m - r->messages),
					      r->parts[m->first].kind == PART_TEXT ? "text"
										   : "tool_use");
	}
	return 0;
}

static int read_message(struct reader *rd, uint32_t message, bool last)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t role = doc_get(doc, message, "role"), content = doc_get(doc, message, "content");
	bool user = doc_is(doc, role, "user");
	size_t i = r->n_messages, block_index = 0;

	if (!user && !doc_is(doc, role, "assistant"))
		return request_refuse(
			r, "role", "messages.%zu.role: Input should be 'user' or 'assistant'", i);
	if (i && r->policy->strict_roles && (r->messages[i - 1].speaker == SPEAKER_USER) == user)
		return request_refuse(
			r, "role",
			"messages: roles must alternate between \"user\" and \"assistant\", but "
			"found multiple \"%s\" roles in a row",
			user ? "user" : "assistant");
	request_add_message(r, user ? SPEAKER_USER : SPEAKER_ASSISTANT);
	if (doc_type(doc, content) == DOC_STRING) {
		if (read_string_content(rd, content) < 0)
			return -1;
	} else if (doc_type(doc, content) != DOC_ARRAY) {
		return request_refuse(r, "content", "messages.%zu.content: Field required", i);
	} else if (!doc->nodes[content].count) {
		return request_refuse(
			r, "empty_content",
			"messages.%zu: all messages must have non-empty content except for the "
			"optional final assistant message",
			i);
	} else {
		DOC_EACH(doc, content, block)
		if (read_block(rd, block, block_index++, user ? SPEAKER_USER : SPEAKER_ASSISTANT) <
		    0)
			return -1;
	}
	request_end_message(r);
	if (!user && last)
		return request_refuse(
			r, "prefill",
			"This model does not support assistant message prefill. The conversation "
			"must end with a user message.");
	return 0;
}

/* The calls of message m that message m + 1 leaves without a result, as a list for the message. */
static int check_calls_answered(struct request *r, size_t m)
{
	const struct req_message *from = &r->messages[m];
	const struct req_message *to = m + 1 < r->n_messages ? &r->messages[m + 1] : NULL;
	char missing[300] = "";
	size_t at = 0;

	for (uint32_t c = from->first; c < from->first + from->count; c++) {
		const struct part *call = &r->parts[c];
		bool found = false;

		if (call->kind != PART_CALL)
			continue;
		/* Results stand first: what follows another block does not count (wire.md 1.5). */
		for (uint32_t i = 0; to && i < to->count; i++) {
			const struct part *part = &r->parts[to->first + i];

			if (part->kind != PART_RESULT)
				break;
			if (part->id_len == call->id_len &&
			    memcmp(part->id, call->id, call->id_len) == 0)
				found = true;
		}
		if (!found && at < sizeof(missing) - 1)
			at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%.*s",
					       at ? ", " : "", (int)call->id_len, call->id);
	}
	if (!at)
		return 0;
	return request_refuse(
		r, "result_missing",
		"messages.%zu: `tool_use` ids were found without `tool_result` blocks immediately "
		"after: %s. Each `tool_use` block must have a corresponding `tool_result` block in "
		"the next message.",
		m, missing);
}

static int pair_results(struct request *r, size_t m)
{
	const struct req_message *message = &r->messages[m];

	for (uint32_t i = 0; i < message->count; i++) {
		struct part *part = &r->parts[message->first + i];

		if (part->kind != PART_RESULT)
			continue;
		if (m && r->messages[m - 1].speaker == SPEAKER_ASSISTANT)
			part->call = request_find_call(r, m - 1, part->id, part->id_len);
		if (part->call == NO_PART)
			return request_refuse(r, "result_orphan",
					      "messages.%zu.content.%" PRIu32
					      ": unexpected `tool_use_id` found in "
					      "`tool_result` blocks: %.*s. Each `tool_result` "
					      "block must have a corresponding "
					      "`tool_use` block in the previous message.",
					      m, i, (int)MIN(part->id_len, (size_t)80), part->id);
		for (uint32_t k = 0; k < i; k++)
			if (r->parts[message->first + k].kind == PART_RESULT &&
			    r->parts[message->first + k].call == part->call)
				return request_refuse(
					r, "result_twice",
					"messages.%zu.content.%" PRIu32
					": each tool_use must have a single "
					"result. Found multiple `tool_result` blocks with id: %.*s",
					m, i, (int)part->id_len, part->id);
	}
	return 0;
}

static int read_messages(struct reader *rd)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t messages = doc_get(doc, DOC_ROOT, "messages");
	uint32_t i = 0;

	if (doc_type(doc, messages) != DOC_ARRAY)
		return request_refuse(r, "messages", "messages: Field required");
	if (!doc->nodes[messages].count)
		return request_refuse(r, "messages", "messages: at least one message is required");
	DOC_EACH(doc, messages, message)
	if (read_message(rd, message, ++i == doc->nodes[messages].count) < 0)
		return -1;
	if (r->messages[0].speaker != SPEAKER_USER)
		return request_refuse(r, "role",
				      "messages: first message must use the \"user\" role");
	for (size_t m = 0; m < r->n_messages; m++)
		if (pair_results(r, m) < 0 || check_calls_answered(r, m) < 0)
			return -1;
	/* Only the assistant message of the loop that is open now must keep its thinking. */
	return r->tail ? check_thinking_kept(r, &r->messages[r->tail - 1]) : 0;
}

static int read_thinking_config(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t thinking = doc_get(doc, DOC_ROOT, "thinking");
	uint32_t binding = doc_get(doc, thinking, "block_binding");
	int64_t budget = doc_i64(doc, doc_get(doc, thinking, "budget_tokens"), 0);

	if (!thinking)
		return 0;
	r->params = doc_hash(doc, thinking, r->params, NULL);
	r->thinking_on = !doc_is(doc, doc_get(doc, thinking, "type"), "disabled");
	if (doc_is(doc, doc_get(doc, thinking, "type"), "enabled")) {
		if (budget < 1024)
			return request_refuse(
				r, "thinking",
				"thinking.enabled.budget_tokens: Input should be greater than or "
				"equal to 1024");
		if (r->max_tokens && budget >= r->max_tokens)
			return request_refuse(
				r, "thinking",
				"`max_tokens` must be greater than `thinking.budget_tokens`. "
				"Please "
				"consult our documentation at "
				"https://docs.claude.com/en/docs/build-with-claude/"
				"extended-thinking#max-tokens-and-context-window-size");
	}
	if (binding && !r->policy->drop_header)
		return request_refuse(r, "beta",
				      "thinking.block_binding: Extra inputs are not permitted");
	r->drop_mismatched =
		doc_is(doc, doc_get(doc, binding, "prefix_mismatch_behavior"), "drop_block");
	return 0;
}

static int read_tool_choice(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t choice = doc_get(doc, DOC_ROOT, "tool_choice"),
		 type = doc_get(doc, choice, "type");
	uint32_t thinking = doc_get(doc, doc_get(doc, DOC_ROOT, "thinking"), "type");

	if (!choice)
		return 0;
	r->params = doc_hash(doc, choice, r->params, NULL);
	if (!r->n_tools)
		return request_refuse(r, "tool_choice",
				      "tool_choice may only be specified while providing tools");
	r->tools_off = doc_is(doc, type, "none");
	r->one_call = doc_type(doc, doc_get(doc, choice, "disable_parallel_tool_use")) == DOC_TRUE;
	if (doc_is(doc, thinking, "enabled") &&
	    (doc_is(doc, type, "any") || doc_is(doc, type, "tool")))
		return request_refuse(
			r, "tool_choice",
			"Thinking may not be enabled when tool_choice forces tool use.");
	return 0;
}

static int read_fields(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t model = doc_get(doc, DOC_ROOT, "model"),
		 max = doc_get(doc, DOC_ROOT, "max_tokens");

	if (doc_type(doc, model) != DOC_STRING || !doc->nodes[model].len)
		return request_refuse(r, "model", "model: Field required");
	request_use_model(r, model);
	r->stream = doc_type(doc, doc_get(doc, DOC_ROOT, "stream")) == DOC_TRUE;
	if (!max && !r->policy->count_only)
		return request_refuse(r, "max_tokens", "max_tokens: Field required");
	r->max_tokens = doc_i64(doc, max, max ? -1 : 0);
	if (max && r->max_tokens < 1)
		return request_refuse(r, "max_tokens",
				      "max_tokens: Input should be greater than or equal to 1");
	if (r->policy->max_output && r->max_tokens > r->policy->max_output)
		return request_refuse(
			r, "max_tokens",
			"max_tokens: %" PRId64 " > %" PRId64
			", which is the maximum allowed number of output tokens for %.80s",
			r->max_tokens, r->policy->max_output, r->model);
	DOC_EACH_KEY(doc, DOC_ROOT, key)
	if (!in_list(doc, key, top_fields, ARRAY_SIZE(top_fields)))
		return request_refuse(r, "extra", "%.*s: Extra inputs are not permitted",
				      (int)MIN(doc->nodes[key].len, (size_t)80), doc->nodes[key].s);
	return 0;
}

int anthropic_read(struct request *r)
{
	struct reader rd = {.r = r};
	uint32_t automatic;

	r->params = HASH_SEED;
	if (read_fields(r) < 0 || read_tools(&rd) < 0 || read_thinking_config(r) < 0 ||
	    read_tool_choice(r) < 0 || read_system(&rd) < 0 || read_messages(&rd) < 0)
		return -1;
	automatic = doc_get(&r->doc, DOC_ROOT, "cache_control");
	if (automatic && r->n_units && !r->units[r->n_units - 1].ttl_min) {
		r->units[r->n_units - 1].ttl_min = 5;
		r->n_markers++;
	}
	if (r->n_markers > 4)
		return request_refuse(
			r, "cache_control",
			"A maximum of 4 blocks with cache_control may be provided. Found %zu.",
			r->n_markers);
	return 0;
}
