/*
 * anthropic_render.c - requests in the form of the Anthropic Messages API (wire.md 1).
 *
 * Cache markers of tools and system prompt stand in the head for good; those of the messages are
 * spliced in by client.c. Blocks of the model's own thinking are copied as they came, or left out
 * whole: anything in between is a 400 for ever (wire.md 1.6).
 */
#include "agent/model/render.h"

#include "base/memory.h"

/* --- head --- */

static int write_tools(const struct model_client *c, const struct request_params *params,
		       const char *mark, struct buf *out, struct err *err)
{
	if (params->n_tools == 0) {
		if (c->dialect->tools_always)
			buf_adds(out, ",\"tools\":[]");
		return 0;
	}
	buf_adds(out, ",\"tools\":[");
	for (size_t i = 0; i < params->n_tools; i++) {
		const struct tool_spec *tool = &params->tools[i];
		buf_adds(out, i ? ",{\"name\":" : "{\"name\":");
		json_write_cstr(out, tool->name);
		buf_adds(out, ",\"description\":");
		json_write_cstr(out, tool->description ? tool->description : "");
		buf_adds(out, ",\"input_schema\":");
		if (render_schema(out, tool, err) < 0)
			return -1;
		if (i + 1 == params->n_tools)
			buf_adds(out, mark);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
	return 0;
}

static int render_head(struct model_client *c, const struct request_params *params, struct buf *out,
		       struct err *err)
{
	const char *mark = "";
	if (c->model->cache == CACHE_EXPLICIT)
		mark = params->cache_1h ? CACHE_MARK_1H : CACHE_MARK;
	buf_adds(out, "{\"model\":");
	json_write_cstr(out, c->model->name);
	if (write_tools(c, params, mark, out, err) < 0)
		return -1;
	if (params->system && !message_text_is_blank(params->system, strlen(params->system))) {
		buf_adds(out, ",\"system\":[{\"type\":\"text\",\"text\":");
		json_write_cstr(out, params->system);
		buf_adds(out, mark);
		buf_adds(out, "}]");
	}
	buf_adds(out, ",\"messages\":[");
	return 0;
}

/* --- messages --- */

/* The content list of one message while it grows. */
struct content {
	const struct model_client *client;
	struct buf *out;
	size_t count;
	size_t splice; /* before the closing brace of the last cacheable block */
};

static void begin_block(struct content *ct, const char *start)
{
	if (ct->count++)
		buf_addc(ct->out, ',');
	buf_adds(ct->out, start);
}

static void end_block(struct content *ct)
{
	ct->splice = ct->out->len;
	buf_addc(ct->out, '}');
}

static void add_text(struct content *ct, const char *text, size_t n)
{
	begin_block(ct, "{\"type\":\"text\",\"text\":");
	json_write_string(ct->out, text, n);
	end_block(ct);
}

static void write_source(const struct block *b, struct buf *out)
{
	buf_adds(out, ",\"source\":{\"type\":\"base64\",\"media_type\":");
	json_write_cstr(out, b->name);
	buf_adds(out, ",\"data\":");
	json_write_string(out, b->text, b->text_len);
	buf_addc(out, '}');
}

static void add_image(struct content *ct, const struct block *b)
{
	if (!ct->client->model->images) {
		add_text(ct, IMAGE_OMITTED, strlen(IMAGE_OMITTED));
		return;
	}
	begin_block(ct, "{\"type\":\"image\"");
	write_source(b, ct->out);
	end_block(ct);
}

static void add_call(struct content *ct, const struct block *b, bool own)
{
	static const char *const skip[] = {"type", "id", "name", "input", "cache_control", NULL};
	begin_block(ct, "{\"type\":\"tool_use\",\"id\":\"");
	dialect_write_id(ct->client->dialect, b->id, ct->out);
	buf_adds(ct->out, "\",\"name\":\"");
	render_tool_name(ct->out, b->name);
	buf_adds(ct->out, "\",\"input\":");
	render_arguments(ct->out, b);
	if (own && !ct->client->dialect->no_extra)
		render_members(ct->out, b->raw, skip);
	end_block(ct);
}

static void add_raw(struct content *ct, const struct block *b)
{
	/* A list is the reasoning of the other API; a cut block has no valid signature. */
	if (!b->raw || b->raw[0] != '{' || b->partial)
		return;
	begin_block(ct, b->raw);
}

/* The images behind a result belong to it and stand in its content list. */
static size_t add_result(struct content *ct, const struct message *m, size_t i)
{
	const struct block *b = &m->blocks[i];
	size_t images = 0;
	while (i + images + 1 < m->n_blocks && render_is_image_of(&m->blocks[i + images + 1], b))
		images++;
	begin_block(ct, "{\"type\":\"tool_result\",\"tool_use_id\":\"");
	dialect_write_id(ct->client->dialect, b->id, ct->out);
	buf_adds(ct->out, "\",\"content\":");
	if (images == 0 || !ct->client->model->images) {
		render_result_text(ct->out, b, images);
	} else {
		buf_adds(ct->out, "[{\"type\":\"text\",\"text\":");
		render_result_text(ct->out, b, 0);
		for (size_t k = 1; k <= images; k++) {
			buf_adds(ct->out, "},{\"type\":\"image\"");
			write_source(&m->blocks[i + k], ct->out);
		}
		buf_adds(ct->out, "}]");
	}
	if (b->is_error)
		buf_adds(ct->out, ",\"is_error\":true");
	end_block(ct);
	return images;
}

/* Results first, other content behind them, nothing in between (wire.md 1.5). */
static void add_user(struct content *ct, const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_RESULT)
			i += add_result(ct, m, i);
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];
		if (b->kind == BLOCK_TEXT)
			add_text(ct, b->text, b->text_len);
		else if (b->kind == BLOCK_IMAGE && !b->id)
			add_image(ct, b);
	}
}

static void add_assistant(struct content *ct, const struct message *m)
{
	/* Order is kept: calls, texts and thinking may alternate, and signatures cover the order.
	 */
	bool own = render_is_own(ct->client, m);
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];
		if (b->kind == BLOCK_TEXT)
			add_text(ct, b->text, b->text_len);
		else if (b->kind == BLOCK_TOOL_CALL)
			add_call(ct, b, own);
		else if (own && (b->kind == BLOCK_THINKING || b->kind == BLOCK_OPAQUE))
			add_raw(ct, b);
	}
}

static void render_message(const struct model_client *c, const struct message *m, struct buf *out,
			   size_t *splice)
{
	struct content ct = {.client = c, .out = out, .splice = (size_t)-1};
	bool user = m->role == MESSAGE_USER;
	buf_addf(out, "{\"role\":\"%s\",\"content\":[", user ? "user" : "assistant");
	if (user)
		add_user(&ct, m);
	else
		add_assistant(&ct, m);
	buf_adds(out, "]}");
	/* All of it was opaque and another provider's, or cut. */
	if (ct.count == 0)
		buf_clear(out);
	*splice = ct.splice;
}

/* --- tail --- */

enum { THINKING_MIN = 1024 };

/* The budget is a part of max_tokens (W9) and leaves room for an answer. */
static bool write_thinking(const struct model_client *c, int64_t max_tokens, struct buf *out)
{
	int64_t budget = MIN(c->thinking_budget, max_tokens - THINKING_MIN);
	switch (c->model->reasoning) {
	case REASONING_NONE: return false;
	case REASONING_BUDGET:
		if (budget < THINKING_MIN)
			return false;
		buf_addf(out, ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%lld",
			 (long long)budget);
		break;
	case REASONING_EFFORT:
	case REASONING_ALWAYS: buf_adds(out, ",\"thinking\":{\"type\":\"adaptive\""); break;
	}
	/* After an epoch's end thinking of the old prefix is dropped and not a 400 (W11, trap 46).
	 */
	if (c->model->preserved_thinking && c->dialect->betas)
		buf_adds(out, ",\"block_binding\":{\"prefix_mismatch_behavior\":\"drop_block\"}");
	buf_addc(out, '}');
	return true;
}

void anthropic_write_edits(const struct request_params *params, struct buf *out)
{
	buf_addf(
		out,
		",\"context_management\":{\"edits\":[{\"type\":\"clear_tool_uses_20250919\","
		"\"trigger\":{\"type\":\"input_tokens\",\"value\":%lld},"
		"\"keep\":{\"type\":\"tool_uses\",\"value\":%lld},"
		"\"clear_at_least\":{\"type\":\"input_tokens\",\"value\":%lld},\"exclude_tools\":[",
		(long long)params->edits_trigger, (long long)params->edits_keep,
		(long long)params->edits_least);
	for (size_t i = 0; params->edits_exclude && params->edits_exclude[i]; i++) {
		if (i)
			buf_addc(out, ',');
		json_write_cstr(out, params->edits_exclude[i]);
	}
	buf_adds(out, "]}]}");
}

static void render_tail(const struct model_client *c, int64_t max_tokens, struct buf *out)
{
	buf_addf(out, "],\"max_tokens\":%lld,\"stream\":true", (long long)max_tokens);
	bool thinking = write_thinking(c, max_tokens, out);
	if (c->effort && c->dialect->effort == EFFORT_OUTPUT &&
	    (c->model->reasoning == REASONING_EFFORT || c->model->reasoning == REASONING_ALWAYS)) {
		buf_adds(out, ",\"output_config\":{\"effort\":");
		json_write_cstr(out, c->effort);
		buf_addc(out, '}');
	}
	/* With thinking on, any temperature but 1 is refused. */
	if (c->temperature >= 0 && !thinking)
		buf_addf(out, ",\"temperature\":%.3g", c->temperature);
	if (c->has_tools && !c->model->parallel_tools)
		buf_adds(out, ",\"tool_choice\":{\"type\":\"auto\","
			      "\"disable_parallel_tool_use\":true}");
	buf_add(out, c->edits.data, c->edits.len);
	buf_addc(out, '}');
}

const struct render_ops anthropic_render = {
	.head = render_head,
	.message = render_message,
	.tail = render_tail,
};
