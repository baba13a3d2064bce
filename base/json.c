/*
 * json.c - reading JSON into json-c trees, typed getters, building, and writing.
 *
 * The reader is our own and not json-c's tokener: models put raw control characters into strings
 * (trap 39), which a strict tokener refuses and a lenient one pays for by also taking comments,
 * single quotes, NaN and unfinished values. Tool arguments decide what a shell runs, so the line
 * between "repairable" and "unfinished" has to be exactly ours, the same with every version of
 * json-c, with the offset of the error. The writer is ours too: everything written is valid UTF-8.
 *
 * The values themselves are json-c's, and this file with json_schema.c is their home.
 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum { JSON_DEPTH_MAX = 64 };

struct reader {
	const char *start, *at, *end;
	int depth;
	struct buf text; /* the string being decoded */
	struct err *err;
};

static int parse_value(struct reader *r, struct json_object **ret);

static int fail(struct reader *r, const char *what)
{
	return err_set(r->err, ERR_INVALID, "invalid JSON: %s at byte %zu", what,
		       (size_t)(r->at - r->start));
}

/* Only the four blanks of RFC 8259: no form feed, no byte order mark, no comments. */
static void skip_blanks(struct reader *r)
{
	while (r->at < r->end &&
	       (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
}

/* --- strings --- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four digits after "\u"; -1 if they are not there. */
static int peek_unit(const char *s, const char *end)
{
	int unit = 0;
	if (end - s < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(s[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* As UTF-8. The caller has replaced surrogates, which have no encoding. */
static void add_code_point(struct buf *out, uint32_t c)
{
	char s[4];
	size_t n = 0;
	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
		s[n++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		s[n++] = (char)(0x80 | (c & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		s[n++] = (char)(0x80 | (c & 0x3f));
	}
	buf_add(out, s, n);
}

/* After "\u". A surrogate without its other half becomes U+FFFD (trap 89). */
static int parse_unicode(struct reader *r)
{
	int unit = peek_unit(r->at, r->end);
	if (unit < 0)
		return fail(r, "bad \\u escape");
	r->at += 4;
	uint32_t c = (uint32_t)unit;
	if (c >= 0xd800 && c <= 0xdbff && r->end - r->at >= 6 && r->at[0] == '\\' &&
	    r->at[1] == 'u') {
		int low = peek_unit(r->at + 2, r->end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
			r->at += 6;
		}
	}
	add_code_point(&r->text, c >= 0xd800 && c <= 0xdfff ? 0xfffd : c);
	return 0;
}

/* At a backslash. An unknown escape is an error and not its letter: a Windows path whose
 * backslashes were not doubled ("C:\new") must not silently become another path. */
static int parse_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	r->at++;
	if (r->at == r->end)
		return fail(r, "unterminated string");
	char c = *r->at;
	const char *known = c ? strchr(from, c) : NULL;
	if (!known && c != 'u')
		return fail(r, "bad escape");
	r->at++;
	if (c == 'u')
		return parse_unicode(r);
	return buf_addc(&r->text, to[known - from]);
}

/* Content that needed no decoding. A server that sends bytes outside UTF-8 is repaired here, so
 * that no tree ever holds what the next request could not carry. */
static void add_run(struct buf *out, const char *s, size_t n)
{
	if (text_is_utf8(s, n))
		buf_add(out, s, n);
	else
		text_sanitize(out, s, n);
}

/* Leaves the decoded bytes in r->text. Raw control characters are content (trap 39). */
static int parse_string(struct reader *r)
{
	r->at++;
	buf_clear(&r->text);
	for (;;) {
		const char *run = r->at;
		while (r->at < r->end && *r->at != '"' && *r->at != '\\')
			r->at++;
		add_run(&r->text, run, (size_t)(r->at - run));
		if (r->at == r->end)
			return fail(r, "unterminated string");
		if (*r->at == '"')
			break;
		if (parse_escape(r) < 0)
			return -1;
	}
	r->at++;
	return 0;
}

/* --- numbers and words --- */

static size_t count_digits(const char *s, const char *end)
{
	size_t n = 0;
	while (s + n < end && s[n] >= '0' && s[n] <= '9')
		n++;
	return n;
}

/* Length of the number at s by the grammar of RFC 8259; 0 if malformed. */
static size_t number_len(const char *s, const char *end, bool *ret_integer)
{
	const char *p = s;
	if (p < end && *p == '-')
		p++;
	size_t digits = count_digits(p, end);
	if (digits == 0 || (digits > 1 && *p == '0'))
		return 0;
	p += digits;
	*ret_integer = true;
	if (p < end && *p == '.') {
		*ret_integer = false;
		digits = count_digits(++p, end);
		if (digits == 0)
			return 0;
		p += digits;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		*ret_integer = false;
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		digits = count_digits(p, end);
		if (digits == 0)
			return 0;
		p += digits;
	}
	return (size_t)(p - s);
}

/* Whole numbers stay exact up to 64 bits, signed or unsigned; above that, and with a point or an
 * exponent, a double. strtod reads by the locale, which no program of ours sets. */
static int parse_number(struct reader *r, struct json_object **ret)
{
	bool integer = false;
	size_t n = number_len(r->at, r->end, &integer);
	if (n == 0)
		return fail(r, "bad number");
	AUTO_FREE char *text = mem_strndup(r->at, n);
	r->at += n;
	if (integer) {
		errno = 0;
		long long value = strtoll(text, NULL, 10);
		if (errno == 0) {
			*ret = json_object_new_int64(value);
			return 0;
		}
		errno = 0;
		unsigned long long wide = strtoull(text, NULL, 10);
		if (errno == 0 && text[0] != '-') {
			*ret = json_object_new_uint64(wide);
			return 0;
		}
	}
	/* Keeps its own text, so that it is written back as it came. */
	*ret = json_object_new_double_s(strtod(text, NULL), text);
	return 0;
}

static int parse_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return fail(r, "unknown word");
	r->at += n;
	return 0;
}

/* --- containers --- */

/* At the opening bracket. The limit bounds our recursion here, and json-c's when it frees the tree.
 */
static int enter(struct reader *r)
{
	if (r->depth == JSON_DEPTH_MAX)
		return fail(r, "nesting deeper than 64");
	r->depth++;
	r->at++;
	skip_blanks(r);
	return 0;
}

/* After an element: 1 if another follows, 0 at the end (which is consumed), -1 on anything else. */
static int next_element(struct reader *r, char close)
{
	skip_blanks(r);
	if (r->at == r->end)
		return fail(r, "unterminated value");
	char c = *r->at;
	if (c != ',' && c != close)
		return fail(r, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
	r->at++;
	if (c == close) {
		r->depth--;
		return 0;
	}
	skip_blanks(r);
	return 1;
}

static int parse_array(struct reader *r, struct json_object **ret)
{
	if (enter(r) < 0)
		return -1;
	AUTO_JSON struct json_object *arr = json_object_new_array();
	int more = 1;
	if (r->at < r->end && *r->at == ']') {
		r->at++;
		r->depth--;
		more = 0;
	}
	while (more) {
		struct json_object *item = NULL;
		if (parse_value(r, &item) < 0)
			return -1;
		json_object_array_add(arr, item);
		more = next_element(r, ']');
		if (more < 0)
			return -1;
	}
	*ret = take_ptr(arr);
	return 0;
}

/* A key as a C string: json-c has no counted keys, so a NUL in one must not cut it short. */
static int parse_key(struct reader *r, char **ret)
{
	if (r->at == r->end)
		return fail(r, "unterminated value");
	if (*r->at != '"')
		return fail(r, "expected a quoted key");
	if (parse_string(r) < 0)
		return -1;
	AUTO_BUF struct buf key = BUF_INIT;
	text_sanitize(&key, r->text.data, r->text.len);
	skip_blanks(r);
	if (r->at == r->end)
		return fail(r, "unterminated value");
	if (*r->at != ':')
		return fail(r, "expected ':'");
	r->at++;
	skip_blanks(r);
	*ret = buf_take(&key);
	return 0;
}

/* Of two equal keys the later one counts, as with every parser that servers use. */
static int parse_object(struct reader *r, struct json_object **ret)
{
	if (enter(r) < 0)
		return -1;
	AUTO_JSON struct json_object *obj = json_object_new_object();
	int more = 1;
	if (r->at < r->end && *r->at == '}') {
		r->at++;
		r->depth--;
		more = 0;
	}
	while (more) {
		AUTO_FREE char *key = NULL;
		struct json_object *value = NULL;
		if (parse_key(r, &key) < 0 || parse_value(r, &value) < 0)
			return -1;
		json_object_object_add(obj, key, value);
		more = next_element(r, '}');
		if (more < 0)
			return -1;
	}
	*ret = take_ptr(obj);
	return 0;
}

static int parse_value(struct reader *r, struct json_object **ret)
{
	if (r->at == r->end)
		return fail(r, "unterminated value");
	switch (*r->at) {
	case '{': return parse_object(r, ret);
	case '[': return parse_array(r, ret);
	case '"':
		if (parse_string(r) < 0)
			return -1;
		if (r->text.len > INT32_MAX)
			return fail(r, "string too long");
		*ret = json_object_new_string_len(buf_str(&r->text), (int)r->text.len);
		return 0;
	case 't':
		*ret = NULL;
		if (parse_word(r, "true") < 0)
			return -1;
		*ret = json_object_new_boolean(1);
		return 0;
	case 'f':
		*ret = NULL;
		if (parse_word(r, "false") < 0)
			return -1;
		*ret = json_object_new_boolean(0);
		return 0;
	case 'n': *ret = NULL; return parse_word(r, "null");
	default:
		if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9'))
			return parse_number(r, ret);
		return fail(r, "unexpected character");
	}
}

int json_parse(const char *s, size_t n, struct json_object **ret, struct err *err)
{
	if (n == 0)
		s = ""; /* nothing may be NULL, and arithmetic on NULL is not defined */
	struct reader r = {.start = s, .at = s, .end = s + n, .text = BUF_INIT, .err = err};
	AUTO_JSON struct json_object *value = NULL;
	skip_blanks(&r);
	int rc = parse_value(&r, &value);
	if (rc == 0) {
		skip_blanks(&r);
		if (r.at != r.end)
			rc = fail(&r, "something follows the value");
	}
	buf_release(&r.text);
	if (rc == 0)
		*ret = take_ptr(value);
	return rc;
}

int json_parse_file(const char *path, size_t max, struct json_object **ret, struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	if (file_read(AT_FDCWD, path, max, &text, err) < 0)
		return -1;
	if (json_parse(buf_str(&text), text.len, ret, err) < 0)
		return err_prefix(err, "%s", path);
	return 0;
}
