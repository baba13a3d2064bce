/*
 * http.c - see http.h. The head is parsed when it is complete; the body by length or by chunks.
 */
#include "rehearsal/http.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"

size_t http_head_length(const char *s, size_t n)
{
	const char *end = memmem(s, n, "\r\n\r\n", 4);

	return end ? (size_t)(end - s) + 4 : 0;
}

bool http_slice_is(struct http_slice slice, const char *text)
{
	return slice.s && slice.n == strlen(text) && strncasecmp(slice.s, text, slice.n) == 0;
}

struct http_slice http_header(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->n_headers; i++)
		if (http_slice_is(head->headers[i].name, name))
			return head->headers[i].value;
	return (struct http_slice){.s = NULL};
}

struct http_slice http_path(const struct http_head *head)
{
	const char *query = memchr(head->target.s, '?', head->target.n);

	return (struct http_slice){.s = head->target.s,
				   .n = query ? (size_t)(query - head->target.s) : head->target.n};
}

/* The characters that RFC 9110 allows in method and header names. */
static bool is_token(struct http_slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.s[i];

		if (c <= ' ' || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c))
			return false;
	}
	return s.n > 0;
}

static struct http_slice trim(struct http_slice s)
{
	while (s.n && (*s.s == ' ' || *s.s == '\t')) {
		s.s++;
		s.n--;
	}
	while (s.n && (s.s[s.n - 1] == ' ' || s.s[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Origin form only: this is no proxy, and a target with a scheme is a client's mistake. */
static int parse_request_line(const char *s, size_t n, struct http_head *head, struct err *err)
{
	const char *space = memchr(s, ' ', n), *second;

	if (!space)
		return err_set(err, ERR_INVALID, "bad request line");
	second = memchr(space + 1, ' ', n - (size_t)(space + 1 - s));
	if (!second || n - (size_t)(second + 1 - s) != 8 || memcmp(second + 1, "HTTP/1.", 7) != 0 ||
	    (second[8] != '0' && second[8] != '1'))
		return err_set(err, ERR_INVALID, "bad request line");
	head->method = (struct http_slice){s, (size_t)(space - s)};
	head->target = (struct http_slice){space + 1, (size_t)(second - space - 1)};
	head->minor = second[8] - '0';
	if (!is_token(head->method) || !head->target.n || head->target.s[0] != '/')
		return err_set(err, ERR_INVALID, "bad method or target");
	for (size_t i = 0; i < head->target.n; i++)
		if ((unsigned char)head->target.s[i] <= ' ')
			return err_set(err, ERR_INVALID, "bad target");
	return 0;
}

/* A folded line starts with a blank, so its name is no token, and it is refused here. */
static int parse_header(const char *s, size_t n, struct http_head *head, struct err *err)
{
	const char *colon = memchr(s, ':', n);
	struct http_slice name, value;

	if (head->n_headers == HTTP_MAX_HEADERS)
		return err_set(err, ERR_TOO_LARGE, "too many headers");
	if (!colon)
		return err_set(err, ERR_INVALID, "bad header line");
	name = (struct http_slice){s, (size_t)(colon - s)};
	value = trim((struct http_slice){colon + 1, n - (size_t)(colon + 1 - s)});
	if (!is_token(name))
		return err_set(err, ERR_INVALID, "bad header name");
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.s[i] < ' ' && value.s[i] != '\t')
			return err_set(err, ERR_INVALID, "control character in header '%.*s'",
				       (int)name.n, name.s);
	head->headers[head->n_headers].name = name;
	head->headers[head->n_headers++].value = value;
	return 0;
}

/* Fifteen digits are enough for anything that is accepted and cannot overflow. */
static int parse_length(struct http_slice value, int64_t *ret, struct err *err)
{
	int64_t length = 0;

	if (!value.n || value.n > 15)
		return err_set(err, ERR_INVALID, "bad content-length");
	for (size_t i = 0; i < value.n; i++) {
		if (value.s[i] < '0' || value.s[i] > '9')
			return err_set(err, ERR_INVALID, "bad content-length");
		length = length * 10 + (value.s[i] - '0');
	}
	*ret = length;
	return 0;
}

/* Two lengths, or a length beside chunks, are how requests are smuggled: a careful server refuses
 * both, and so a careful client must never send them. */
static int use_headers(struct http_head *head, struct err *err)
{
	struct http_slice connection = http_header(head, "connection");

	head->length = -1;
	head->keep_alive = head->minor == 1 ? !http_slice_is(connection, "close")
					    : http_slice_is(connection, "keep-alive");
	head->expect_continue = http_slice_is(http_header(head, "expect"), "100-continue");
	for (size_t i = 0; i < head->n_headers; i++) {
		if (http_slice_is(head->headers[i].name, "content-length")) {
			if (head->length >= 0)
				return err_set(err, ERR_INVALID, "two content-length headers");
			if (parse_length(head->headers[i].value, &head->length, err) < 0)
				return -1;
		} else if (http_slice_is(head->headers[i].name, "transfer-encoding")) {
			if (!http_slice_is(head->headers[i].value, "chunked"))
				return err_set(err, ERR_INVALID, "unknown transfer-encoding");
			head->chunked = true;
		}
	}
	if (head->chunked && head->length >= 0)
		return err_set(err, ERR_INVALID, "content-length and transfer-encoding together");
	if (head->minor == 1 && !http_header(head, "host").s)
		return err_set(err, ERR_INVALID, "no host header");
	return 0;
}

int http_parse_head(const char *s, size_t n, struct http_head *ret, struct err *err)
{
	bool first = true;

	*ret = (struct http_head){.length = -1};
	for (size_t at = 0; at + 2 <= n;) {
		const char *end = memmem(s + at, n - at, "\r\n", 2);
		size_t len = end ? (size_t)(end - s) - at : 0;

		if (!end)
			return err_set(err, ERR_INVALID, "head without end");
		if (!len)
			break;
		if (memchr(s + at, '\n', len) || memchr(s + at, '\0', len))
			return err_set(err, ERR_INVALID, "bare line feed in head");
		if ((first ? parse_request_line(s + at, len, ret, err)
			   : parse_header(s + at, len, ret, err)) < 0)
			return -1;
		first = false;
		at += len + 2;
	}
	if (first)
		return err_set(err, ERR_INVALID, "empty head");
	return use_headers(ret, err);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1a3;ext\r\n": the size of the next chunk. */
static int read_size(struct http_chunks *c, const char *line, size_t n, struct err *err)
{
	uint64_t size = 0;
	size_t digits = 0;

	while (digits < n && hex_value(line[digits]) >= 0) {
		size = size << 4 | (uint64_t)hex_value(line[digits++]);
		if (digits > 12)
			return err_set(err, ERR_INVALID, "bad chunk size");
	}
	if (!digits || (digits < n && line[digits] != ';' && line[digits] != ' '))
		return err_set(err, ERR_INVALID, "bad chunk size");
	c->left = size;
	c->state = size ? CHUNK_DATA : CHUNK_TRAILER;
	return 0;
}

/* Takes one line of the framing. Returns 1 if there was one, 0 if more bytes are needed. */
static int take_line(struct http_chunks *c, const char *s, size_t n, size_t *used, struct err *err)
{
	const char *end = memmem(s + *used, n - *used, "\r\n", 2);
	size_t len = end ? (size_t)(end - s) - *used : 0;
	const char *line = s + *used;

	if (!end)
		return n - *used > 1024 ? err_set(err, ERR_INVALID, "chunk line too long") : 0;
	*used += len + 2;
	if (c->state == CHUNK_SIZE)
		return read_size(c, line, len, err) < 0 ? -1 : 1;
	if (c->state == CHUNK_DATA_END) {
		if (len)
			return err_set(err, ERR_INVALID, "chunk longer than its size");
		c->state = CHUNK_SIZE;
	} else if (!len) {
		c->state = CHUNK_DONE;
	}
	return 1;
}

/* The state stands in *c, so that the bytes may be split anywhere; unfinished framing lines are
 * left for the next call, data is taken as far as it goes. */
int http_chunks_feed(struct http_chunks *c, const char *s, size_t n, size_t *used, struct buf *out,
		     struct err *err)
{
	*used = 0;
	while (c->state != CHUNK_DONE) {
		size_t take;
		int got;

		if (c->state != CHUNK_DATA) {
			got = take_line(c, s, n, used, err);
			if (got <= 0)
				return got;
			continue;
		}
		take = (size_t)MIN(c->left, (uint64_t)(n - *used));
		if (!take)
			return 0;
		if (buf_add(out, s + *used, take) < 0)
			return err_set(err, ERR_TOO_LARGE, "body too large");
		*used += take;
		c->left -= take;
		if (!c->left)
			c->state = CHUNK_DATA_END;
	}
	return 1;
}
