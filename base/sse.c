/*
 * sse.c - the event stream parser.
 *
 * A line is collected until its end is seen, whatever the reads were (traps 52, 54); only then is
 * it looked at. CR ends a line at once, and a LF that comes next, even in the next read, belongs to
 * it: waiting for that LF would hold back the last event of a stream that uses CR alone.
 *
 *   bytes -> line (until CR, LF) -> field -> data, name -> blank line -> event
 *
 * Runs in the agent (model answers) and in the rehearsal; what it reads is a stranger's.
 */
#include "base/sse.h"

#include "base/memory.h"

enum { SSE_LINE_MAX = 8 << 20, SSE_EVENT_MAX = 16 << 20 };

void sse_init(struct sse_parser *p, sse_event_fn on_event, void *arg)
{
	*p = (struct sse_parser){
		.line = BUF_INIT_MAX(SSE_LINE_MAX),
		.data = BUF_INIT_MAX(SSE_EVENT_MAX),
		.name = BUF_INIT_MAX(SSE_LINE_MAX),
		.on_event = on_event,
		.arg = arg,
	};
}

void sse_release(struct sse_parser *p)
{
	buf_release(&p->line);
	buf_release(&p->data);
	buf_release(&p->name);
}

/* The blank line. An event without any data line is no event (a lone "event: ping"). */
static int dispatch(struct sse_parser *p, struct err *err)
{
	int rc = 0;
	if (p->has_data)
		rc = p->on_event(p->name.len ? p->name.data : "message", buf_str(&p->data),
				 p->data.len, p->arg, err);
	buf_clear(&p->data);
	buf_clear(&p->name);
	p->has_data = false;
	return rc ? -1 : 0;
}

static int add_data(struct sse_parser *p, const char *value, size_t n, struct err *err)
{
	if ((p->has_data && buf_addc(&p->data, '\n') < 0) || buf_add(&p->data, value, n) < 0)
		return err_set(err, ERR_TOO_LARGE, "an event of the stream exceeds 16 MiB");
	p->has_data = true;
	return 0;
}

/* llama.cpp writes `error: {json}` where a field name belongs (wire.md row 13), followed by a blank
 * line or by the end of the stream: it is an event of its own, and what was collected before stays.
 */
static int dispatch_error_field(struct sse_parser *p, const char *value, size_t n, struct err *err)
{
	AUTO_FREE char *copy = mem_strndup(value, n);
	return p->on_event("error", copy, n, p->arg, err) ? -1 : 0;
}

static bool field_is(const char *line, size_t n, const char *name)
{
	return n == strlen(name) && memcmp(line, name, n) == 0;
}

static int take_field(struct sse_parser *p, const char *line, size_t n, struct err *err)
{
	const char *colon = memchr(line, ':', n);
	size_t name_len = colon ? (size_t)(colon - line) : n;
	const char *value = line + name_len + (colon ? 1 : 0);
	size_t value_len = n - (size_t)(value - line);
	if (value_len && *value == ' ') {
		value++;
		value_len--;
	}
	if (field_is(line, name_len, "data"))
		return add_data(p, value, value_len, err);
	if (field_is(line, name_len, "event")) {
		buf_clear(&p->name);
		buf_add(&p->name, value, value_len);
		return 0;
	}
	if (field_is(line, name_len, "error") && colon)
		return dispatch_error_field(p, value, value_len, err);
	return 0; /* comments (an empty name, trap 56), id, retry, fields nobody knows */
}

static int take_line(struct sse_parser *p, struct err *err)
{
	const char *line = buf_str(&p->line);
	size_t n = p->line.len;
	if (!p->started && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		n -= 3;
	}
	p->started = true;
	int rc = n == 0 ? dispatch(p, err) : take_field(p, line, n, err);
	buf_clear(&p->line);
	return rc;
}

/* Bytes before the first CR or LF, or n. */
static size_t line_len(const char *s, size_t n)
{
	const char *lf = memchr(s, '\n', n);
	if (lf)
		n = (size_t)(lf - s);
	const char *cr = memchr(s, '\r', n);
	return cr ? (size_t)(cr - s) : n;
}

int sse_feed(struct sse_parser *p, const char *bytes, size_t n, struct err *err)
{
	while (n) {
		if (p->skip_lf) {
			p->skip_lf = false;
			if (*bytes == '\n') {
				bytes++;
				n--;
				continue;
			}
		}
		size_t len = line_len(bytes, n);
		if (buf_add(&p->line, bytes, len) < 0)
			return err_set(err, ERR_TOO_LARGE, "a line of the stream exceeds 8 MiB");
		bytes += len;
		n -= len;
		if (!n)
			return 0;
		p->skip_lf = *bytes == '\r';
		bytes++;
		n--;
		if (take_line(p, err) < 0)
			return -1;
	}
	return 0;
}

int sse_finish(struct sse_parser *p, struct err *err)
{
	if (p->line.len && take_line(p, err) < 0)
		return -1;
	return dispatch(p, err);
}
