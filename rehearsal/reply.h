/*
 * reply.h - an HTTP answer that is ready to be sent: bytes, where its events end, and how it is to
 * go wrong on the way.
 */
#ifndef BATON_REHEARSAL_REPLY_H
#define BATON_REHEARSAL_REPLY_H

#include "base/buf.h"
#include "rehearsal/answer.h"

struct reply {
	int status;
	const char *content_type;
	struct buf headers; /* further header lines, each with CR LF */
	struct buf body;
	bool stream;  /* events, sent chunked */
	bool split;   /* in chunks of 7 bytes */
	size_t *ends; /* of a stream: offset behind each event */
	size_t n_ends, cap_ends;

	/* Delivery. Counts are events sent before it happens; a whole body is one event. */
	int64_t delay_ms, event_ms;
	int64_t stall_after, cut_after, reset_after;
};

#define REPLY_INIT                                                                                 \
	{                                                                                          \
		.status = 200, .content_type = "application/json", .stall_after = NEVER,           \
		.cut_after = NEVER, .reset_after = NEVER                                           \
	}

void reply_release(struct reply *reply);
/* One server-sent event in the form that the quirks ask for; name may be NULL. */
void reply_event(struct reply *reply, uint32_t quirks, const char *name, const char *data,
		 size_t n);

/* The answer as a protocol's body: a JSON document or a stream, as the request asks. */
void anthropic_render(struct reply *reply, const struct request *r, const struct answer *a,
		      size_t delta_bytes);
void openai_render(struct reply *reply, const struct request *r, const struct answer *a,
		   size_t delta_bytes, int64_t now_ms);
/* A refusal or error in the protocol's envelope. code and param may be NULL. */
void render_error(struct reply *reply, enum protocol protocol, int status, const char *type,
		  const char *code, const char *param, const char *message);
/* The same as an event of a stream that has begun. */
void render_error_event(struct reply *reply, enum protocol protocol, uint32_t quirks,
			const char *type, const char *code, const char *message);
/* The error type that a provider uses with a status. */
const char *error_type_of(enum protocol protocol, int status);

#endif
