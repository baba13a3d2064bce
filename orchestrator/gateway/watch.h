/*
 * watch.h - what the gateway has to know of an answer that it passes on without parsing it.
 *
 * A light look at each event: is it content or only a sign of life (for the two idle timers), was
 * the end marker seen (a stream that breaks before it is void), is it an error in a stream that
 * began with status 200. The bytes themselves go to the agent untouched; the agent's model client
 * parses them.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_WATCH_H
#define BATON_ORCHESTRATOR_GATEWAY_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sse.h"

struct watch {
	struct sse_parser sse;
	bool anthropic;
	bool content;  /* something of the answer itself came: text, thinking, calls */
	bool progress; /* set by each event that is more than a keep-alive; the owner clears it */
	bool finished; /* message_stop, or a finish_reason: the answer is whole */
	bool last;     /* nothing can follow: message_stop, or [DONE] after finished */
	bool usage;    /* token counts were seen */
	bool failed;   /* an in-band error, its data in `error` */
	struct buf error;
};

void watch_init(struct watch *w, bool anthropic);
void watch_release(struct watch *w);
/* -1: not a stream of events (a line or event without end). What follows an in-band error or `last`
 * is not looked at. */
int watch_feed(struct watch *w, const char *bytes, size_t n, struct err *err);
/* The stream is at its end: an event without its blank line counts. */
int watch_end(struct watch *w, struct err *err);

#endif
