/*
 * doc.c - the strict in-place JSON reader. See doc.h for the form of the result.
 *
 * A recursive descent with a depth limit; strings are decoded onto themselves, because the decoded
 * form is never longer than the escaped one. UTF-8 is checked where non-ASCII bytes stand, so that
 * plain text runs through one comparison per byte.
 */
#include "rehearsal/doc.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/hash.h"

struct reader {
	struct doc *doc;
	char *s;
	size_t n;
	size_t at;
	size_t line, line_start; /* line ends stand between tokens only: inside strings they are
				    refused */
	struct doc_failure *failure;
};

/* The first failure stands: every caller returns at once. */
static int fail(struct reader *r, size_t at, const char *what)
{
	r->failure->what = what;
	r->failure->at = at;
	r->failure->line = r->line;
	r->failure->column = at - r->line_start + 1;
	return -1;
}

static void skip_blanks(struct reader *r)
{
	for (; r->at < r->n; r->at++) {
		char c = r->s[r->at];

		if (c == '\n') {
			r->line++;
			r->line_start = r->at + 1;
		} else if (c != ' ' && c != '\t' && c != '\r') {
			break;
		}
	}
}

/* Nodes are named by index, never by pointer: the array moves while it grows. */
static uint32_t node_add(struct reader *r, enum doc_type type)
{
	struct doc *doc = r->doc;

	MEM_GROW(doc->nodes, doc->cap, doc->n + 1);
	doc->nodes[doc->n] = (struct doc_node){.type = type, .next = doc->n + 1};
	return doc->n++;
}

static int read_hex4(const struct reader *r, size_t at, unsigned *ret)
{
	unsigned value = 0;

	if (at + 4 > r->n)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		char c = r->s[i];

		value <<= 4;
		if (c >= '0' && c <= '9')
			value |= (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value |= (unsigned)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			value |= (unsigned)(c - 'A' + 10);
		else
			return -1;
	}
	*ret = value;
	return 0;
}

/* At most four bytes for an escape of at least six, so the output never passes the input. */
static size_t write_utf8(char *out, unsigned cp)
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* \uXXXX at r->at (behind the u). Pairs are joined; a lone half is what providers refuse (trap 89).
 */
static int read_unicode(struct reader *r, char **out)
{
	unsigned high, low;

	if (read_hex4(r, r->at, &high) < 0)
		return fail(r, r->at, "Invalid \\uXXXX escape");
	if (high >= 0xdc00 && high <= 0xdfff)
		return fail(r, r->at, "no high surrogate in string");
	r->at += 4;
	if (high >= 0xd800 && high <= 0xdbff) {
		if (r->at + 6 > r->n || r->s[r->at] != '\\' || r->s[r->at + 1] != 'u' ||
		    read_hex4(r, r->at + 2, &low) < 0 || low < 0xdc00 || low > 0xdfff)
			return fail(r, r->at, "no low surrogate in string");
		r->at += 6;
		high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	*out += write_utf8(*out, high);
	return 0;
}

static int read_escape(struct reader *r, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *hit;

	if (r->at >= r->n)
		return fail(r, r->at, "unexpected end of data");
	if (r->s[r->at] == 'u') {
		r->at++;
		return read_unicode(r, out);
	}
	hit = r->s[r->at] ? strchr(from, r->s[r->at]) : NULL;
	if (!hit)
		return fail(r, r->at, "Invalid \\escape");
	*(*out)++ = to[hit - from];
	r->at++;
	return 0;
}

/* Copies a run of plain characters down; checks UTF-8 of the whole run if it is not all ASCII. */
static int read_plain(struct reader *r, char **out)
{
	size_t start = r->at, len;
	unsigned char all = 0;

	while (r->at < r->n) {
		unsigned char c = (unsigned char)r->s[r->at];

		if (c == '"' || c == '\\' || c < 0x20)
			break;
		all |= c;
		r->at++;
	}
	len = r->at - start;
	if (all & 0x80) {
		size_t valid = text_valid_prefix(r->s + start, len);

		if (valid != len)
			return fail(r, start + valid,
				    "str is not valid UTF-8: surrogates not allowed");
	}
	if (*out != r->s + start)
		memmove(*out, r->s + start, len);
	*out += len;
	return 0;
}

/* The node is made first and filled last, as `next` of a string is always its own index + 1. */
static int read_string(struct reader *r)
{
	uint32_t node = node_add(r, DOC_STRING);
	char *start = r->s + r->at + 1, *out = start;

	r->at++;
	for (;;) {
		if (read_plain(r, &out) < 0)
			return -1;
		if (r->at >= r->n)
			return fail(r, r->at, "unexpected end of data");
		if (r->s[r->at] == '"')
			break;
		if (r->s[r->at] != '\\')
			return fail(r, r->at, "Invalid control character");
		r->at++;
		if (read_escape(r, &out) < 0)
			return -1;
	}
	r->at++;
	r->doc->nodes[node].s = start;
	r->doc->nodes[node].len = (size_t)(out - start);
	return 0;
}

static size_t skip_digits(struct reader *r)
{
	size_t from = r->at;

	while (r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9')
		r->at++;
	return r->at - from;
}

/* The form of RFC 8259 and no more: no leading zeros, no plus, no lone point. The value is
 * converted only when somebody asks for it. */
static int read_number(struct reader *r)
{
	size_t from = r->at, digits, first;
	uint32_t node;

	if (r->s[r->at] == '-')
		r->at++;
	first = r->at;
	digits = skip_digits(r);
	if (!digits || (digits > 1 && r->s[first] == '0'))
		return fail(r, from, "unexpected character");
	if (r->at < r->n && r->s[r->at] == '.') {
		r->at++;
		if (!skip_digits(r))
			return fail(r, from, "unexpected character");
	}
	if (r->at < r->n && (r->s[r->at] == 'e' || r->s[r->at] == 'E')) {
		r->at++;
		if (r->at < r->n && (r->s[r->at] == '+' || r->s[r->at] == '-'))
			r->at++;
		if (!skip_digits(r))
			return fail(r, from, "unexpected character");
	}
	node = node_add(r, DOC_NUMBER);
	r->doc->nodes[node].s = r->s + from;
	r->doc->nodes[node].len = r->at - from;
	return 0;
}

static int read_word(struct reader *r)
{
	static const struct {
		const char *word;
		enum doc_type type;
	} words[] = {{"null", DOC_NULL}, {"true", DOC_TRUE}, {"false", DOC_FALSE}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i].word);

		if (r->n - r->at >= len && memcmp(r->s + r->at, words[i].word, len) == 0) {
			r->at += len;
			node_add(r, words[i].type);
			return 0;
		}
	}
	return fail(r, r->at, "unexpected character");
}

static int read_value(struct reader *r, unsigned depth);

/* Keys are string nodes before their values. Duplicates are not searched for: a look-up takes the
 * first one, and the fingerprint sees them all. */
static int read_key(struct reader *r)
{
	if (r->at >= r->n)
		return fail(r, r->at, "unexpected end of data");
	if (r->s[r->at] != '"')
		return fail(r, r->at, "Expecting property name enclosed in double quotes");
	if (read_string(r) < 0)
		return -1;
	skip_blanks(r);
	if (r->at >= r->n)
		return fail(r, r->at, "unexpected end of data");
	if (r->s[r->at] != ':')
		return fail(r, r->at, "Expecting ':' delimiter");
	r->at++;
	return 0;
}

/* `next` of the container can be set only when its last child is known: until then its subtree is
 * open. */
static int read_container(struct reader *r, unsigned depth)
{
	bool object = r->s[r->at] == '{';
	char close = object ? '}' : ']';
	uint32_t node = node_add(r, object ? DOC_OBJECT : DOC_ARRAY);

	if (depth >= DOC_MAX_DEPTH)
		return fail(r, r->at, "recursion limit exceeded");
	r->at++;
	skip_blanks(r);
	if (r->at < r->n && r->s[r->at] == close) {
		r->at++;
		return 0;
	}
	for (;;) {
		skip_blanks(r);
		if (object && read_key(r) < 0)
			return -1;
		if (read_value(r, depth + 1) < 0)
			return -1;
		r->doc->nodes[node].count++;
		skip_blanks(r);
		if (r->at >= r->n)
			return fail(r, r->at, "unexpected end of data");
		if (r->s[r->at] == close)
			break;
		if (r->s[r->at] != ',')
			return fail(r, r->at, "Expecting ',' delimiter");
		r->at++;
	}
	r->at++;
	r->doc->nodes[node].next = r->doc->n;
	return 0;
}

static int read_value(struct reader *r, unsigned depth)
{
	skip_blanks(r);
	if (r->at >= r->n)
		return fail(r, r->at, "unexpected end of data");
	switch (r->s[r->at]) {
	case '{':
	case '[': return read_container(r, depth);
	case '"': return read_string(r);
	case '-':
	case '0' ... '9': return read_number(r);
	default: return read_word(r);
	}
}

int doc_parse(struct doc *doc, char *s, size_t n, struct doc_failure *failure)
{
	struct reader r = {.doc = doc, .s = s, .n = n, .line = 1, .failure = failure};

	doc->n = 0;
	node_add(&r, DOC_NULL);
	if (read_value(&r, 0) < 0)
		return -1;
	skip_blanks(&r);
	if (r.at != n)
		return fail(&r, r.at, "Extra data");
	return 0;
}

void doc_release(struct doc *doc)
{
	free(doc->nodes);
	*doc = (struct doc){.nodes = NULL};
}

enum doc_type doc_type(const struct doc *doc, uint32_t node)
{
	return doc->nodes[node].type;
}

uint32_t doc_get(const struct doc *doc, uint32_t object, const char *key)
{
	size_t len = strlen(key);

	if (doc->nodes[object].type != DOC_OBJECT)
		return 0;
	DOC_EACH_KEY(doc, object, k)
	{
		const struct doc_node *node = &doc->nodes[k];

		if (node->len == len && memcmp(node->s, key, len) == 0)
			return k + 1;
	}
	return 0;
}

bool doc_is(const struct doc *doc, uint32_t node, const char *text)
{
	const struct doc_node *it = &doc->nodes[node];

	return it->type == DOC_STRING && it->len == strlen(text) &&
	       memcmp(it->s, text, it->len) == 0;
}

int64_t doc_i64(const struct doc *doc, uint32_t node, int64_t dflt)
{
	const struct doc_node *it = &doc->nodes[node];
	char text[24], *end;
	long long value;

	if (it->type != DOC_NUMBER || it->len >= sizeof(text))
		return dflt;
	memcpy(text, it->s, it->len);
	text[it->len] = '\0';
	errno = 0;
	value = strtoll(text, &end, 10);
	return errno || *end ? dflt : (int64_t)value;
}

/* Type and end of each container are mixed in, so that [[1],2] and [[1,2]] differ. Keys count in
 * their order: a client that sorts them anew has changed the bytes that a provider would compare.
 */
uint64_t doc_hash(const struct doc *doc, uint32_t node, uint64_t seed, const char *skip)
{
	const struct doc_node *it = &doc->nodes[node];
	size_t skip_len = skip ? strlen(skip) : 0;

	seed = hash_mix(seed, (uint64_t)it->type + 1);
	if (it->type == DOC_STRING || it->type == DOC_NUMBER)
		return hash_bytes(seed, it->s, it->len);
	if (it->type == DOC_ARRAY) {
		DOC_EACH(doc, node, child)
		seed = doc_hash(doc, child, seed, skip);
	} else if (it->type == DOC_OBJECT) {
		DOC_EACH_KEY(doc, node, k)
		{
			const struct doc_node *key = &doc->nodes[k];

			if (skip && key->len == skip_len && memcmp(key->s, skip, skip_len) == 0)
				continue;
			seed = hash_bytes(seed, key->s, key->len);
			seed = doc_hash(doc, k + 1, seed, skip);
		}
	}
	return hash_mix(seed, 0x5d);
}
