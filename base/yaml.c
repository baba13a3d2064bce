/*
 * yaml.c - YAML into json-c trees, with the line of every node.
 *
 * libfyaml's event stream is used and not its document tree: the limits (depth, nodes, aliases)
 * must hold while the input is read, not after it has been expanded, and an error should name the
 * line of the second key, not the mapping's. Files of roles and pipelines come from repositories
 * that a stranger wrote, so every limit is an ordinary error.
 *
 *   text -> events -> json-c tree (owned by the root)
 *                  -> struct node tree (lines; in an arena)
 *
 * An alias becomes a copy: readers may change what they get. Weight and height of its anchor are
 * known before it is copied, which is what stops an alias bomb and one that contains itself.
 */
#include "base/yaml.h"

#include <fcntl.h>
#include <libfyaml.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum {
	YAML_SIZE_MAX = 1 << 20,
	YAML_DEPTH_MAX = 64,
	YAML_NODES_MAX = 100000,
	YAML_ANCHORS_MAX = 1000, /* they are searched one by one */
};

struct node;

struct member {
	const char *key; /* NULL in a sequence */
	int line;	 /* of the key, or of the item */
	struct node *node;
};

struct node {
	int line;
	struct json_object *value; /* borrowed from the tree */
	struct member *members;
	size_t n, cap;
	size_t weight; /* nodes in it, aliases expanded; 0 while it is being read */
	int height;
};

struct yaml_doc {
	char *name;
	struct arena *arena;
	struct json_object *root;
	struct node *root_node;
};

struct frame { /* a container that is being read */
	struct node *node;
	const char *key; /* of the value that comes next; NULL: a key comes next */
	int key_line;
};

struct anchor {
	const char *name;
	const struct node *node;
};

struct build {
	struct yaml_doc *doc;
	int first_line;
	int line; /* of the event in hand, in the file */
	struct frame stack[YAML_DEPTH_MAX];
	int depth;
	size_t nodes;
	struct anchor *anchors;
	size_t n_anchors, cap_anchors;
	bool has_root;
	struct err *err;
};

static int fail(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct build *b, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return err_set(b->err, ERR_INVALID, "%s:%d: %s", b->doc->name, b->line, buf_str(&text));
}

/* --- scalars --- */

/* The text in the arena: the token's own dies with its event. */
static const char *token_text(struct build *b, struct fy_token *token, size_t *ret_len)
{
	size_t len = 0;
	const char *text = token ? fy_token_get_text(token, &len) : NULL;
	*ret_len = text ? len : 0;
	return arena_strndup(b->doc->arena, text ? text : "", *ret_len);
}

static bool looks_like_number(const char *s)
{
	return *s == '-' || (*s >= '0' && *s <= '9');
}

/* The JSON schema of YAML 1.2: what is not exactly a JSON word or number is a string. */
static struct json_object *plain_value(const char *s, size_t n)
{
	struct json_object *number = NULL;
	if (n == 0 || strcmp(s, "~") == 0 || strcmp(s, "null") == 0)
		return NULL;
	if (strcmp(s, "true") == 0)
		return json_object_new_boolean(1);
	if (strcmp(s, "false") == 0)
		return json_object_new_boolean(0);
	if (looks_like_number(s) && json_parse(s, n, &number, NULL) == 0)
		return number;
	return json_object_new_string_len(s, (int)n);
}

/* Sets *ret_string for "!!str" and "!". Tags that would need code of ours are refused. */
static int check_tag(struct build *b, struct fy_token *tag, bool *ret_string)
{
	static const char *const known[] = {"map", "seq", "int", "float", "bool", "null"};
	static const char prefix[] = "tag:yaml.org,2002:";
	size_t len;
	if (!tag)
		return 0;
	const char *text = token_text(b, tag, &len);
	if (text_starts(text, prefix))
		text += strlen(prefix);
	else if (text_starts(text, "!!"))
		text += 2;
	*ret_string = strcmp(text, "str") == 0 || strcmp(text, "!") == 0;
	if (*ret_string)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(text, known[i]) == 0)
			return 0;
	return fail(b, "unknown tag '%s'", text);
}

/* --- the two trees --- */

/* Grown in the arena: what is outgrown stays there until the document goes, at most as much again.
 */
static void add_member(struct build *b, struct node *parent, const char *key, int line,
		       struct node *node)
{
	if (parent->n == parent->cap) {
		size_t cap = parent->cap ? parent->cap * 2 : 4;
		struct member *grown = arena_alloc(b->doc->arena, cap * sizeof(*grown));
		if (parent->n)
			memcpy(grown, parent->members, parent->n * sizeof(*grown));
		parent->members = grown;
		parent->cap = cap;
	}
	parent->members[parent->n++] = (struct member){.key = key, .line = line, .node = node};
}

static struct node *node_new(struct build *b, struct json_object *value)
{
	struct node *node = arena_alloc(b->doc->arena, sizeof(*node));
	node->line = b->line;
	node->value = value;
	return node;
}

/* Hands the node's value to its parent at once, so that the root owns all that exists. */
static int attach(struct build *b, struct node *node)
{
	if (b->depth == 0) {
		b->has_root = true;
		b->doc->root = node->value;
		b->doc->root_node = node;
	} else {
		struct frame *top = &b->stack[b->depth - 1];
		if (top->key)
			json_object_object_add(top->node->value, top->key, node->value);
		else
			json_object_array_add(top->node->value, node->value);
		add_member(b, top->node, top->key, top->key ? top->key_line : node->line, node);
		top->key = NULL;
	}
	if (++b->nodes > YAML_NODES_MAX)
		return fail(b, "more than %d nodes", YAML_NODES_MAX);
	return 0;
}

static int set_anchor(struct build *b, struct fy_token *token, const struct node *node)
{
	size_t len;
	if (!token)
		return 0;
	if (b->n_anchors == YAML_ANCHORS_MAX)
		return fail(b, "more than %d anchors", YAML_ANCHORS_MAX);
	MEM_GROW(b->anchors, b->cap_anchors, b->n_anchors + 1);
	b->anchors[b->n_anchors++] =
		(struct anchor){.name = token_text(b, token, &len), .node = node};
	return 0;
}

static bool key_is_next(const struct build *b)
{
	const struct frame *top = b->depth ? &b->stack[b->depth - 1] : NULL;
	return top && !top->key && json_object_is_type(top->node->value, json_type_object);
}

/* --- events --- */

/* Escapes can make what the source's own check has kept out ("\0", half a surrogate pair). */
static int check_escapes(struct build *b, const char *text, size_t n, bool is_key)
{
	if (!text_is_utf8(text, n))
		return fail(b, "an escape that is no character");
	if (is_key && memchr(text, '\0', n))
		return fail(b, "a NUL in a key");
	return 0;
}

/* Duplicates are refused: the first would be lost without a word, and in a file of limits and
 * permissions the reader may have meant the other one. */
static int on_key(struct build *b, struct fy_event *event)
{
	struct frame *top = &b->stack[b->depth - 1];
	size_t len;
	const char *key = token_text(b, event->scalar.value, &len);
	if (check_escapes(b, key, len, true) < 0)
		return -1;
	if (json_has(top->node->value, key))
		return fail(b, "duplicate key '%s'", key);
	top->key = key;
	top->key_line = b->line;
	return 0;
}

static int on_scalar(struct build *b, struct fy_event *event)
{
	bool string = false;
	size_t len;
	if (key_is_next(b))
		return on_key(b, event);
	if (check_tag(b, event->scalar.tag, &string) < 0)
		return -1;
	const char *text = token_text(b, event->scalar.value, &len);
	if (check_escapes(b, text, len, false) < 0)
		return -1;
	bool plain =
		!event->scalar.value || fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
	struct node *node =
		node_new(b, plain && !string ? plain_value(text, len)
					     : json_object_new_string_len(text, (int)len));
	node->weight = 1;
	if (attach(b, node) < 0)
		return -1;
	return set_anchor(b, event->scalar.anchor, node);
}

static int on_alias(struct build *b, struct fy_event *event)
{
	size_t len, i;
	const char *name = token_text(b, event->alias.anchor, &len);
	if (key_is_next(b))
		return fail(b, "a key must be plain text");
	for (i = b->n_anchors; i > 0; i--) /* the newest of a name counts */
		if (strcmp(b->anchors[i - 1].name, name) == 0)
			break;
	if (i == 0)
		return fail(b, "unknown anchor '%s'", name);
	const struct node *target = b->anchors[i - 1].node;
	if (target->weight == 0)
		return fail(b, "alias '%s' is inside its own anchor", name);
	if (target->weight > YAML_NODES_MAX - b->nodes)
		return fail(b, "alias '%s' makes the document larger than %d nodes", name,
			    YAML_NODES_MAX);
	if (b->depth + target->height > YAML_DEPTH_MAX)
		return fail(b, "nesting deeper than %d", YAML_DEPTH_MAX);
	struct json_object *copy = NULL;
	if (target->value && json_object_deep_copy(target->value, &copy, NULL) < 0)
		return fail(b, "alias '%s' cannot be copied", name);
	struct node *node = node_new(b, copy);
	node->members = target->members;
	node->n = node->cap = target->n;
	node->weight = target->weight;
	node->height = target->height;
	b->nodes += target->weight - 1; /* attach counts one */
	return attach(b, node);
}

static int on_start(struct build *b, struct json_object *value, struct fy_token *anchor,
		    struct fy_token *tag)
{
	bool string = false;
	struct node *node = node_new(b, value);
	bool is_key = key_is_next(b);
	if (is_key || b->depth == YAML_DEPTH_MAX) {
		json_object_put(value);
		if (is_key)
			return fail(b, "a key must be plain text");
		return fail(b, "nesting deeper than %d", YAML_DEPTH_MAX);
	}
	if (attach(b, node) < 0 || check_tag(b, tag, &string) < 0)
		return -1;
	b->stack[b->depth++] = (struct frame){.node = node};
	return set_anchor(b, anchor, node);
}

/* From here on the container is whole and its anchor may be used. */
static int on_end(struct build *b)
{
	struct node *node = b->stack[--b->depth].node;
	node->weight = 1;
	for (size_t i = 0; i < node->n; i++) {
		node->weight += node->members[i].node->weight;
		node->height = MAX(node->height, node->members[i].node->height);
	}
	node->height++;
	return 0;
}

static int on_event(struct build *b, struct fy_event *event)
{
	switch (event->type) {
	case FYET_DOCUMENT_START: return b->has_root ? fail(b, "more than one document") : 0;
	case FYET_SCALAR: return on_scalar(b, event);
	case FYET_ALIAS: return on_alias(b, event);
	case FYET_MAPPING_START:
		return on_start(b, json_object_new_object(), event->mapping_start.anchor,
				event->mapping_start.tag);
	case FYET_SEQUENCE_START:
		return on_start(b, json_object_new_array(), event->sequence_start.anchor,
				event->sequence_start.tag);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END: return on_end(b);
	default: return 0;
	}
}

/* --- the parser --- */

/* libfyaml would print its errors to our stderr; they are collected and told in our own form. */
static void drop_output(struct fy_diag *diag, void *user, const char *text, size_t n)
{
}

static int report_syntax(struct build *b, struct fy_diag *diag)
{
	void *at = NULL;
	const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &at);
	if (!error || !error->msg)
		return fail(b, "invalid YAML");
	b->line = b->first_line + MAX(error->line - 1, 0);
	return fail(b, "%s", error->msg);
}

static int read_events(struct build *b, struct fy_parser *parser, struct fy_diag *diag)
{
	struct fy_event *event;
	while ((event = fy_parser_parse(parser))) {
		/* An empty value has no place of its own: it stands where its key does. */
		const struct fy_mark *mark = fy_event_start_mark(event);
		if (mark && mark->line >= 0)
			b->line = b->first_line + mark->line;
		int rc = on_event(b, event);
		fy_parser_event_free(parser, event);
		if (rc < 0)
			return -1;
	}
	return fy_parser_get_stream_error(parser) ? report_syntax(b, diag) : 0;
}

static int run_parser(struct build *b, const char *s, size_t n)
{
	struct fy_diag_cfg diag_cfg;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.output_fn = drop_output;
	struct fy_diag *diag = fy_diag_create(&diag_cfg);
	if (!diag)
		return fail(b, "the YAML parser cannot start");
	fy_diag_set_collect_errors(diag, true);
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 |
			 FYPCF_JSON_NONE,
		.diag = diag,
	};
	struct fy_parser *parser = fy_parser_create(&cfg);
	int rc = -1;
	if (!parser || fy_parser_set_string(parser, s, n) < 0)
		fail(b, "the YAML parser cannot start");
	else
		rc = read_events(b, parser, diag);
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(diag);
	return rc;
}

/* Before libfyaml sees it, so that a stranger's bytes meet a parser of text as text. */
static int check_text(struct build *b, const char *s, size_t n)
{
	if (n > YAML_SIZE_MAX)
		return err_set(b->err, ERR_TOO_LARGE, "%s: larger than 1 MiB", b->doc->name);
	size_t good = text_valid_prefix(s, n);
	const char *nul = memchr(s, '\0', good);
	if (nul)
		good = (size_t)(nul - s);
	if (good == n)
		return 0;
	b->line = b->first_line + (int)text_count_lines(s, good + 1) - 1;
	return fail(b, nul ? "a NUL byte" : "invalid UTF-8");
}

int yaml_parse(const char *s, size_t n, const char *name, int first_line, struct yaml_doc **ret,
	       struct err *err)
{
	struct yaml_doc *doc = mem_alloc(sizeof(*doc));
	doc->name = mem_strdup(name);
	doc->arena = arena_new();
	struct build *b = mem_alloc(sizeof(*b));
	b->doc = doc;
	b->first_line = b->line = first_line;
	b->err = err;
	int rc = check_text(b, s, n);
	/* libfyaml takes length 0 for "measure it yourself". */
	if (rc == 0 && n > 0)
		rc = run_parser(b, s, n);
	free(b->anchors);
	free(b);
	if (rc < 0) {
		yaml_free(doc);
		return -1;
	}
	*ret = doc;
	return 0;
}

int yaml_parse_file(const char *path, struct yaml_doc **ret, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	if (file_read(AT_FDCWD, path, YAML_SIZE_MAX, &text, err) < 0)
		return -1;
	return yaml_parse(buf_str(&text), text.len, path, 1, ret, err);
}

void yaml_free(struct yaml_doc *doc)
{
	if (!doc)
		return;
	json_object_put(doc->root);
	arena_free(doc->arena);
	free(doc->name);
	free(doc);
}

struct json_object *yaml_root(struct yaml_doc *doc)
{
	return doc->root;
}

const char *yaml_name(const struct yaml_doc *doc)
{
	return doc->name;
}

/* --- places --- */

/* Lookups are rare (one for each error that is shown), so keys are searched one by one.
 *
 * Compares one step of a pointer ("~1" is '/', "~0" is '~') with a key. */
static bool step_is(const char *step, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++, key++) {
		char c = step[i];
		if (c == '~' && i + 1 < n)
			c = step[++i] == '1' ? '/' : '~';
		if (*key != c)
			return false;
	}
	return *key == '\0';
}

static const struct member *find_member(const struct node *node, const char *step, size_t n)
{
	size_t index = 0;
	for (size_t i = 0; i < n && step[i] >= '0' && step[i] <= '9' && i < 9; i++)
		index = index * 10 + (size_t)(step[i] - '0');
	for (size_t i = 0; i < node->n; i++) {
		const struct member *m = &node->members[i];
		if (m->key ? step_is(step, n, m->key) : i == index)
			return m;
	}
	return NULL;
}

int yaml_line(const struct yaml_doc *doc, const char *pointer)
{
	const struct node *node = doc->root_node;
	int line = node ? node->line : 0;
	while (node && *pointer == '/') {
		pointer++;
		size_t n = strcspn(pointer, "/");
		const struct member *m = find_member(node, pointer, n);
		if (!m)
			return 0;
		node = m->node;
		line = m->line;
		pointer += n;
	}
	return line;
}

/* --- front matter --- */

/* A line of three dashes and blanks at s: its length with the line end, else 0. */
static size_t fence_len(const char *s, size_t n)
{
	size_t i = 3;
	if (n < 3 || memcmp(s, "---", 3) != 0)
		return 0;
	while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r'))
		i++;
	if (i == n)
		return n;
	return s[i] == '\n' ? i + 1 : 0;
}

int yaml_front_matter(const char *s, size_t n, const char **ret_yaml, size_t *ret_yaml_len,
		      const char **ret_body, size_t *ret_body_len)
{
	size_t start = n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	size_t fence = fence_len(s + start, n - start);
	*ret_yaml = NULL;
	*ret_yaml_len = 0;
	*ret_body = s + start;
	*ret_body_len = n - start;
	size_t at = start + fence;
	int line = 2;
	while (fence && at < n) {
		size_t end = fence_len(s + at, n - at);
		if (end) {
			*ret_yaml = s + start + fence;
			*ret_yaml_len = at - start - fence;
			*ret_body = s + at + end;
			*ret_body_len = n - at - end;
			return line + 1;
		}
		const char *nl = memchr(s + at, '\n', n - at);
		at = nl ? (size_t)(nl - s) + 1 : n;
		line++;
	}
	return 1;
}
