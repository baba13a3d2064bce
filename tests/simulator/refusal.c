/*
 * refusal.c - the order of messages, by the providers' rules.
 */
#include "refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

static int refuse(struct refusal *ret, const char *rule, const char *fmt, ...)
{
	va_list ap;

	ret->rule = rule;
	va_start(ap, fmt);
	vsnprintf(ret->text, sizeof(ret->text), fmt, ap);
	va_end(ap);
	return -1;
}

static size_t count(const struct reading *r, const struct seen_message *m, enum seen_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_blocks; i++)
		n += r->blocks[m->first_block + i].kind == kind;
	return n;
}

/* How often this id stands among the blocks [from, to) of a kind. */
static size_t count_id(const struct reading *r, size_t from, size_t to, enum seen_kind kind,
		       uint64_t id)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		n += r->blocks[i].kind == kind && r->blocks[i].id == id;
	return n;
}

/* The calls of message i against the results in messages (i, last]. */
static int check_calls(const struct reading *r, size_t i, size_t last, struct refusal *ret)
{
	const struct seen_message *m = &r->list[i];
	size_t from = m->first_block + m->n_blocks, to = from;

	if (last > i)
		to = r->list[last].first_block + r->list[last].n_blocks;
	for (size_t k = m->first_block; k < from; k++) {
		if (r->blocks[k].kind != SEEN_CALL)
			continue;
		if (count_id(r, m->first_block, from, SEEN_CALL, r->blocks[k].id) != 1)
			return refuse(ret, "I2", "messages.%zu: `tool_use` ids must be unique", i);
		if (count_id(r, from, to, SEEN_RESULT, r->blocks[k].id) != 1)
			return refuse(ret, "I2",
				      "messages.%zu: `tool_use` ids were found without "
				      "`tool_result` blocks immediately after",
				      i);
	}
	for (size_t k = from; k < to; k++) {
		const struct seen_block *b = &r->blocks[k];

		if (b->kind == SEEN_RESULT &&
		    count_id(r, m->first_block, from, SEEN_CALL, b->id) != 1)
			return refuse(ret, "I2",
				      "messages.%zu: unexpected `tool_use_id` found in "
				      "`tool_result` blocks",
				      i + 1);
		if (b->kind == SEEN_RESULT && b->blank)
			return refuse(ret, "I2", "messages.%zu: an empty result", i + 1);
	}
	return 0;
}

/* ---- the Anthropic form ---- */

static int check_user(const struct reading *r, size_t i, struct refusal *ret)
{
	const struct seen_message *m = &r->list[i];
	bool other = false;

	if (!m->n_blocks)
		return refuse(ret, "I2", "messages.%zu: content is empty", i);
	for (size_t k = 0; k < m->n_blocks; k++) {
		enum seen_kind kind = r->blocks[m->first_block + k].kind;

		if (kind == SEEN_CALL || kind == SEEN_THINKING)
			return refuse(ret, "I2", "messages.%zu: a block of the other role", i);
		if (kind == SEEN_RESULT && other)
			return refuse(ret, "I2", "messages.%zu: results must come first", i);
		other |= kind != SEEN_RESULT;
	}
	if (count(r, m, SEEN_RESULT) && (!i || r->list[i - 1].role != ROLE_ASSISTANT))
		return refuse(ret, "I2", "messages.%zu: results that answer no message", i);
	return 0;
}

static int check_assistant(const struct reading *r, size_t i, const struct refusal_rules *rules,
			   struct refusal *ret)
{
	const struct seen_message *m = &r->list[i];
	bool last = i + 1 == r->n;

	if (!m->n_blocks)
		return refuse(ret, "I2", "messages.%zu: content is empty", i);
	if (!i)
		return refuse(ret, "I2", "messages.0: the first message must be the user's");
	if (r->list[i - 1].role == ROLE_ASSISTANT && !count(r, &r->list[i - 1], SEEN_OTHER))
		return refuse(ret, "I2", "messages.%zu: two answers in a row", i);
	if (last && !count(r, m, SEEN_OTHER))
		return refuse(ret, "I2", "messages.%zu: the conversation ends with an answer", i);
	for (size_t k = 0; rules->bound && k < m->n_blocks; k++) {
		const struct seen_block *b = &r->blocks[m->first_block + k];

		if (b->kind == SEEN_THINKING && b->signature != m->before)
			return refuse(ret, "W11",
				      "messages.%zu.content.%zu: Invalid `signature` in `thinking` "
				      "block. The block is bound to a different conversation.",
				      i, k);
	}
	if (!last && r->list[i + 1].role == ROLE_USER)
		return check_calls(r, i, i + 1, ret);
	return check_calls(r, i, i, ret);
}

/* ---- the OpenAI form ---- */

/* Tool messages stand right behind the answer whose calls they answer. */
static int check_tool(const struct reading *r, size_t i, struct refusal *ret)
{
	enum seen_role before = i ? r->list[i - 1].role : ROLE_USER;

	if (before != ROLE_TOOL &&
	    (before != ROLE_ASSISTANT || !count(r, &r->list[i - 1], SEEN_CALL)))
		return refuse(
			ret, "I2",
			"messages with role 'tool' must be a response to a preceeding message "
			"with 'tool_calls' (messages.[%zu].role)",
			i);
	return r->list[i].n_blocks == 1 ? 0 : refuse(ret, "I2", "messages.[%zu]: no content", i);
}

static int check_openai_assistant(const struct reading *r, size_t i,
				  const struct refusal_rules *rules, struct refusal *ret)
{
	size_t last = i;

	if (!r->list[i].n_blocks)
		return refuse(ret, "I2", "messages.[%zu]: neither content nor tool_calls", i);
	if (i + 1 == r->n)
		return refuse(ret, "I2", "messages.[%zu]: the conversation ends with an answer", i);
	if (rules->reasoning && count(r, &r->list[i], SEEN_CALL) && !r->list[i].reasoning)
		return refuse(ret, "I2", "Missing `reasoning_content` field at message index %zu",
			      i);
	while (last + 1 < r->n && r->list[last + 1].role == ROLE_TOOL)
		last++;
	return check_calls(r, i, last, ret);
}

static int check_openai(const struct reading *r, size_t i, const struct refusal_rules *rules,
			struct refusal *ret)
{
	const struct seen_message *m = &r->list[i];

	switch (m->role) {
	case ROLE_SYSTEM:
		return i ? refuse(ret, "I2", "messages.[%zu]: system in the middle", i) : 0;
	case ROLE_TOOL: return check_tool(r, i, ret);
	case ROLE_ASSISTANT: return check_openai_assistant(r, i, rules, ret);
	case ROLE_USER: break;
	}
	return m->n_blocks ? 0 : refuse(ret, "I2", "messages.[%zu]: no content", i);
}

static int check_anthropic(const struct reading *r, size_t i, const struct refusal_rules *rules,
			   struct refusal *ret)
{
	switch (r->list[i].role) {
	case ROLE_USER: return check_user(r, i, ret);
	case ROLE_ASSISTANT: return check_assistant(r, i, rules, ret);
	default: return refuse(ret, "I2", "messages.%zu: an unknown role", i);
	}
}

int refusal_check(const struct reading *r, size_t from, const struct refusal_rules *rules,
		  struct refusal *ret)
{
	if (!r->n)
		return refuse(ret, "I2", "messages: at least one message is required");
	if (r->marks > 4)
		return refuse(
			ret, "H17",
			"A maximum of 4 blocks with cache_control may be provided. Found %zu.",
			r->marks);
	if (r->max_tokens < 1)
		return refuse(ret, "W12", "max_tokens: must be at least 1, got %lld",
			      (long long)r->max_tokens);
	/* The end of what passed before is looked at again: what follows it is new. */
	while (from && from < r->n && r->list[from].role != ROLE_ASSISTANT)
		from--;
	for (size_t i = MIN(from, r->n - 1); i < r->n; i++) {
		int rc = r->api == MODEL_API_ANTHROPIC ? check_anthropic(r, i, rules, ret)
						       : check_openai(r, i, rules, ret);
		if (rc < 0)
			return rc;
	}
	return 0;
}
