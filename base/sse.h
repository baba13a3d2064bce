/*
 * sse.h - an incremental parser of server-sent events (wire.md 1.2, traps 52 to 56).
 *
 * Any split of the bytes gives the same events. Line ends are LF, CR and CRLF, also split between
 * reads; comment lines are reported as liveness only; one space after the colon is dropped; several
 * data lines are joined with \n; a last event without its blank line is flushed by sse_finish. A
 * line above 8 MiB or an event above 16 MiB is an error.
 */
#ifndef BATON_BASE_SSE_H
#define BATON_BASE_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* field is the event's name ("message" if none was given); for the llama.cpp form where the field
 * itself is `error: {json}` (wire.md row 13) it is "error" and data is the rest of that line.
 * Non-zero stops the feed; sse_feed returns -1 with err as the callback set it. */
typedef int (*sse_event_fn)(const char *name, const char *data, size_t n, void *arg,
			    struct err *err);

struct sse_parser {
	struct buf line;
	struct buf data;
	struct buf name;
	bool has_data;
	bool skip_lf; /* the last byte was CR */
	bool started; /* a BOM at the start is dropped */
	sse_event_fn on_event;
	void *arg;
};

void sse_init(struct sse_parser *p, sse_event_fn on_event, void *arg);
void sse_release(struct sse_parser *p);
int sse_feed(struct sse_parser *p, const char *bytes, size_t n, struct err *err);
int sse_finish(struct sse_parser *p, struct err *err);

#endif
