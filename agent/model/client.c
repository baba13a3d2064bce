/*
 * client.c - what both model clients share: the head, rendering once, and the request as a
 * concatenation.
 *
 * A request of 600 KB is head, messages, tail: a few copies, no parsing and no escaping. What costs
 * time, escaping text into JSON, happens once per message when it is first sent.
 */
#include "agent/model/client.h"

#include "agent/model/arguments.h"
#include "agent/model/render.h"
#include "base/memory.h"

#define THINKING_BETA "thinking-binding-controls-2026-08-01"
#define EDITS_BETA    "context-management-2025-06-27"

const char *stop_reason_name(enum stop_reason reason)
{
	static const char *const names[] = {
		[STOP_NONE] = "none",	      [STOP_END] = "end",
		[STOP_TOOL_USE] = "tool_use", [STOP_MAX_TOKENS] = "max_tokens",
		[STOP_WINDOW] = "window",     [STOP_REFUSAL] = "refusal",
		[STOP_PAUSE] = "pause",	      [STOP_ERROR] = "error",
	};
	return (size_t)reason < ARRAY_SIZE(names) ? names[reason] : "unknown";
}

/* --- helpers of the renderers --- */

bool render_is_own(const struct model_client *c, const struct message *m)
{
	return m->provider && strcmp(m->provider, c->model->provider) == 0;
}

static bool is_name_char(char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
	       ch == '_' || ch == '-';
}

void render_tool_name(struct buf *out, const char *name)
{
	size_t n = name ? strnlen(name, 64) : 0;
	if (n == 0)
		buf_adds(out, "unnamed");
	for (size_t i = 0; i < n; i++)
		buf_addc(out, is_name_char(name[i]) ? name[i] : '_');
}

void render_arguments(struct buf *out, const struct block *call)
{
	if (!arguments_normalise(out, call->text, call->text_len))
		buf_adds(out, "{}");
}

static bool is_listed(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

void render_members(struct buf *out, const char *raw, const char *const *skip)
{
	AUTO_JSON struct json_object *extra = NULL;
	if (!raw || json_parse(raw, strlen(raw), &extra, NULL) < 0 ||
	    !json_object_is_type(extra, json_type_object))
		return;
	json_object_object_foreach (extra, key, value) {
		if (is_listed(skip, key))
			continue;
		buf_addc(out, ',');
		json_write_cstr(out, key);
		buf_addc(out, ':');
		json_write(out, value);
	}
}

int render_schema(struct buf *out, const struct tool_spec *tool, struct err *err)
{
	AUTO_JSON struct json_object *schema = NULL;
	if (!tool->schema) {
		buf_adds(out, "{\"type\":\"object\",\"properties\":{}}");
		return 0;
	}
	if (json_parse(tool->schema, strlen(tool->schema), &schema, err) < 0)
		return err_prefix(err, "schema of tool '%s'", tool->name);
	if (!json_object_is_type(schema, json_type_object))
		return err_set(err, ERR_INVALID, "the schema of tool '%s' is no object",
			       tool->name);
	json_write(out, schema);
	return 0;
}

bool render_is_image_of(const struct block *image, const struct block *result)
{
	return image->kind == BLOCK_IMAGE && image->id && result->id &&
	       strcmp(image->id, result->id) == 0;
}

void render_result_text(struct buf *out, const struct block *result, size_t omitted_images)
{
	AUTO_BUF struct buf text = BUF_INIT;
	if (!message_text_is_blank(result->text, result->text_len))
		buf_add(&text, result->text, result->text_len);
	for (size_t i = 0; i < omitted_images; i++)
		buf_adds(&text, text.len ? "\n" IMAGE_OMITTED : IMAGE_OMITTED);
	if (text.len == 0)
		buf_adds(&text, "(no output)");
	json_write_string(out, text.data, text.len);
}

/* --- client --- */

/* A bad name is our own mistake or an MCP server's; the provider would refuse every request. */
static int check_params(const struct request_params *params, struct err *err)
{
	for (size_t i = 0; i < params->n_tools; i++) {
		const char *name = params->tools[i].name;
		size_t n = 0;
		while (name && is_name_char(name[n]))
			n++;
		if (n == 0 || n > 64 || name[n])
			return err_set(err, ERR_INVALID,
				       "tool name '%s' is not 1 to 64 of [A-Za-z0-9_-]",
				       name ? name : "");
	}
	return 0;
}

int client_new(const struct model *model, const struct request_params *params,
	       struct model_client **ret, struct err *err)
{
	const struct dialect *dialect = NULL;
	if (dialect_find(model->dialect, model->api, &dialect, err) < 0 ||
	    check_params(params, err) < 0)
		return -1;
	struct model_client *c = mem_alloc(sizeof(*c));
	c->model = model;
	c->dialect = dialect;
	c->ops = model->api == MODEL_API_ANTHROPIC ? &anthropic_render : &openai_render;
	c->has_tools = params->n_tools > 0;
	c->effort = mem_strdup(params->effort);
	c->thinking_budget = params->thinking_budget;
	/* Decided once: a parameter that changes within a conversation breaks the cached prefix. */
	c->temperature = model->temperature_ok ? params->temperature : -1;
	if (params->edits_trigger > 0 && model->context_edits && dialect->betas)
		anthropic_write_edits(params, &c->edits);
	if (c->ops->head(c, params, &c->head, err) < 0) {
		client_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void client_free(struct model_client *c)
{
	if (!c)
		return;
	buf_release(&c->head);
	buf_release(&c->edits);
	free(c->effort);
	free(c);
}

void client_render_message(struct model_client *c, struct message *m)
{
	if (m->rendered)
		return;
	AUTO_BUF struct buf out = BUF_INIT;
	m->splice = (size_t)-1;
	if (!message_is_blank(m))
		c->ops->message(c, m, &out, &m->splice);
	/* "" and not NULL for what is left out: it has been rendered, and to nothing. */
	m->rendered_len = out.len;
	m->rendered = out.len ? buf_take(&out) : mem_strdup("");
	/* It lives as long as the conversation does: without the room that the buffer grew by (X14). */
	m->rendered = mem_array(m->rendered, m->rendered_len + 1, 1);
}

bool client_drop_edits(struct model_client *c)
{
	bool sent = c->edits.len > 0;

	buf_release(&c->edits);
	return sent;
}

/* --- requests --- */

/* A marker is inserted while copying: the message's own bytes never hold one (I4). */
static int copy_message(const struct message *m, size_t index, const struct cache_mark *marks,
			size_t n_marks, struct buf *out)
{
	size_t from = 0;
	for (size_t i = 0; i < n_marks; i++) {
		if (marks[i].message != index)
			continue;
		if (buf_add(out, m->rendered + from, marks[i].offset - from) < 0 ||
		    buf_adds(out, CACHE_MARK) < 0)
			return -1;
		from = marks[i].offset;
	}
	return buf_add(out, m->rendered + from, m->rendered_len - from);
}

/* The only place where neighbours matter: some servers want an assistant's word between a tool's
 * and a user's. It depends on the two messages alone, so the prefix still holds. */
static int copy_messages(struct model_client *c, struct message *const *view, size_t n,
			 const struct cache_mark *marks, size_t n_marks, struct buf *out)
{
	const struct message *before = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct message *m = view[i];
		if (m->rendered_len == 0)
			continue;
		if ((before || c->head_has_message) && buf_addc(out, ',') < 0)
			return -1;
		if (c->dialect->assistant_after_tool && before && openai_ends_with_tool(before) &&
		    openai_starts_with_user(m) && buf_adds(out, OPENAI_BRIDGE ",") < 0)
			return -1;
		if (copy_message(m, i, marks, n_marks, out) < 0)
			return -1;
		before = m;
	}
	return 0;
}

/* Renders what is new and adds up the bytes; 0 if nothing is to be sent. */
static size_t render_view(struct model_client *c, struct message *const *view, size_t n)
{
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		client_render_message(c, view[i]);
		bytes += view[i]->rendered_len;
	}
	return bytes;
}

/* The value of the anthropic-beta header. */
static const char *betas_of(const struct model_client *c)
{
	bool thinking = c->model->preserved_thinking && c->dialect->betas;

	if (c->edits.len)
		return thinking ? THINKING_BETA "," EDITS_BETA : EDITS_BETA;
	return thinking ? THINKING_BETA : NULL;
}

int client_render_request(struct model_client *c, struct message *const *view, size_t n_view,
			  int64_t max_tokens, long pinned, struct buf *out, const char **ret_beta,
			  struct err *err)
{
	struct cache_mark marks[2];
	size_t n_marks = 0;
	if (max_tokens < 1)
		return err_set(err, ERR_INVALID, "no room for an answer: max_tokens is %lld",
			       (long long)max_tokens);
	/* Rendering is normally done when a message is appended; a resumed conversation is rendered
	 * here with its first request. */
	size_t bytes = render_view(c, view, n_view);
	if (bytes == 0)
		return err_set(err, ERR_INVALID, "the request has no message");
	if (c->model->cache == CACHE_EXPLICIT)
		n_marks = cache_marks_place(c, view, n_view, pinned, marks);
	if (buf_reserve(out, c->head.len + c->edits.len + bytes + n_view + 1024) < 0 ||
	    buf_add(out, c->head.data, c->head.len) < 0 ||
	    copy_messages(c, view, n_view, marks, n_marks, out) < 0)
		return err_set(err, ERR_TOO_LARGE, "the request exceeds %zu bytes", out->max);
	c->ops->tail(c, max_tokens, out);
	if (out->overflow)
		return err_set(err, ERR_TOO_LARGE, "the request exceeds %zu bytes", out->max);
	*ret_beta = betas_of(c);
	return 0;
}
