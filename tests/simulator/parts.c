/*
 * parts.c - reads JSON values and the content of messages.
 */
#include "parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void parts_fail(struct parts *p, const char *fmt, ...)
{
	struct reading *r = p->reading;
	va_list ap;
	int n;

	p->error = true;
	if (r->wrong[0])
		return;
	n = snprintf(r->wrong, sizeof(r->wrong), "byte %td, message %zu: ", p->at - p->begin, r->n);
	va_start(ap, fmt);
	vsnprintf(r->wrong + n, sizeof(r->wrong) - (size_t)n, fmt, ap);
	va_end(ap);
	p->at = p->end;
}

bool parts_failed(const struct parts *p)
{
	return p->error;
}

void parts_expect(struct parts *p, char c)
{
	if (p->at < p->end && *p->at == c)
		p->at++;
	else
		parts_fail(p, "'%c' is missing", c);
}

/* A list's first item stands right behind its opening, where no value can end. */
bool parts_next(struct parts *p, char close)
{
	bool first = p->at > p->begin && (p->at[-1] == '{' || p->at[-1] == '[');

	if (p->at >= p->end) {
		parts_fail(p, "the body ends in the middle");
	} else if (*p->at == close) {
		p->at++;
		return true;
	} else if (!first && *p->at != ',') {
		parts_fail(p, "a comma is missing");
	} else if (!first) {
		p->at++;
	}
	return parts_failed(p);
}

/* ---- strings ---- */

static int hex_of(const char *s)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Behind the backslash. A high surrogate takes its low one with it. */
static const char *over_escape(struct parts *p, const char *s, bool *blank)
{
	int code;

	if (s >= p->end)
		return NULL;
	if (*s != 'u') {
		if (!strchr("\"\\/bfnrt", *s))
			return NULL;
		*blank &= strchr("fnrt", *s) != NULL;
		return s + 1;
	}
	code = p->end - s > 5 ? hex_of(s + 1) : -1;
	*blank = false;
	if (code < 0 || (code >= 0xdc00 && code <= 0xdfff))
		return NULL;
	if (code < 0xd800 || code > 0xdbff)
		return s + 5;
	if (p->end - s < 12 || s[5] != '\\' || s[6] != 'u')
		return NULL;
	code = hex_of(s + 7);
	return code >= 0xdc00 && code <= 0xdfff ? s + 11 : NULL;
}

/* Over one character that is not ASCII; NULL: it is no UTF-8. */
static const char *over_wide(const struct parts *p, const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	int more = u[0] >= 0xf0 ? 3 : u[0] >= 0xe0 ? 2 : 1;

	if (u[0] < 0xc2 || u[0] > 0xf4 || p->end - s <= more)
		return NULL;
	for (int i = 1; i <= more; i++)
		if ((u[i] & 0xc0) != 0x80)
			return NULL;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
	    (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return NULL;
	return s + more + 1;
}

void parts_string(struct parts *p, struct parts_string *ret)
{
	const uint16_t *weights = p->reading->tokenizer->byte;
	const char *s = p->at + 1;

	*ret = (struct parts_string){.s = s, .blank = true};
	if (p->at >= p->end || *p->at != '"') {
		parts_fail(p, "a string is missing");
		return;
	}
	while (s < p->end && *s != '"') {
		unsigned char c = (unsigned char)*s;
		const char *next = s + 1;

		ret->weight += weights[c];
		if (c >= 0x80) {
			ret->weight += weights[c];
			next = over_wide(p, s);
			ret->blank = false;
		} else if (c == '\\') {
			next = over_escape(p, s + 1, &ret->blank);
			ret->escaped = true;
		} else if (c < 0x20) {
			next = NULL;
		} else {
			ret->blank &= c == ' ';
		}
		if (!next) {
			p->at = s;
			parts_fail(p, "a string holds what JSON or UTF-8 does not allow");
			return;
		}
		s = next;
	}
	ret->n = (size_t)(s - ret->s);
	p->weight += ret->weight;
	p->at = s;
	parts_expect(p, '"');
}

bool parts_is(const struct parts_string *s, const char *word)
{
	return s->n == strlen(word) && !memcmp(s->s, word, s->n);
}

/* ---- values ---- */

int64_t parts_number(struct parts *p)
{
	int64_t value = 0;
	const char *s = p->at;

	while (s < p->end && *s >= '0' && *s <= '9')
		value = value * 10 + (*s++ - '0');
	if (s == p->at)
		parts_fail(p, "a number is missing");
	else
		p->at = s;
	return value;
}

static void skip_word(struct parts *p)
{
	static const char *const words[] = {"true", "false", "null"};
	const char *s = p->at;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(p->end - s) >= n && !memcmp(s, words[i], n)) {
			p->at += n;
			return;
		}
	}
	while (s < p->end && strchr("+-.eE0123456789", *s))
		s++;
	if (s == p->at)
		parts_fail(p, "a value is missing");
	else
		p->at = s;
}

void parts_skip(struct parts *p)
{
	struct parts_string string;
	char open = p->at < p->end ? *p->at : '\0';

	if (open == '"') {
		parts_string(p, &string);
	} else if (open == '{' || open == '[') {
		char close = open == '{' ? '}' : ']';

		p->at++;
		while (!parts_failed(p) && !parts_next(p, close)) {
			if (open == '{') {
				parts_string(p, &string);
				parts_expect(p, ':');
			}
			parts_skip(p);
		}
	} else {
		skip_word(p);
	}
}

bool parts_has(struct parts *p, const char *word)
{
	const char *from = p->at;

	parts_skip(p);
	return memmem(from, (size_t)(p->at - from), word, strlen(word)) != NULL;
}

/* ---- content ---- */

void parts_copy(struct parts *p)
{
	if (p->copied && p->at > p->copied)
		buf_add(&p->reading->bytes, p->copied, (size_t)(p->at - p->copied));
	p->copied = p->at;
}

size_t parts_mark_len(const char *s, const char *end)
{
	static const char start[] = ",\"cache_control\":{";
	const char *close;

	if ((size_t)(end - s) < sizeof(start) || memcmp(s, start, sizeof(start) - 1) != 0)
		return 0;
	close = memchr(s, '}', (size_t)MIN(end - s, 100));
	return close ? (size_t)(close + 1 - s) : 0;
}

static struct seen_block *add_block(struct parts *p, enum seen_kind kind)
{
	struct reading *r = p->reading;

	MEM_GROW(r->blocks, r->cap_blocks, r->n_blocks + 1);
	r->blocks[r->n_blocks] = (struct seen_block){.kind = kind};
	r->list[r->n].weight += r->tokenizer->block;
	return &r->blocks[r->n_blocks++];
}

static void add_weight(struct parts *p, int64_t weight)
{
	p->reading->list[p->reading->n].weight += weight;
}

/* The prefix that a signature of ours names: its first 16 digits. */
static uint64_t prefix_of(const struct parts_string *s)
{
	int high = s->n >= 16 ? hex_of(s->s) : -1;
	uint64_t value = 0;

	if (high < 0)
		return 0;
	for (size_t i = 0; i < 16; i += 4)
		value = value << 16 | (uint64_t)(hex_of(s->s + i) & 0xffff);
	return value;
}

static enum seen_kind kind_of(const struct parts_string *type)
{
	static const struct {
		const char *name;
		enum seen_kind kind;
	} kinds[] = {
		{"text", SEEN_TEXT},
		{"thinking", SEEN_THINKING},
		{"redacted_thinking", SEEN_THINKING},
		{"tool_use", SEEN_CALL},
		{"tool_result", SEEN_RESULT},
		{"image", SEEN_IMAGE},
		{"image_url", SEEN_IMAGE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (parts_is(type, kinds[i].name))
			return kinds[i].kind;
	return SEEN_OTHER;
}

static void read_blocks(struct parts *p);

/* What a result holds: a text, or parts of which an image is one. */
static void read_result_content(struct parts *p, size_t index)
{
	const char *from = p->at;
	struct reading *r = p->reading;
	int64_t before = r->list[r->n].weight;

	if (p->at < p->end && *p->at == '[') {
		size_t first = r->n_blocks;

		read_blocks(p);
		r->blocks[index].blank = r->n_blocks == first;
		for (size_t i = first; i < r->n_blocks; i++)
			r->blocks[index].blank |= r->blocks[i].blank;
		r->n_blocks = first;
	} else {
		struct parts_string text;

		parts_string(p, &text);
		add_weight(p, text.weight);
		r->blocks[index].blank = text.blank;
	}
	r->blocks[index].hash = hash_bytes(from, (size_t)(p->at - from));
	r->blocks[index].size = (size_t)(p->at - from);
	r->blocks[index].weight = r->list[r->n].weight - before;
}

/* One member of a content block. */
static void read_member(struct parts *p, size_t index, const struct parts_string *key)
{
	struct seen_block *b = &p->reading->blocks[index];
	struct parts_string value;
	int64_t before = p->weight;

	if (parts_is(key, "content")) {
		read_result_content(p, index);
	} else if (parts_is(key, "input") || parts_is(key, "source") ||
		   parts_is(key, "image_url")) {
		const char *from = p->at;

		parts_skip(p);
		add_weight(p, b->kind == SEEN_IMAGE ? p->reading->tokenizer->image
						    : p->weight - before);
		if (b->kind == SEEN_CALL && *from != '{')
			parts_fail(p, "the input of a call is no object");
	} else if (p->at < p->end && *p->at == '"') {
		parts_string(p, &value);
		if (parts_is(key, "text") || parts_is(key, "thinking") || parts_is(key, "name"))
			add_weight(p, value.weight);
		if (parts_is(key, "text")) {
			b->blank = value.blank;
			b->size = value.n;
		} else if (parts_is(key, "name")) {
			b->name = hash_bytes(value.s, value.n);
		} else if (parts_is(key, "id") || parts_is(key, "tool_use_id")) {
			b->id = hash_bytes(value.s, value.n) | 1;
		} else if (parts_is(key, "signature")) {
			b->signature = prefix_of(&value);
		}
	} else {
		parts_skip(p);
	}
}

/* A marker is no part of the message: the bytes before and behind it are. */
static void over_mark(struct parts *p, size_t index)
{
	struct seen_block *b = &p->reading->blocks[index];
	size_t n = parts_mark_len(p->at, p->end);

	if (!n)
		return;
	parts_copy(p);
	p->at += n;
	p->copied = p->at;
	reading_mark(p->reading, p->reading->n,
		     index - p->reading->list[p->reading->n].first_block);
	b->marked = true;
	if (b->kind == SEEN_THINKING || (b->kind == SEEN_TEXT && b->blank))
		parts_fail(p, "a cache marker on thinking or on empty text");
}

static void read_block(struct parts *p)
{
	struct parts_string key, type = {.n = 0};
	size_t index = p->reading->n_blocks;

	parts_expect(p, '{');
	parts_string(p, &key);
	parts_expect(p, ':');
	if (!parts_is(&key, "type")) {
		parts_fail(p, "a block that does not begin with its type");
		return;
	}
	parts_string(p, &type);
	add_block(p, kind_of(&type));
	for (over_mark(p, index); !parts_failed(p) && !parts_next(p, '}'); over_mark(p, index)) {
		parts_string(p, &key);
		parts_expect(p, ':');
		read_member(p, index, &key);
	}
	if (p->reading->blocks[index].kind == SEEN_TEXT && p->reading->blocks[index].blank)
		parts_fail(p, "text content blocks must be non-empty");
}

static void read_blocks(struct parts *p)
{
	parts_expect(p, '[');
	while (!parts_failed(p) && !parts_next(p, ']'))
		read_block(p);
}

/* ---- what the provider is asked to do with it ---- */

/* {"type": ..., "value": N} */
static int64_t read_value(struct parts *p)
{
	struct parts_string key;
	int64_t value = 0;

	parts_expect(p, '{');
	while (!parts_failed(p) && !parts_next(p, '}')) {
		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "value"))
			value = parts_number(p);
		else
			parts_skip(p);
	}
	return value;
}

static void read_excluded(struct parts *p)
{
	struct seen_edits *e = &p->reading->edits;
	struct parts_string name;

	parts_expect(p, '[');
	while (!parts_failed(p) && !parts_next(p, ']')) {
		parts_string(p, &name);
		if (e->n_excluded < SEEN_TOOLS)
			e->excluded[e->n_excluded++] = hash_bytes(name.s, name.n);
	}
}

static void read_edit(struct parts *p)
{
	struct seen_edits *e = &p->reading->edits;
	struct parts_string key, type;

	e->present = true;
	parts_expect(p, '{');
	while (!parts_failed(p) && !parts_next(p, '}')) {
		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "trigger"))
			e->trigger = read_value(p);
		else if (parts_is(&key, "keep"))
			e->keep = read_value(p);
		else if (parts_is(&key, "clear_at_least"))
			e->least = read_value(p);
		else if (parts_is(&key, "exclude_tools"))
			read_excluded(p);
		else if (!parts_is(&key, "type"))
			parts_fail(p, "context_management.edits: Extra inputs are not permitted");
		else
			parts_string(p, &type);
	}
}

void parts_edits(struct parts *p)
{
	struct parts_string key;

	parts_expect(p, '{');
	parts_string(p, &key);
	parts_expect(p, ':');
	if (!parts_is(&key, "edits"))
		parts_fail(p, "context_management: Extra inputs are not permitted");
	parts_expect(p, '[');
	while (!parts_failed(p) && !parts_next(p, ']'))
		read_edit(p);
	parts_expect(p, '}');
}

/* ---- messages ---- */

static enum seen_role role_of(struct parts *p, const struct parts_string *s)
{
	static const char *const names[] = {"system", "user", "assistant", "tool"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (parts_is(s, names[i]))
			return (enum seen_role)i;
	parts_fail(p, "an unknown role");
	return ROLE_USER;
}

/* The arguments of a call in this form are a text that must hold an object. */
static void check_arguments(struct parts *p, const struct parts_string *s)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct parts inner;

	for (size_t i = 0; i < s->n; i++) {
		if (s->s[i] == '\\' && i + 1 < s->n) {
			char c = s->s[++i];

			buf_addc(&text, c == 'n' || c == 't' || c == 'r' ? ' ' : c);
		} else {
			buf_addc(&text, s->s[i]);
		}
	}
	/* Escapes of the inner text were doubled by the outer one, so this reads it as it is. */
	inner = (struct parts){.reading = p->reading,
			       .begin = text.data,
			       .at = text.data,
			       .end = text.data + text.len};
	if (!text.len || *text.data != '{')
		parts_fail(p, "the arguments of a call are no object");
	else
		parts_skip(&inner);
	if (inner.error || inner.at != inner.end)
		parts_fail(p, "the arguments of a call are no JSON");
}

static void read_call(struct parts *p)
{
	struct parts_string key, value;
	size_t index = p->reading->n_blocks;

	add_block(p, SEEN_CALL);
	parts_expect(p, '{');
	while (!parts_failed(p) && !parts_next(p, '}')) {
		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "function")) {
			parts_expect(p, '{');
			while (!parts_failed(p) && !parts_next(p, '}')) {
				parts_string(p, &key);
				parts_expect(p, ':');
				parts_string(p, &value);
				add_weight(p, value.weight);
				if (parts_is(&key, "arguments"))
					check_arguments(p, &value);
			}
			continue;
		}
		parts_string(p, &value);
		if (parts_is(&key, "id"))
			p->reading->blocks[index].id = hash_bytes(value.s, value.n) | 1;
	}
}

static void read_content(struct parts *p, struct seen_message *m)
{
	struct reading *r = p->reading;
	struct parts_string text;
	const char *from = p->at;

	if (p->at < p->end && *p->at == '[') {
		read_blocks(p);
		return;
	}
	if (p->at < p->end && *p->at == 'n') {
		parts_skip(p);
		return;
	}
	parts_string(p, &text);
	if (m->role == ROLE_ASSISTANT && !text.n)
		return; /* "" beside calls: some servers want it so */
	struct seen_block *b = add_block(p, m->role == ROLE_TOOL ? SEEN_RESULT : SEEN_TEXT);
	b->blank = text.blank;
	b->size = text.n;
	b->hash = hash_bytes(from, (size_t)(p->at - from));
	r->list[r->n].weight += text.weight;
	if (b->blank)
		parts_fail(p, "text content blocks must be non-empty");
}

void parts_message(struct parts *p)
{
	struct reading *r = p->reading;
	uint64_t answers = 0;

	parts_expect(p, '{');
	while (!parts_failed(p) && !parts_next(p, '}')) {
		struct seen_message *m = &r->list[r->n];
		struct parts_string key, value;

		parts_string(p, &key);
		parts_expect(p, ':');
		if (parts_is(&key, "content")) {
			read_content(p, m);
		} else if (parts_is(&key, "tool_calls")) {
			parts_expect(p, '[');
			while (!parts_failed(p) && !parts_next(p, ']'))
				read_call(p);
		} else {
			parts_string(p, &value);
			if (parts_is(&key, "role"))
				m->role = role_of(p, &value);
			else if (parts_is(&key, "tool_call_id"))
				answers = hash_bytes(value.s, value.n) | 1;
			else if (parts_is(&key, "reasoning_content")) {
				m->reasoning = true;
				m->weight += value.weight;
			}
		}
	}
	if (r->list[r->n].role == ROLE_TOOL && r->n_blocks > r->list[r->n].first_block)
		r->blocks[r->n_blocks - 1].id = answers;
}
