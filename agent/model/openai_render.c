/*
 * openai_render.c - requests in the form of OpenAI Chat Completions and its imitations (wire.md 2).
 *
 * One neutral message becomes several here: tool messages stand directly behind the assistant
 * message whose calls they answer, and what else the user message holds, with the images of tool
 * results, follows as one user message. Where servers differ, the dialect's row decides.
 */
#include "agent/model/render.h"

#include "base/memory.h"

/* --- head --- */

static int write_tools(const struct model_client *c, const struct request_params *params,
		       struct buf *out, struct err *err)
{
	if (params->n_tools == 0) {
		if (c->dialect->tools_always)
			buf_adds(out, ",\"tools\":[]");
		return 0;
	}
	buf_adds(out, ",\"tools\":[");
	for (size_t i = 0; i < params->n_tools; i++) {
		const struct tool_spec *tool = &params->tools[i];
		if (i)
			buf_addc(out, ',');
		buf_adds(out, "{\"type\":\"function\",\"function\":{\"name\":");
		json_write_cstr(out, tool->name);
		buf_adds(out, ",\"description\":");
		json_write_cstr(out, tool->description ? tool->description : "");
		buf_adds(out, ",\"parameters\":");
		if (render_schema(out, tool, err) < 0)
			return -1;
		buf_adds(out, "}}");
	}
	buf_addc(out, ']');
	return 0;
}

static int render_head(struct model_client *c, const struct request_params *params, struct buf *out,
		       struct err *err)
{
	buf_adds(out, "{\"model\":");
	json_write_cstr(out, c->model->name);
	if (write_tools(c, params, out, err) < 0)
		return -1;
	buf_adds(out, ",\"messages\":[");
	if (!params->system || message_text_is_blank(params->system, strlen(params->system)))
		return 0;
	/* The system prompt is the first message, but stands in the head: it never changes (W11).
	 */
	bool developer = c->model->system_role && !c->dialect->no_developer &&
			 strcmp(c->model->system_role, "developer") == 0;
	buf_addf(out, "{\"role\":\"%s\",\"content\":", developer ? "developer" : "system");
	json_write_cstr(out, params->system);
	buf_addc(out, '}');
	c->head_has_message = true;
	return 0;
}

/* --- user messages --- */

static void begin_message(struct buf *out, const char *start)
{
	if (out->len)
		buf_addc(out, ',');
	buf_adds(out, start);
}

static void add_tool_message(const struct model_client *c, const struct message *m, size_t i,
			     struct buf *out)
{
	const struct block *b = &m->blocks[i];
	size_t images = 0;
	while (i + images + 1 < m->n_blocks && render_is_image_of(&m->blocks[i + images + 1], b))
		images++;
	/* Images cannot stand in a tool message: they follow in the user message (add_parts). */
	begin_message(out, "{\"role\":\"tool\",\"tool_call_id\":");
	AUTO_BUF struct buf id = BUF_INIT;
	dialect_write_id(c->dialect, b->id, &id);
	json_write_string(out, id.data, id.len);
	if (c->dialect->tool_name) {
		buf_adds(out, ",\"name\":\"");
		render_tool_name(out, b->name);
		buf_addc(out, '"');
	}
	buf_adds(out, ",\"content\":");
	render_result_text(out, b, c->model->images ? 0 : images);
	buf_addc(out, '}');
}

static bool sends_image(const struct model_client *c, const struct block *b)
{
	return b->kind == BLOCK_IMAGE && c->model->images;
}

static void add_text_part(struct buf *out, const char *text, size_t n)
{
	buf_adds(out, "{\"type\":\"text\",\"text\":");
	json_write_string(out, text, n);
	buf_addc(out, '}');
}

static void add_image_part(struct buf *out, const struct block *b)
{
	if (b->id) {
		AUTO_FREE char *label = mem_printf("Image of tool result %s:", b->id);
		add_text_part(out, label, strlen(label));
		buf_addc(out, ',');
	}
	/* Media type and base64 need no escaping, but what comes from outside is not trusted. */
	AUTO_BUF struct buf url = BUF_INIT;
	buf_addf(&url, "data:%s;base64,", b->name);
	buf_add(&url, b->text, b->text_len);
	buf_adds(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
	json_write_string(out, url.data, url.len);
	buf_adds(out, "}}");
}

/* Images of tool results first: they belong to what stands before. */
static void add_parts(const struct model_client *c, const struct message *m, struct buf *out)
{
	size_t count = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < m->n_blocks; i++) {
			const struct block *b = &m->blocks[i];
			bool image = sends_image(c, b) && (pass ? !b->id : b->id != NULL);
			bool text = pass && b->kind == BLOCK_TEXT;
			if (!image && !text)
				continue;
			if (count++)
				buf_addc(out, ',');
			if (image)
				add_image_part(out, b);
			else
				add_text_part(out, b->text, b->text_len);
		}
	}
}

/* All texts as one string: many imitations know no content parts. */
static void add_joined_text(const struct message *m, struct buf *out)
{
	AUTO_BUF struct buf text = BUF_INIT;
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];
		bool image = b->kind == BLOCK_IMAGE && !b->id;
		if (b->kind != BLOCK_TEXT && !image)
			continue;
		if (text.len)
			buf_adds(&text, "\n\n");
		if (image)
			buf_adds(&text, IMAGE_OMITTED);
		else
			buf_add(&text, b->text, b->text_len);
	}
	json_write_string(out, buf_str(&text), text.len);
}

static bool has_user_part(const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TEXT ||
		    (m->blocks[i].kind == BLOCK_IMAGE && !m->blocks[i].id))
			return true;
	return false;
}

static void render_user(const struct model_client *c, const struct message *m, struct buf *out)
{
	bool images = false, results = false;
	for (size_t i = 0; i < m->n_blocks; i++) {
		images = images || sends_image(c, &m->blocks[i]);
		if (m->blocks[i].kind == BLOCK_TOOL_RESULT) {
			add_tool_message(c, m, i, out);
			results = true;
		}
	}
	if (!images && !has_user_part(m))
		return;
	/* The same bridge over two messages is made by client.c. */
	if (results && c->dialect->assistant_after_tool)
		begin_message(out, OPENAI_BRIDGE);
	begin_message(out, "{\"role\":\"user\",\"content\":");
	if (images) {
		buf_addc(out, '[');
		add_parts(c, m, out);
		buf_addc(out, ']');
	} else {
		add_joined_text(m, out);
	}
	buf_addc(out, '}');
}

bool openai_ends_with_tool(const struct message *m)
{
	static const char tool[] = "{\"role\":\"tool\",";
	return m->role == MESSAGE_USER && m->rendered_len > sizeof(tool) &&
	       memcmp(m->rendered, tool, sizeof(tool) - 1) == 0 && !has_user_part(m) &&
	       !strstr(m->rendered, "},{\"role\":\"user\",\"content\":[");
}

bool openai_starts_with_user(const struct message *m)
{
	static const char user[] = "{\"role\":\"user\",";
	return m->rendered_len > sizeof(user) && memcmp(m->rendered, user, sizeof(user) - 1) == 0;
}

/* --- assistant messages --- */

static void add_call(const struct model_client *c, const struct block *b, bool own, struct buf *out)
{
	static const char *const skip[] = {"id", "type", "function", "index", NULL};
	static const char *const skip_inner[] = {"name", "arguments", NULL};
	AUTO_BUF struct buf text = BUF_INIT;
	buf_adds(out, "{\"id\":");
	dialect_write_id(c->dialect, b->id, &text);
	json_write_string(out, text.data, text.len);
	buf_adds(out, ",\"type\":\"function\",\"function\":{\"name\":\"");
	render_tool_name(out, b->name);
	buf_adds(out, "\",\"arguments\":");
	buf_clear(&text);
	render_arguments(&text, b);
	json_write_string(out, text.data, text.len);
	/* Unknown members go back where they stood: within the function or beside it (trap 50). */
	if (own && !c->dialect->no_extra && b->raw) {
		AUTO_JSON struct json_object *extra = NULL;
		AUTO_BUF struct buf inner = BUF_INIT;
		if (json_parse(b->raw, strlen(b->raw), &extra, NULL) == 0 &&
		    json_obj(extra, "function")) {
			json_write(&inner, json_obj(extra, "function"));
			render_members(out, buf_str(&inner), skip_inner);
		}
		buf_addc(out, '}');
		render_members(out, b->raw, skip);
	} else {
		buf_addc(out, '}');
	}
	buf_addc(out, '}');
}

/* The reasoning that goes back (trap 48): the text under the name under which it came, details as
 * they came. */
static void add_reasoning(const struct model_client *c, const struct message *m, bool has_calls,
			  struct buf *out)
{
	enum reasoning_echo echo = c->dialect->echo;
	bool done = false;
	if (!c->model->reasoning_field || echo == ECHO_NEVER || (!has_calls && echo != ECHO_ALWAYS))
		return;
	for (size_t i = 0; i < m->n_blocks && render_is_own(c, m); i++) {
		const struct block *b = &m->blocks[i];
		if (b->kind != BLOCK_THINKING || b->partial || done)
			continue;
		if (b->text_len) {
			buf_addc(out, ',');
			json_write_cstr(out, b->name ? b->name : c->model->reasoning_field);
			buf_addc(out, ':');
			json_write_string(out, b->text, b->text_len);
			done = true;
		}
		if (b->raw && b->raw[0] == '[') {
			buf_adds(out, ",\"reasoning_details\":");
			buf_adds(out, b->raw);
		}
	}
	/* Calls that another provider's model made have no reasoning, yet the field is demanded. */
	if (!done && echo == ECHO_CALLS_DEMANDED) {
		buf_addc(out, ',');
		json_write_cstr(out, c->model->reasoning_field);
		buf_adds(out, ":\"\"");
	}
}

/* Neither content nor calls must never happen (trap 32): such a message is left out. */
static void render_assistant(const struct model_client *c, const struct message *m, struct buf *out)
{
	size_t calls = message_count(m, BLOCK_TOOL_CALL);
	size_t texts = message_count(m, BLOCK_TEXT), count = 0;
	bool own = render_is_own(c, m);
	if (calls + texts == 0)
		return;
	buf_adds(out, "{\"role\":\"assistant\",\"content\":");
	if (texts)
		add_joined_text(m, out);
	else
		buf_adds(out, c->dialect->empty_content ? "\"\"" : "null");
	add_reasoning(c, m, calls > 0, out);
	for (size_t i = 0; i < m->n_blocks; i++) {
		if (m->blocks[i].kind != BLOCK_TOOL_CALL)
			continue;
		buf_adds(out, count++ ? "," : ",\"tool_calls\":[");
		add_call(c, &m->blocks[i], own, out);
	}
	buf_adds(out, calls ? "]}" : "}");
}

static void render_message(const struct model_client *c, const struct message *m, struct buf *out,
			   size_t *splice)
{
	*splice = (size_t)-1; /* no markers in this form */
	if (m->role == MESSAGE_USER)
		render_user(c, m, out);
	else
		render_assistant(c, m, out);
}

/* --- tail --- */

static void write_effort(const struct model_client *c, struct buf *out)
{
	if (!c->effort || c->model->reasoning == REASONING_NONE)
		return;
	if (c->dialect->effort == EFFORT_FIELD) {
		buf_adds(out, ",\"reasoning_effort\":");
		json_write_cstr(out, c->effort);
	} else if (c->dialect->effort == EFFORT_OBJECT) {
		buf_adds(out, ",\"reasoning\":{\"effort\":");
		json_write_cstr(out, c->effort);
		buf_addc(out, '}');
	}
}

static void render_tail(const struct model_client *c, int64_t max_tokens, struct buf *out)
{
	const char *field = c->model->max_tokens_field;
	if (!field || c->dialect->max_tokens_only)
		field = "max_tokens";
	buf_adds(out, "],");
	json_write_cstr(out, field);
	buf_addf(out, ":%lld,\"stream\":true", (long long)max_tokens);
	if (c->model->usage_in_stream && !c->dialect->no_stream_options)
		buf_adds(out, ",\"stream_options\":{\"include_usage\":true}");
	write_effort(c, out);
	if (c->temperature >= 0)
		buf_addf(out, ",\"temperature\":%.3g", c->temperature);
	/* Said only to a server that knows the word and a model that must not: true is the default.
	 */
	if (c->has_tools && !c->model->parallel_tools && c->dialect->parallel_field)
		buf_adds(out, ",\"parallel_tool_calls\":false");
	buf_addc(out, '}');
}

const struct render_ops openai_render = {
	.head = render_head,
	.message = render_message,
	.tail = render_tail,
};
