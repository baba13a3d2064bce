/*
 * message.c - the neutral message: blocks in order, strings owned by their message.
 *
 * The record form keeps `raw` as a string and not as a tree: what a provider must get back is
 * compared by it byte for byte (wire.md 1.6), and a tree written again need not be those bytes.
 */
#include "agent/message.h"

#include "base/err.h"
#include "base/json.h"
#include "base/memory.h"

static const char *const kind_names[] = {
	[BLOCK_TEXT] = "text",		 [BLOCK_THINKING] = "thinking",
	[BLOCK_TOOL_CALL] = "tool_call", [BLOCK_TOOL_RESULT] = "tool_result",
	[BLOCK_IMAGE] = "image",	 [BLOCK_OPAQUE] = "opaque",
};

static const char *const origin_names[] = {
	[ORIGIN_MODEL] = "model",
	[ORIGIN_USER] = "user",
	[ORIGIN_TASK] = "task",
	[ORIGIN_INSTRUCTIONS] = "instructions",
	[ORIGIN_ENVIRONMENT] = "environment",
	[ORIGIN_TOOL] = "tool",
	[ORIGIN_NUDGE] = "nudge",
	[ORIGIN_SUMMARY] = "summary",
	[ORIGIN_ATTACHMENT] = "attachment",
	[ORIGIN_HOOK] = "hook",
	[ORIGIN_HANDOFF] = "handoff",
	[ORIGIN_MEMORY] = "memory",
	[ORIGIN_EVALUATOR] = "evaluator",
};

struct message *message_new(enum message_role role)
{
	struct message *m = mem_alloc(sizeof(*m));
	m->role = role;
	m->splice = (size_t)-1;
	return m;
}

void message_free(struct message *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_blocks; i++) {
		free(m->blocks[i].id);
		free(m->blocks[i].name);
		free(m->blocks[i].text);
		free(m->blocks[i].raw);
	}
	free(m->blocks);
	free(m->provider);
	free(m->model);
	free(m->rendered);
	free(m);
}

void message_forget_rendering(struct message *m)
{
	free(m->rendered);
	m->rendered = NULL;
	m->rendered_len = 0;
}

static struct block *add_block(struct message *m, enum block_kind kind, enum block_origin origin)
{
	/* Most messages have one block or two, and there are thousands of them (X14). */
	if (m->n_blocks == m->cap_blocks) {
		m->cap_blocks = m->cap_blocks ? m->cap_blocks * 2 : 1;
		m->blocks = mem_array(m->blocks, m->cap_blocks, sizeof(*m->blocks));
	}
	struct block *b = &m->blocks[m->n_blocks++];
	*b = (struct block){.kind = kind, .origin = origin};
	return b;
}

/* Counted, with a NUL behind it: NULs within are data, and a C string is at hand all the same. */
static void set_text(struct block *b, const char *text, size_t n)
{
	b->text = mem_strndup(text ? text : "", text ? n : 0);
	b->text_len = text ? n : 0;
}

/* Bytes of the white space character at s, 0 if it is none. Providers strip by Unicode's notion
 * before they ask whether a text is empty (trap 28), so ASCII blanks are not enough. */
static size_t space_len(const unsigned char *s, size_t n)
{
	if (s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r') || (s[0] >= 0x1c && s[0] <= 0x1f))
		return 1;
	if (n >= 2 && s[0] == 0xc2 && (s[1] == 0x85 || s[1] == 0xa0))
		return 2;
	if (n < 3)
		return 0;
	unsigned code = (unsigned)s[0] << 16 | (unsigned)s[1] << 8 | s[2];
	bool wide = code == 0xe19a80 || (code >= 0xe28080 && code <= 0xe2808a) ||
		    code == 0xe280a8 || code == 0xe280a9 || code == 0xe280af || code == 0xe2819f ||
		    code == 0xe38080;
	return wide ? 3 : 0;
}

bool message_text_is_blank(const char *text, size_t n)
{
	size_t i = 0;
	while (i < n) {
		size_t len = space_len((const unsigned char *)text + i, n - i);
		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

struct block *message_add_text(struct message *m, enum block_origin origin, const char *text,
			       size_t n)
{
	if (!text || message_text_is_blank(text, n))
		return NULL;
	struct block *b = add_block(m, BLOCK_TEXT, origin);
	set_text(b, text, n);
	return b;
}

struct block *message_add_thinking(struct message *m, const char *name, const char *text, size_t n,
				   const char *raw)
{
	struct block *b = add_block(m, BLOCK_THINKING, ORIGIN_MODEL);
	b->name = mem_strdup(name);
	set_text(b, text, n);
	b->raw = mem_strdup(raw);
	return b;
}

struct block *message_add_call(struct message *m, const char *id, const char *name,
			       const char *arguments, size_t n, const char *extra_raw)
{
	struct block *b = add_block(m, BLOCK_TOOL_CALL, ORIGIN_MODEL);
	b->id = mem_strdup(id);
	b->name = mem_strdup(name);
	set_text(b, arguments, n);
	b->raw = mem_strdup(extra_raw);
	return b;
}

struct block *message_add_result(struct message *m, const char *call_id, const char *tool,
				 const char *text, size_t n, bool is_error)
{
	struct block *b = add_block(m, BLOCK_TOOL_RESULT, ORIGIN_TOOL);
	b->id = mem_strdup(call_id);
	b->name = mem_strdup(tool);
	set_text(b, text, n);
	b->is_error = is_error;
	return b;
}

struct block *message_add_image(struct message *m, const char *call_id, const char *media_type,
				const char *base64, size_t n)
{
	struct block *b = add_block(m, BLOCK_IMAGE, call_id ? ORIGIN_TOOL : ORIGIN_USER);
	b->id = mem_strdup(call_id);
	b->name = mem_strdup(media_type);
	set_text(b, base64, n);
	return b;
}

struct block *message_add_opaque(struct message *m, const char *raw)
{
	struct block *b = add_block(m, BLOCK_OPAQUE, ORIGIN_MODEL);
	set_text(b, NULL, 0);
	b->raw = mem_strdup(raw);
	return b;
}

struct block *message_add_block(struct message *m, const struct block *block)
{
	struct block *b = add_block(m, block->kind, block->origin);

	b->id = mem_strdup(block->id);
	b->name = mem_strdup(block->name);
	if (block->text)
		set_text(b, block->text, block->text_len);
	b->raw = mem_strdup(block->raw);
	b->is_error = block->is_error;
	b->partial = block->partial;
	b->estimate = block->estimate;
	return b;
}

size_t message_count(const struct message *m, enum block_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n_blocks; i++)
		n += m->blocks[i].kind == kind;
	return n;
}

/* An opaque block is content: a paused server tool loop has nothing else, and must be sent back. */
bool message_is_blank(const struct message *m)
{
	return message_count(m, BLOCK_THINKING) == m->n_blocks;
}

/* --- the record form --- */

static struct json_object *block_to_json(const struct block *b)
{
	struct json_object *o = json_object_new_object();
	json_set_str(o, "kind", kind_names[b->kind]);
	json_set_str(o, "origin", origin_names[b->origin]);
	json_set_str(o, "id", b->id);
	json_set_str(o, "name", b->name);
	if (b->text_len)
		json_set_strn(o, "text", b->text, b->text_len);
	json_set_str(o, "raw", b->raw);
	if (b->is_error)
		json_set_bool(o, "is_error", true);
	if (b->partial)
		json_set_bool(o, "partial", true);
	return o;
}

/* What is absent is left out: most blocks of a transcript have three members. */
bool message_is_summary(const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].origin == ORIGIN_SUMMARY)
			return true;
	return false;
}

struct json_object *message_to_json(const struct message *m)
{
	struct json_object *o = json_object_new_object();
	struct json_object *blocks = json_object_new_array();
	json_set_str(o, "role", m->role == MESSAGE_USER ? "user" : "assistant");
	json_set_str(o, "provider", m->provider);
	json_set_str(o, "model", m->model);
	json_set_i64(o, "round", m->round);
	json_set(o, "uid", json_object_new_uint64(m->uid));
	for (size_t i = 0; i < m->n_blocks; i++)
		json_object_array_add(blocks, block_to_json(&m->blocks[i]));
	json_set(o, "blocks", blocks);
	return o;
}

static int find_name(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

/* What the kinds cannot do without; anything else in a block may be absent. */
static bool block_is_whole(const struct block *b)
{
	switch (b->kind) {
	case BLOCK_TOOL_CALL: return b->id && b->name;
	case BLOCK_TOOL_RESULT: return b->id != NULL;
	case BLOCK_IMAGE: return b->name && b->text_len;
	case BLOCK_OPAQUE: return b->raw != NULL;
	default: return true;
	}
}

static int block_from_json(struct message *m, struct json_object *o, struct err *err)
{
	const char *kind_name = NULL;
	if (json_need_str(o, "kind", &kind_name, err) < 0)
		return -1;
	int kind = find_name(kind_names, ARRAY_SIZE(kind_names), kind_name);
	if (kind < 0)
		return err_set(err, ERR_INVALID, "unknown block kind '%s'", kind_name);
	const char *origin_name = json_str(o, "origin", "model");
	int origin = find_name(origin_names, ARRAY_SIZE(origin_names), origin_name);
	if (origin < 0)
		return err_set(err, ERR_INVALID, "unknown block origin '%s'", origin_name);
	const char *text = json_str(o, "text", "");
	size_t n = json_str_len(o, "text");
	if (kind == BLOCK_TEXT && message_text_is_blank(text, n))
		return 0; /* must not come back by way of the disk (trap 28) */
	struct block *b = add_block(m, (enum block_kind)kind, (enum block_origin)origin);
	set_text(b, text, n);
	b->id = mem_strdup(json_str(o, "id", NULL));
	b->name = mem_strdup(json_str(o, "name", NULL));
	b->raw = mem_strdup(json_str(o, "raw", NULL));
	b->is_error = json_flag(o, "is_error", false);
	b->partial = json_flag(o, "partial", false);
	if (!block_is_whole(b))
		return err_set(err, ERR_INVALID, "a %s block lacks a field", kind_name);
	return 0;
}

int message_from_json(struct json_object *json, struct message **ret, struct err *err)
{
	const char *role = NULL;
	struct json_object *blocks = NULL;
	int64_t round = 0, uid = 0;
	if (json_need_str(json, "role", &role, err) < 0 ||
	    json_need_arr(json, "blocks", &blocks, err) < 0 ||
	    json_need_i64(json, "round", &round, err) < 0 ||
	    json_need_i64(json, "uid", &uid, err) < 0)
		return -1;
	if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0)
		return err_set(err, ERR_INVALID, "unknown role '%s'", role);
	struct message *m =
		message_new(strcmp(role, "user") == 0 ? MESSAGE_USER : MESSAGE_ASSISTANT);
	m->provider = mem_strdup(json_str(json, "provider", NULL));
	m->model = mem_strdup(json_str(json, "model", NULL));
	m->round = round;
	m->uid = (uint64_t)uid; /* counted from 1: 63 bits are enough */
	for (size_t i = 0; i < json_len(blocks); i++) {
		if (block_from_json(m, json_at(blocks, i), err) < 0) {
			message_free(m);
			return -1;
		}
	}
	*ret = m;
	return 0;
}
