/*
 * request_anthropic.c - reads and checks a Messages request as the API does (wire.md 1.1, 1.5
 * to 1.7).
 *
 * The texts are the provider's own where they are known, because clients classify by them. Order of
 * the checks: fields, tools, system, each message, pairing, markers; the first refusal is answered.
 * Consecutive messages of one role are accepted, as the API merges them, unless the scenario says
 * otherwise.
 */
#include "rehearsal/request_blocks.h"

#include <inttypes.h>
#include <stdio.h>

#include "rehearsal/hash.h"
#include "rehearsal/thinking.h"

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

/* Tools come first in the prefix, so they come first in the units (wire.md 1.7). */
static int read_tools(struct block_reader *rd)
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
		if (!block_is_name(&doc->nodes[name], 128))
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
		if (block_read_marker(rd, tool, path, &ttl) < 0)
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

/* A text and a list of one text block are the same prefix. */
static int read_system(struct block_reader *rd)
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
		if (block_check_text(rd, block, "system", path) < 0 ||
		    block_read_marker(rd, block, path, &ttl) < 0)
			return -1;
		add_system(rd->r, doc_get(doc, block, "text"), ttl);
	}
	request_end_message(rd->r);
	return 0;
}

static int read_string_content(struct block_reader *rd, uint32_t content)
{
	struct request *r = rd->r;
	const struct doc_node *node = &r->doc.nodes[content];

	if (!node->len)
		return request_refuse(r, "empty_text",
				      "messages.%zu: user messages must have non-empty content",
				      r->n_messages - 1);
	if (block_is_blank(node->s, node->len))
		return request_refuse(
			r, "empty_text",
			"messages: text content blocks must contain non-whitespace text");
	block_add_text(r, node);
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

/* A list of blocks, or one text that stands for a list of one. */
static int read_message(struct block_reader *rd, uint32_t message, bool last)
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
		if (block_read(rd, block, block_index++, user ? SPEAKER_USER : SPEAKER_ASSISTANT) <
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

/* Every result belongs to a call of the message right before it, and to one only (traps 20 to 24).
 */
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

static int read_messages(struct block_reader *rd)
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

/* A change of the thinking configuration invalidates cached messages, so it goes into params. */
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

/* The same holds for the choice of tools. */
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

/* Unknown members are refused as the API does: a client that relies on being ignored would break
 * later. */
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
	if (!block_key_in(doc, key, top_fields, ARRAY_SIZE(top_fields)))
		return request_refuse(r, "extra", "%.*s: Extra inputs are not permitted",
				      (int)MIN(doc->nodes[key].len, (size_t)80), doc->nodes[key].s);
	return 0;
}

/* The automatic marker of the whole request sits on its last block. */
int anthropic_read(struct request *r)
{
	struct block_reader rd = {.r = r};
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
	return request_read_edits(r);
}
