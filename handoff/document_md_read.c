/*
 * document_md_read.c - reading the Markdown of document_md.c, and what people make of it in an editor.
 *
 * A machine over lines with one open statement at most. Its text goes on until its first member; after that only
 * members and empty lines may follow. Beyond what is written, a person may leave members out (a statement without an
 * origin is the user's) and may write a part as plain paragraphs instead of a list. Whatever else does not fit is an
 * error with its line, and nothing is passed over: what was typed and is not understood would be lost.
 */
#include <limits.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "handoff/document_form.h"

enum open_kind {
	OPEN_NOTHING,
	OPEN_ITEM_TEXT,
	OPEN_PARAGRAPH,
	OPEN_MEMBERS, /* of the statement that was added last */
};

struct reader {
	const char *at, *end;
	unsigned line; /* of what `text` and `n` are */
	const char *text;
	size_t n;

	struct handoff *handoff;
	enum handoff_part_name part;
	unsigned parts_seen; /* bits */
	bool in_part;
	enum open_kind open,
		style;	 /* style: OPEN_ITEM_TEXT or OPEN_PARAGRAPH, once the part has one */
	struct buf body; /* text of the open statement */
	unsigned seen;	 /* members of it, by bits */
	struct err *err;
};

static int fail_line(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail_line(struct reader *r, const char *fmt, ...)
{
	AUTO_BUF struct buf text = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return err_set(r->err, ERR_INVALID, "line %u: %s", r->line, buf_str(&text));
}

/* The carriage return of an editor on another system is no text: none is ever written. */
static bool next_line(struct reader *r)
{
	if (r->at == r->end)
		return false;
	const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
	r->text = r->at;
	r->n = (size_t)((nl ? nl : r->end) - r->at);
	r->at = nl ? nl + 1 : r->end;
	r->line++;
	if (r->n && r->text[r->n - 1] == '\r')
		r->n--;
	return true;
}

static bool blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != ' ' && s[i] != '\t')
			return false;
	return true;
}

static bool line_starts(const struct reader *r, const char *with)
{
	size_t n = strlen(with);

	return r->n >= n && memcmp(r->text, with, n) == 0;
}

/* ---- statements ---- */

/* The open text becomes a statement. Without members its last empty lines belong to nobody. */
static int close_text(struct reader *r, bool members_follow)
{
	if (r->open != OPEN_ITEM_TEXT && r->open != OPEN_PARAGRAPH) {
		r->open = OPEN_NOTHING;
		return 0;
	}
	while (!members_follow && r->body.len && r->body.data[r->body.len - 1] == '\n')
		buf_truncate(&r->body, r->body.len - 1);
	if ((handoff_part_flags(r->part) & HANDOFF_ONE) && r->handoff->parts[r->part].n)
		return fail_line(r, "'%s' holds one statement", handoff_part_title(r->part));
	handoff_add(r->handoff, r->part, HANDOFF_FROM_USER, buf_str(&r->body), r->body.len);
	buf_clear(&r->body);
	r->seen = 0;
	r->open = OPEN_NOTHING;
	return 0;
}

static struct handoff_statement *last_statement(struct reader *r)
{
	struct handoff_part *part = &r->handoff->parts[r->part];

	return &part->list[part->n - 1];
}

static int begin_text(struct reader *r, enum open_kind kind, const char *text, size_t n)
{
	if (close_text(r, false) < 0)
		return -1;
	if (r->style != OPEN_NOTHING && r->style != kind)
		return fail_line(r, "a part is either a list ('- ...', further lines indented by "
				    "two blanks) or plain paragraphs");
	r->style = r->open = kind;
	buf_clear(&r->body);
	buf_add(&r->body, text, n);
	return 0;
}

/* ---- members ---- */

/* Lines up to the closing fence, which is the opening one again. */
static int read_fenced(struct reader *r, const char *key, struct buf *value)
{
	unsigned from = r->line;
	size_t fence;

	if (!next_line(r) || r->n < 7 || memcmp(r->text, "    ```", 7) != 0)
		return fail_line(r, "'%s' has no value", key);
	for (fence = 3; fence + 4 < r->n && r->text[4 + fence] == '`';)
		fence++;
	const char *mark = r->text;
	size_t mark_n = 4 + fence;
	bool first = true;
	while (next_line(r)) {
		if (r->n == mark_n && memcmp(r->text, mark, mark_n) == 0)
			return first ? fail_line(r, "'%s' has no value", key) : 0;
		if (r->n < 4 ? !blank(r->text, r->n) : memcmp(r->text, "    ", 4) != 0)
			return fail_line(r, "lines of '%s' are indented by four blanks", key);
		buf_adds(value, first ? "" : "\n");
		if (r->n > 4)
			buf_add(value, r->text + 4, r->n - 4);
		first = false;
	}
	r->line = from;
	return fail_line(r, "the value of '%s' has no end", key);
}

static int read_quoted(struct reader *r, const char *key, const char *s, size_t n,
		       struct buf *value)
{
	AUTO_JSON struct json_object *json = NULL;
	struct err why = ERR_INIT;

	if (json_parse(s, n, &json, &why) < 0)
		return fail_line(r, "'%s': %s", key, why.message);
	buf_add(value, json_object_get_string(json), (size_t)json_object_get_string_len(json));
	return 0;
}

static int read_value(struct reader *r, const char *key, const char *s, size_t n, struct buf *value)
{
	while (n && (*s == ' ' || *s == '\t'))
		s++, n--;
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	if (!n)
		return read_fenced(r, key, value);
	if (*s == '"')
		return read_quoted(r, key, s, n, value);
	buf_add(value, s, n);
	return 0;
}

/* "record, generation 2, message 41" */
static int set_origin(struct reader *r, struct handoff_statement *s, const char *value)
{
	size_t n = strcspn(value, ",");
	AUTO_FREE char *name = mem_strndup(value, n);

	if (handoff_origin_find(name, &s->origin) < 0)
		return fail_line(r, "'%s' is no origin: record, user or model", name);
	while (value[n] == ',') {
		const char *at = value + n + 1 + strspn(value + n + 1, " ");
		int64_t number = 0;
		size_t len = strcspn(at, ",");
		AUTO_FREE char *what = mem_strndup(at, len);
		bool generation = text_starts(what, "generation ");
		const char *digits = what + (generation ? 11 : 8);
		if ((!generation && !text_starts(what, "message ")) ||
		    text_parse_i64(digits, &number) < 0 || number < 1)
			return fail_line(r, "'%s' is neither 'generation N' nor 'message N'", what);
		if (generation)
			s->generation = number;
		else
			s->uid = (uint64_t)number;
		n = (size_t)(at - value) + len;
	}
	if (s->origin != HANDOFF_FROM_USER)
		handoff_set(&s->text, s->text); /* as handoff_add would have */
	return 0;
}

/* The text that stands there is what can be seen of the verbatim one; who edits one of them has to say
 * which counts. */
static int set_verbatim(struct reader *r, struct handoff_statement *s, const struct buf *value)
{
	AUTO_BUF struct buf seen = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;

	if (s->origin != HANDOFF_FROM_USER)
		return fail_line(r, "only what a user said is verbatim");
	text_sanitize(&clean, buf_str(value), value->len);
	text_printable(&seen, buf_str(&clean), clean.len, false);
	if (strcmp(buf_str(&seen), s->text) != 0)
		return fail_line(r, "'verbatim' is not the text above; remove the line if the text "
				    "was changed");
	free(s->text);
	s->text = mem_strdup(buf_str(&clean));
	return 0;
}

static int set_exit(struct reader *r, struct handoff_statement *s, const char *value)
{
	int64_t number = 0;

	if (text_parse_i64(value, &number) < 0 || number < INT_MIN || number > INT_MAX)
		return fail_line(r, "'%s' is no exit code", value);
	s->has_exit = true;
	s->exit_code = (int)number;
	return 0;
}

static int set_member(struct reader *r, const char *key, const struct buf *value)
{
	struct handoff_statement *s = last_statement(r);
	const char *text = buf_str(value);
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	if (strcmp(key, "origin") == 0)
		return set_origin(r, s, text);
	if (strcmp(key, "verbatim") == 0)
		return set_verbatim(r, s, value);
	if (strcmp(key, "exit_code") == 0)
		return set_exit(r, s, text);
	if (strcmp(key, "state") == 0)
		return handoff_state_find(text, &s->state) < 0
			       ? fail_line(r, "'%s' is no state", text)
			       : 0;
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			handoff_setn(handoff_member(s, &fields[i]), text, value->len);
	return 0;
}

/* A bit for each member, so that none is given twice. */
static unsigned member_bit(const char *key)
{
	static const char *const own[] = {"origin", "verbatim", "exit_code", "state"};
	size_t n;
	const struct handoff_member *fields = handoff_fields(&n);

	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		if (strcmp(own[i], key) == 0)
			return 1u << i;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return 1u << (i + ARRAY_SIZE(own));
	return 0;
}

static int read_member(struct reader *r, size_t mark)
{
	const char *s = r->text + 2;
	AUTO_FREE char *key = mem_strndup(s + 2, mark - 3);
	AUTO_BUF struct buf value = BUF_INIT;
	unsigned line = r->line, bit = member_bit(key);

	if (r->open != OPEN_MEMBERS && close_text(r, true) < 0)
		return -1;
	r->open = OPEN_MEMBERS;
	if (r->seen & bit)
		return fail_line(r, "'%s' is given twice", key);
	r->seen |= bit;
	if (read_value(r, key, s + mark, r->n - 2 - mark, &value) < 0)
		return -1;
	unsigned end = r->line;
	r->line = line; /* a bad value is told where it begins */
	if (set_member(r, key, &value) < 0)
		return -1;
	r->line = end;
	return 0;
}

static int unknown_member(struct reader *r)
{
	static const char *const own[] = {"origin", "verbatim", "exit_code", "state"};
	const char *known[32];
	size_t n, n_fields, len = 0;
	const struct handoff_member *fields = handoff_fields(&n_fields);
	AUTO_BUF struct buf text = BUF_INIT;

	for (n = 0; n < ARRAY_SIZE(own); n++)
		known[n] = own[n];
	for (size_t i = 0; i < n_fields && n < ARRAY_SIZE(known); i++)
		known[n++] = fields[i].key;
	if (!line_starts(r, "  - "))
		return fail_line(r,
				 "after a member of a statement ('  - key: value') another one, a "
				 "statement ('- ') or a part ('## ') is expected");
	while (4 + len < r->n && r->text[4 + len] != ':' && r->text[4 + len] != ' ')
		len++;
	AUTO_FREE char *key = mem_strndup(r->text + 4, len);
	handoff_unknown(&text, key, known, n);
	return fail_line(r, "%s", buf_str(&text));
}

/* ---- lines ---- */

static int begin_part(struct reader *r)
{
	const char *titles[HANDOFF_N_PARTS];
	AUTO_FREE char *title = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	size_t n = r->n;

	while (n > 3 && (r->text[n - 1] == ' ' || r->text[n - 1] == '\t'))
		n--;
	title = mem_strndup(r->text + 3, n - 3);
	if (close_text(r, false) < 0)
		return -1;
	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		titles[part] = handoff_part_title(part);
		if (strcasecmp(title, titles[part]) != 0 &&
		    strcmp(title, handoff_part_key(part)) != 0)
			continue;
		if (r->parts_seen & 1u << part)
			return fail_line(r, "the part '%s' is there twice", title);
		r->parts_seen |= 1u << part;
		r->part = part;
		r->in_part = true;
		r->style = OPEN_NOTHING;
		return 0;
	}
	handoff_unknown(&text, title, titles, HANDOFF_N_PARTS);
	return fail_line(r, "the part '%s", buf_str(&text) + 1);
}

/* A line of the open item's text, or one of its members. */
static int read_indented(struct reader *r)
{
	const char *s = r->text + 2;
	size_t n = r->n - 2, slashes = 0, mark = handoff_member_mark(s, n, &slashes);

	if (r->open == OPEN_NOTHING)
		return fail_line(r, "this belongs to no statement; one begins with '- '");
	if (mark && !slashes)
		return read_member(r, mark);
	if (r->open == OPEN_MEMBERS)
		return unknown_member(r);
	if (mark)
		s++, n--;
	buf_addc(&r->body, '\n');
	buf_add(&r->body, s, n);
	return 0;
}

static int read_blank(struct reader *r)
{
	if (r->open == OPEN_PARAGRAPH)
		return close_text(r, false);
	if (r->open != OPEN_ITEM_TEXT)
		return 0;
	/* Blanks beyond the indentation are text. */
	buf_addc(&r->body, '\n');
	if (r->n > 2)
		buf_add(&r->body, r->text + 2, r->n - 2);
	return 0;
}

static int read_line(struct reader *r)
{
	if (blank(r->text, r->n))
		return read_blank(r);
	if (line_starts(r, "## "))
		return begin_part(r);
	if (!r->in_part)
		return line_starts(r, "# ") ? 0
					    : fail_line(r, "a part ('## Goal') is expected first");
	if (line_starts(r, "  "))
		return read_indented(r);
	if (line_starts(r, "- "))
		return begin_text(r, OPEN_ITEM_TEXT, r->text + 2, r->n - 2);
	if (r->n == 1 && r->text[0] == '-')
		return begin_text(r, OPEN_ITEM_TEXT, "", 0);
	if (line_starts(r, "#"))
		return fail_line(r, "parts have headings with '## '");
	if (r->open != OPEN_PARAGRAPH)
		return begin_text(r, OPEN_PARAGRAPH, r->text, r->n);
	buf_addc(&r->body, '\n');
	buf_add(&r->body, r->text, r->n);
	return 0;
}

/* ---- the document ---- */

static int read_front(struct handoff *handoff, const char *yaml, size_t n, struct err *err)
{
	struct yaml_doc *doc = NULL;
	struct err why = ERR_INIT;
	int rc = yaml_parse(yaml, n, "line", 2, &doc, &why);

	if (rc == 0 && !json_object_is_type(yaml_root(doc), json_type_object))
		rc = err_set(&why, ERR_INVALID, "the header must be 'key: value' lines");
	if (rc == 0 && json_has(yaml_root(doc), "parts"))
		rc = err_set(&why, ERR_INVALID,
			     "parts stand below the header, with '## ' headings");
	if (rc == 0)
		rc = handoff_header_from_json(handoff, yaml_root(doc), &why);
	if (rc < 0 && doc) {
		/* The message begins with the member, if it is about one. */
		const char *name = why.message + (why.message[0] == '\'');
		AUTO_FREE char *pointer = mem_printf("/%.*s", (int)strcspn(name, "' "), name);
		int line = yaml_line(doc, pointer);
		err_prefix(&why, "line %d", line ? line : 1);
	}
	yaml_free(doc);
	if (rc == 0)
		return 0;
	return err_set(err, why.code == ERR_UNSUPPORTED ? ERR_UNSUPPORTED : ERR_INVALID, "%s",
		       why.message);
}

int handoff_from_markdown(const char *text, size_t n, struct handoff **ret, struct err *err)
{
	const char *yaml, *body;
	size_t yaml_len, body_len;
	int first = yaml_front_matter(text, n, &yaml, &yaml_len, &body, &body_len);
	struct reader r = {.at = body,
			   .end = body + body_len,
			   .line = (unsigned)first - 1,
			   .body = BUF_INIT,
			   .err = err};
	int rc;

	if (!yaml)
		return err_set(err, ERR_INVALID,
			       "line 1: this is no handoff: it begins with '---' and 'schema: %s'",
			       HANDOFF_SCHEMA);
	r.handoff = handoff_new();
	rc = read_front(r.handoff, yaml, yaml_len, err);
	while (rc == 0 && next_line(&r))
		rc = read_line(&r);
	if (rc == 0)
		rc = close_text(&r, false);
	buf_release(&r.body);
	if (rc < 0)
		handoff_free(r.handoff);
	else
		*ret = r.handoff;
	return rc;
}

int handoff_parse(const char *bytes, size_t n, struct handoff **ret, struct err *err)
{
	size_t at = 0;

	if (n > HANDOFF_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE, "a handoff has at most %zu bytes",
			       HANDOFF_BYTES_MAX);
	if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		at = 3; /* what some editors put before any text */
	while (at < n && strchr(" \t\r\n", bytes[at]))
		at++;
	if (at == n || bytes[at] != '{')
		return handoff_from_markdown(bytes, n, ret, err);
	AUTO_JSON struct json_object *json = NULL;
	if (json_parse(bytes + at, n - at, &json, err) < 0)
		return -1;
	return handoff_from_json(json, ret, err);
}
