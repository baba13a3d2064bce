/*
 * reply.c - the framing of events and the error envelopes of both protocols (wire.md 1.8, 2.3).
 */
#include "rehearsal/reply.h"

#include "base/json.h"
#include "base/memory.h"
#include "rehearsal/hash.h"
#include "rehearsal/quirks.h"

#include <inttypes.h>

void reply_release(struct reply *reply)
{
	buf_release(&reply->headers);
	buf_release(&reply->body);
	free(reply->ends);
	*reply = (struct reply)REPLY_INIT;
}

/* Ends an event at the present end of the body. */
static void reply_mark(struct reply *reply)
{
	MEM_GROW(reply->ends, reply->cap_ends, reply->n_ends + 1);
	reply->ends[reply->n_ends++] = reply->body.len;
}

/* The empty line ends the event; comments, where wanted, stand before each one. */
void reply_event(struct reply *reply, uint32_t quirks, const char *name, const char *data, size_t n)
{
	const char *eol = quirks & QUIRK_CRLF ? "\r\n" : quirks & QUIRK_CR ? "\r" : "\n";
	struct buf *body = &reply->body;

	if (quirks & QUIRK_COMMENTS)
		buf_addf(body, ": PROCESSING%s%s", eol, eol);
	if (name)
		buf_addf(body, "event:%s%s%s", quirks & QUIRK_NO_SPACE ? "" : " ", name, eol);
	buf_adds(body, quirks & QUIRK_NO_SPACE ? "data:" : "data: ");
	buf_add(body, data, n);
	if (quirks & QUIRK_PADDED)
		buf_adds(body, "          ");
	buf_addf(body, "%s%s", eol, eol);
	reply_mark(reply);
}

const char *error_type_of(enum protocol protocol, int status)
{
	static const struct {
		int status;
		const char *anthropic, *openai;
	} types[] = {
		{400, "invalid_request_error", "invalid_request_error"},
		{401, "authentication_error", "invalid_request_error"},
		{402, "billing_error", "insufficient_quota"},
		{403, "permission_error", "invalid_request_error"},
		{404, "not_found_error", "invalid_request_error"},
		{409, "conflict_error", "conflict_error"},
		{413, "request_too_large", "invalid_request_error"},
		{429, "rate_limit_error", "rate_limit_exceeded"},
		{504, "timeout_error", "server_error"},
		{529, "overloaded_error", "server_error"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].status == status)
			return protocol == PROTOCOL_ANTHROPIC ? types[i].anthropic
							      : types[i].openai;
	if (status < 500)
		return "invalid_request_error";
	return protocol == PROTOCOL_ANTHROPIC ? "api_error" : "server_error";
}

static void write_member(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, ",\"%s\":", key);
	if (value)
		json_write_cstr(out, value);
	else
		buf_adds(out, "null");
}

static void write_error(struct buf *out, enum protocol protocol, const char *type, const char *code,
			const char *param, const char *message)
{
	if (protocol == PROTOCOL_ANTHROPIC) {
		buf_adds(out, "{\"type\":\"error\",\"error\":{\"type\":");
		json_write_cstr(out, type);
		write_member(out, "message", message);
		buf_addf(out, "},\"request_id\":\"req_rehearsal%016" PRIx64 "\"}",
			 hash_cstr(HASH_SEED, message));
		return;
	}
	buf_adds(out, "{\"error\":{\"message\":");
	json_write_cstr(out, message);
	write_member(out, "type", type);
	write_member(out, "param", param && *param ? param : NULL);
	write_member(out, "code", code);
	buf_adds(out, "}}");
}

/* Replaces whatever was rendered: an error is never half of an answer. */
void render_error(struct reply *reply, enum protocol protocol, int status, const char *type,
		  const char *code, const char *param, const char *message)
{
	reply->status = status;
	reply->stream = false;
	reply->n_ends = 0;
	buf_clear(&reply->body);
	write_error(&reply->body, protocol, type ? type : error_type_of(protocol, status), code,
		    param, message);
}

void render_error_event(struct reply *reply, enum protocol protocol, uint32_t quirks,
			const char *type, const char *code, const char *message)
{
	AUTO_BUF struct buf data = BUF_INIT;

	write_error(&data, protocol,
		    type			     ? type
		    : protocol == PROTOCOL_ANTHROPIC ? "overloaded_error"
						     : "server_error",
		    code, NULL, message ? message : "Overloaded");
	reply_event(reply, quirks, protocol == PROTOCOL_ANTHROPIC ? "error" : NULL, buf_str(&data),
		    data.len);
}
