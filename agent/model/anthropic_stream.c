/*
 * anthropic_stream.c - answers in the form of the Anthropic Messages API (wire.md 1.2 to 1.4).
 *
 * Every block is treated alike while it comes: the object that started it, and for each string
 * field of its deltas a buffer. Only at the end does the type decide what becomes of it. So a block
 * of a type that is not known today is put together and echoed like the others.
 */
#include "agent/model/stream.h"

#include "agent/model/arguments.h"
#include "base/memory.h"

struct field {
	char *key;
	struct buf text;
};

struct open_block {
	int64_t index;
	struct json_object *start; /* the content_block */
	struct field *fields;
	size_t n_fields, cap_fields;
	bool stopped;
};

struct state {
	struct open_block *blocks;
	size_t n, cap;
};

static void *state_new(void)
{
	return mem_alloc(sizeof(struct state));
}

static void state_free(void *arg)
{
	struct state *s = arg;
	for (size_t i = 0; i < s->n; i++) {
		struct open_block *b = &s->blocks[i];
		for (size_t k = 0; k < b->n_fields; k++) {
			free(b->fields[k].key);
			buf_release(&b->fields[k].text);
		}
		free(b->fields);
		json_object_put(b->start);
	}
	free(s->blocks);
	free(s);
}

/* --- while it comes --- */

/* From the end: deltas belong to the newest block in all but broken streams. */
static struct open_block *find_block(struct state *s, int64_t index)
{
	for (size_t i = s->n; i-- > 0;)
		if (s->blocks[i].index == index)
			return &s->blocks[i];
	return NULL;
}

static int add_block(struct stream_parser *p, int64_t index, struct json_object *start,
		     struct err *err)
{
	struct state *s = p->state;
	if (s->n == PARTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the answer has more than %d blocks", PARTS_MAX);
	MEM_GROW(s->blocks, s->cap, s->n + 1);
	s->blocks[s->n++] = (struct open_block){.index = index, .start = json_object_get(start)};
	return 0;
}

/* Buffers and not one growing json-c string: that would copy the whole text with each delta. */
static struct buf *field_buf(struct open_block *b, const char *key)
{
	for (size_t i = 0; i < b->n_fields; i++)
		if (strcmp(b->fields[i].key, key) == 0)
			return &b->fields[i].text;
	MEM_GROW(b->fields, b->cap_fields, b->n_fields + 1);
	b->fields[b->n_fields] = (struct field){.key = mem_strdup(key)};
	return &b->fields[b->n_fields++].text;
}

static void tell(struct stream_parser *p, const char *key, const char *text, size_t n)
{
	if (strcmp(key, "text") == 0)
		stream_tell_text(p, text, n);
	else if (strcmp(key, "thinking") == 0)
		stream_tell_thinking(p, text, n);
}

static int add_string(struct stream_parser *p, struct open_block *b, const char *key,
		      struct json_object *value, struct err *err)
{
	const char *text = json_object_get_string(value);
	size_t n = (size_t)json_object_get_string_len(value);
	if (n == 0 && b->n_fields > 0)
		return 0;
	if (b->n_fields > 64)
		return err_set(err, ERR_INVALID, "a block of the answer has too many fields");
	buf_add(field_buf(b, key), text, n);
	tell(p, key, text, n);
	return stream_hold(p, n, err);
}

static int on_start(struct stream_parser *p, struct json_object *event, struct err *err)
{
	struct json_object *start = json_obj(event, "content_block");
	AUTO_BUF struct buf size = BUF_INIT;
	if (!start)
		return err_set(err, ERR_INVALID,
			       "model stream: content_block_start without a block");
	json_write(&size, start);
	if (stream_hold(p, size.len, err) < 0 ||
	    add_block(p, json_i64(event, "index", (int64_t)((struct state *)p->state)->n), start,
		      err) < 0)
		return -1;
	if (strcmp(json_str(start, "type", ""), "tool_use") == 0)
		stream_tell_call(p, json_str(start, "name", ""));
	tell(p, "text", json_str(start, "text", ""), json_str_len(start, "text"));
	tell(p, "thinking", json_str(start, "thinking", ""), json_str_len(start, "thinking"));
	return 0;
}

/* The block that a delta without a start belongs to: some imitations forget the start of a text. */
static int start_for_delta(struct stream_parser *p, int64_t index, const char *type,
			   struct err *err)
{
	AUTO_JSON struct json_object *start = json_object_new_object();
	if (strcmp(type, "text_delta") == 0)
		json_set_str(start, "type", "text");
	else if (strcmp(type, "thinking_delta") == 0)
		json_set_str(start, "type", "thinking");
	else
		return err_set(err, ERR_INVALID, "model stream: %s for a block that never started",
			       type);
	return add_block(p, index, start, err);
}

static int on_delta(struct stream_parser *p, struct json_object *event, struct err *err)
{
	struct state *s = p->state;
	struct json_object *delta = json_obj(event, "delta");
	int64_t index = json_i64(event, "index", s->n ? s->blocks[s->n - 1].index : 0);
	const char *type = json_str(delta, "type", "");
	if (!delta)
		return 0;
	if (!find_block(s, index) && start_for_delta(p, index, type, err) < 0)
		return -1;
	struct open_block *b = find_block(s, index);
	/* Only strings grow. A citation is an object and is left: a text goes back without it. */
	json_object_object_foreach (delta, key, value) {
		if (strcmp(key, "type") == 0 || !json_object_is_type(value, json_type_string))
			continue;
		if (add_string(p, b, key, value, err) < 0)
			return -1;
	}
	return 0;
}

/* Field by field, the later value wins (trap 80). */
static void take_usage(struct stream_parser *p, struct json_object *usage)
{
	struct model_usage *u = &p->usage;
	stream_take_count(p, usage, "input_tokens", &u->input);
	stream_take_count(p, usage, "cache_read_input_tokens", &u->cache_read);
	stream_take_count(p, usage, "cache_creation_input_tokens", &u->cache_write);
	stream_take_count(p, json_obj(usage, "cache_creation"), "ephemeral_1h_input_tokens",
			  &u->cache_write_1h);
	stream_take_count(p, usage, "output_tokens", &u->output);
	stream_take_count(p, json_obj(usage, "output_tokens_details"), "thinking_tokens",
			  &u->thinking);
}

static void take_transformations(struct stream_parser *p, struct json_object *where)
{
	if (json_len(json_arr(where, "input_transformations")) > 0)
		p->dropped_blocks = true;
}

/* H2: what the provider left out of the prompt; the last word holds. */
static void take_edits(struct stream_parser *p, struct json_object *where)
{
	struct json_object *edits =
		json_arr(json_obj(where, "context_management"), "applied_edits");
	int64_t sum = 0;

	for (size_t i = 0; i < json_len(edits); i++)
		sum += MAX(json_i64(json_at(edits, i), "cleared_input_tokens", 0), 0);
	if (edits)
		p->cleared = sum;
}

static void on_message_start(struct stream_parser *p, struct json_object *event)
{
	struct json_object *message = json_obj(event, "message");
	free(p->answer_id);
	p->answer_id = mem_strdup(json_str(message, "id", NULL));
	take_usage(p, json_obj(message, "usage"));
	take_transformations(p, message);
	take_edits(p, message);
}

/* Can come several times: the last values hold. */
static void on_message_delta(struct stream_parser *p, struct json_object *event)
{
	struct json_object *delta = json_obj(event, "delta");
	struct json_object *details = json_obj(delta, "stop_details");
	enum stop_reason stop = stream_stop_reason(json_str(delta, "stop_reason", NULL));
	stream_take_stop(p, stop);
	const char *why = json_str(details, "explanation", json_str(details, "category", NULL));
	if (why) {
		buf_clear(&p->refusal);
		buf_adds(&p->refusal, why);
	}
	take_usage(p, json_obj(event, "usage"));
	take_transformations(p, event);
	take_transformations(p, delta);
	take_edits(p, event);
	take_edits(p, delta);
}

static int on_event(struct stream_parser *p, const char *name, struct json_object *event,
		    struct err *err)
{
	const char *type = json_str(event, "type", name);
	if (strcmp(type, "content_block_delta") == 0)
		return on_delta(p, event, err);
	if (strcmp(type, "content_block_start") == 0)
		return on_start(p, event, err);
	if (strcmp(type, "content_block_stop") == 0) {
		struct open_block *b = find_block(p->state, json_i64(event, "index", -1));
		if (b)
			b->stopped = true;
	} else if (strcmp(type, "message_start") == 0) {
		on_message_start(p, event);
	} else if (strcmp(type, "message_delta") == 0) {
		on_message_delta(p, event);
	} else if (strcmp(type, "message_stop") == 0) {
		p->ended = true;
	}
	return 0;
}

/* --- at the end --- */

/* What started the block with what its deltas added to it. */
static struct json_object *merge_block(struct open_block *b)
{
	struct json_object *merged = json_object_new_object();
	json_object_object_foreach (b->start, key, value)
		json_set(merged, key, json_object_get(value));
	for (size_t i = 0; i < b->n_fields; i++) {
		struct field *f = &b->fields[i];
		struct json_object *input = NULL;
		if (strcmp(f->key, "partial_json") != 0) {
			AUTO_BUF struct buf text = BUF_INIT;
			buf_adds(&text, json_str(b->start, f->key, ""));
			buf_add(&text, f->text.data, f->text.len);
			json_set_strn(merged, f->key, buf_str(&text), text.len);
		} else if (f->text.len && /* input of a block that goes back as it is */
			   json_parse(f->text.data, f->text.len, &input, NULL) == 0) {
			json_set(merged, "input", input);
		}
	}
	return merged;
}

static void collect_call(struct stream_parser *p, struct open_block *b, struct json_object *merged,
			 struct message *m, bool cut)
{
	AUTO_BUF struct buf extra = BUF_INIT;
	AUTO_BUF struct buf given = BUF_INIT;
	AUTO_JSON struct json_object *rest = json_object_new_object();
	const char *name = json_str(b->start, "name", "");
	struct buf *arguments = field_buf(b, "partial_json");
	if (arguments->len == 0) { /* imitations give the whole input at the start */
		json_write(&given, json_get(b->start, "input"));
		arguments = &given;
	}
	/* What else stands in the block ("caller") goes back with it. */
	json_object_object_foreach (merged, key, value)
		if (value && strcmp(key, "type") != 0 && strcmp(key, "id") != 0 &&
		    strcmp(key, "name") != 0 && strcmp(key, "input") != 0)
			json_set(rest, key, json_object_get(value));
	if (json_object_object_length(rest) > 0)
		json_write(&extra, rest);
	if (!*name)
		return; /* nothing can answer a call without a name */
	struct block *block = stream_add_call(p, m, json_str(b->start, "id", NULL), name, arguments,
					      extra.len ? buf_str(&extra) : NULL);
	block->partial = block->partial || cut;
}

static void collect_block(struct stream_parser *p, struct open_block *b, struct message *m,
			  bool cut)
{
	AUTO_JSON struct json_object *merged = merge_block(b);
	AUTO_BUF struct buf raw = BUF_INIT;
	const char *type = json_str(merged, "type", "");
	struct block *block = NULL;
	if (strcmp(type, "tool_use") == 0) {
		collect_call(p, b, merged, m, cut);
		return;
	}
	if (strcmp(type, "text") == 0) {
		block = message_add_text(m, ORIGIN_MODEL, json_str(merged, "text", ""),
					 json_str_len(merged, "text"));
	} else {
		json_write(&raw, merged);
		if (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0)
			block = message_add_thinking(m, NULL, json_str(merged, "thinking", ""),
						     json_str_len(merged, "thinking"),
						     buf_str(&raw));
		else
			block = message_add_opaque(m, buf_str(&raw));
	}
	if (block)
		block->partial = cut;
}

static void collect(struct stream_parser *p, struct message *m)
{
	struct state *s = p->state;
	for (size_t i = 0; i < s->n; i++) {
		bool last = i + 1 == s->n;
		/* A cut block can lack its stop event (wire.md 1.2), and a cut answer cut only the
		 * last block: after the stop reason the others are whole whatever was forgotten. */
		bool cut = last && (stream_is_cut(p->stop) ||
				    (!s->blocks[i].stopped && p->stop == STOP_NONE));
		collect_block(p, &s->blocks[i], m, cut);
	}
}

const struct stream_ops anthropic_stream = {
	.state_new = state_new,
	.state_free = state_free,
	.event = on_event,
	.collect = collect,
};
