/*
 * request_blocks.c - reads and checks the blocks of an Anthropic message (wire.md 1.5 to 1.7).
 *
 * Each block becomes a part for the matcher and a unit for the prefix cache. The markers of caching
 * are kept out of the fingerprints: they move from request to request over a prefix that stays.
 */
#include "rehearsal/request_blocks.h"

#include <stdio.h>

#include "rehearsal/hash.h"
#include "rehearsal/thinking.h"

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

bool block_is_blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != ' ' && s[i] != '\n' && s[i] != '\t' && s[i] != '\r')
			return false;
	return true;
}

bool block_is_name(const struct doc_node *node, size_t max)
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
int block_read_marker(struct block_reader *rd, uint32_t block, const char *path, uint8_t *ret)
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
int block_check_text(struct block_reader *rd, uint32_t block, const char *where, const char *path)
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
	if (block_is_blank(doc->nodes[text].s, doc->nodes[text].len))
		return request_refuse(rd->r, "empty_text",
				      "%s: text content blocks must contain non-whitespace text",
				      where);
	return 0;
}

bool block_key_in(const struct doc *doc, uint32_t key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n && list[i]; i++)
		if (doc_is(doc, key, list[i]))
			return true;
	return false;
}

static void add_text(struct request *r, const struct doc_node *node, uint8_t ttl)
{
	struct part *part = request_add_part(r, PART_TEXT);
	uint64_t hash = hash_bytes(3, node->s, node->len);

	part->text = node->s;
	part->len = node->len;
	request_add_unit(r, hash, request_count(r, hash, node->s, node->len), ttl);
}

void block_add_text(struct request *r, const struct doc_node *text)
{
	add_text(r, text, 0);
}

/* Ids are unique over the whole conversation, or two results could not be told apart. */
static int read_call(struct block_reader *rd, uint32_t block, const char *path, uint8_t ttl)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, block, "id"), name = doc_get(doc, block, "name");
	uint32_t input = doc_get(doc, block, "input");
	struct part *part;
	uint64_t hash;

	if (!block_is_name(&doc->nodes[id], 200))
		return request_refuse(
			r, "tool_use",
			"%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", path);
	if (!block_is_name(&doc->nodes[name], 200))
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

/* Pictures are counted by their pixels, never by their base64 (W6). */
static uint64_t add_image(struct request *r, uint32_t block, int64_t *tokens)
{
	uint32_t data = doc_get(&r->doc, doc_get(&r->doc, block, "source"), "data");
	const struct doc_node *node = &r->doc.nodes[data];

	*tokens = node->type == DOC_STRING ? tokens_of_image(node->s, node->len) : 1600;
	return doc_hash(&r->doc, block, 5, "cache_control");
}

/* A result's blocks: the texts are joined for the matcher, pictures are counted. */
static int read_result_blocks(struct block_reader *rd, uint32_t content, struct part *part,
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
		if (block_check_text(rd, block, "messages", "messages") < 0)
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

/* An empty result is allowed, an absent one too: many commands say nothing. */
static int read_result(struct block_reader *rd, uint32_t block, const char *path, uint8_t ttl)
{
	struct request *r = rd->r;
	const struct doc *doc = &r->doc;
	uint32_t id = doc_get(doc, block, "tool_use_id"), content = doc_get(doc, block, "content");
	enum doc_type error_type = doc_type(doc, doc_get(doc, block, "is_error"));
	struct part *part;
	uint64_t hash;
	int64_t tokens = TOKENS_RESULT;

	if (!block_is_name(&doc->nodes[id], 200))
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

/* Remembered for the answer, which must list what was dropped. */
static bool drop_block(struct request *r, size_t index)
{
	if (!r->drop_mismatched)
		return false;
	MEM_GROW(r->dropped, r->cap_dropped, r->n_dropped + 1);
	r->dropped[r->n_dropped].message = r->n_messages - 1;
	r->dropped[r->n_dropped++].block = index;
	return true;
}

static int check_signature(struct block_reader *rd, size_t index, const struct doc_node *text,
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

/* The signature tells whether the text is the one that was sent, and before what it stood. A
 * dropped block is neither counted nor part of the prefix. */
static int read_thinking(struct block_reader *rd, uint32_t block, size_t index, const char *path)
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

/* Pictures, documents, redacted thinking, compaction: counted and kept in the prefix, never looked
 * into. */
static int read_other(struct block_reader *rd, uint32_t block, uint8_t ttl)
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

/* Who may send it and with which members, from the table above. */
static int check_block_type(struct block_reader *rd, uint32_t block, size_t index,
			    enum speaker speaker)
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
			if (!block_key_in(doc, key, bt->fields, ARRAY_SIZE(bt->fields)))
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

int block_read(struct block_reader *rd, uint32_t block, size_t index, enum speaker speaker)
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
	if (doc_is(doc, type, "text") && block_check_text(rd, block, "messages", path) < 0)
		return -1;
	if (block_read_marker(rd, block, path, &ttl) < 0)
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
