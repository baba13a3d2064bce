/*
 * transfer.c - see transfer.h.
 *
 * Callbacks of curl run inside curl_multi_socket_action or curl_easy_pause, where no handle may be
 * removed: they only note what happened. The end is always told from the loop: by
 * transfer_finished, or by the timer (stalls, an error that curl_easy_pause returned, a server that
 * keeps the connection open after its last event).
 *
 *   wait for the server: timer armed      body used up or no room: timer off
 *
 * Who is waited for decides whether the timer runs:
 *
 *   connection not made yet    curl's own connect timeout   timer off
 *   body used up, not all out  the agent (read_paused)      timer off
 *   no room for the answer     the agent (write_paused)     timer off
 *   else                       the server                   timer on
 *
 * The upload counts as sent when curl takes it, which is when the socket had room; a server that
 * does not read is therefore a stall like one that does not write.
 */
#include "orchestrator/gateway/transfer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/gateway/request.h"
#include "orchestrator/gateway/transport.h"

/* How long a server may take to close after its last event; then the call ends without it. */
#define LINGER_MS 500

enum body_kind { BODY_UNKNOWN, BODY_STREAM, BODY_DOCUMENT };

struct transfer {
	struct transport *transport;
	CURL *easy;
	struct curl_slist *headers;
	struct event *timer;
	struct transfer_events events;
	void *arg;
	struct buf up; /* body bytes that came and are not out; from up_at on */
	size_t up_at;
	int64_t length, sent;
	bool read_paused, write_paused, connected, done;
	int pause_error; /* of curl_easy_pause, told from the timer */
	enum body_kind body;
	int64_t bytes_idle, content_idle;
	int64_t bytes_at, content_at, last_at; /* last_at: of the last event, -1 */
	struct transfer_result r;
	char errors[CURL_ERROR_SIZE];
};

static bool server_is_due(const struct transfer *t)
{
	return t->connected && !t->read_paused && !t->write_paused;
}

static void arm(struct transfer *t, int64_t at)
{
	int64_t ms = MAX(0, at - clock_mono_ms());
	struct timeval tv = clock_timeval(ms);
	evtimer_add(t->timer, &tv);
}

/* The timer is armed for the earliest deadline and looks again when it fires: moving it with each
 * byte would cost a heap operation per read. */
static void watch_server(struct transfer *t)
{
	t->bytes_at = t->content_at = clock_mono_ms();
	if (server_is_due(t))
		arm(t, t->bytes_at + MIN(t->bytes_idle, t->content_idle));
}

static void describe(struct transfer *t, enum transfer_fault fault, const char *text)
{
	t->r.fault = fault;
	snprintf(t->r.detail, sizeof(t->r.detail), "%s", text);
}

static void finish(struct transfer *t)
{
	if (t->done)
		return;
	t->done = true;
	evtimer_del(t->timer);
	long version = 0, connects = 0;
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
	curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
	t->r.http = version == CURL_HTTP_VERSION_2_0 ? 2 : version ? 1 : 0;
	t->r.reused = t->connected && connects == 0;
	t->r.stale |= t->r.fault == FAULT_BROKEN && t->r.status == 0 && t->r.reused;
	t->r.stream = t->body == BODY_STREAM;
	/* Removed, not only freed later: a stalled transfer must not go on while its end is judged.
	 */
	transport_remove(t->transport, t->easy);
	if (t->r.stream && t->r.fault == FAULT_NONE && watch_end(&t->r.watch, NULL))
		describe(t, FAULT_MALFORMED, "the stream is not made of events");
	t->events.on_done(t->arg, &t->r);
}

static enum transfer_fault fault_of(const struct transfer *t, CURLcode code)
{
	long tunnel = 0;
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
	switch (code) {
	case CURLE_OK: return FAULT_NONE;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SSL_CONNECT_ERROR: return FAULT_CONNECT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR: return FAULT_TRUST;
	case CURLE_URL_MALFORMAT:
	case CURLE_BAD_FUNCTION_ARGUMENT:
	case CURLE_FAILED_INIT: return FAULT_SETUP;
	/* Either a scheme that is not allowed, or an answer that is not HTTP at all. */
	case CURLE_UNSUPPORTED_PROTOCOL: return t->connected ? FAULT_MALFORMED : FAULT_SETUP;
	case CURLE_WEIRD_SERVER_REPLY: return FAULT_MALFORMED;
	default: return tunnel >= 400 && !t->connected ? FAULT_PROXY : FAULT_BROKEN;
	}
}

void transfer_finished(void *transfer, int code)
{
	struct transfer *t = transfer;
	/* Our own refusal to take more, after an in-band error or a malformed stream. */
	bool ours = code == CURLE_WRITE_ERROR && (t->r.watch.failed || t->r.fault != FAULT_NONE);
	if (code != CURLE_OK && !ours) {
		const char *text = *t->errors ? t->errors : curl_easy_strerror((CURLcode)code);
		if (code == CURLE_SEND_FAIL_REWIND)
			text = "the server closed the idle connection";
		describe(t, fault_of(t, (CURLcode)code), text);
		t->r.stale = code == CURLE_SEND_FAIL_REWIND || code == CURLE_ABORTED_BY_CALLBACK;
	}
	finish(t);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct transfer *t = arg;
	int64_t now = clock_mono_ms();
	if (t->pause_error) {
		transfer_finished(t, t->pause_error);
		return;
	}
	if (t->last_at >= 0 && now - t->last_at >= LINGER_MS) {
		finish(t);
		return;
	}
	if (!server_is_due(t))
		return;
	if (now - t->bytes_at >= t->bytes_idle || now - t->content_at >= t->content_idle) {
		bool bytes = now - t->bytes_at >= t->bytes_idle;
		char text[128];
		snprintf(text, sizeof(text), "no %s for %lld ms",
			 bytes ? "byte came" : "content came",
			 (long long)(bytes ? t->bytes_idle : t->content_idle));
		describe(t, FAULT_STALLED, text);
		/* Else an HTTP/2 connection that is dead stays in the pool for the next one. */
		curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
		finish(t);
		return;
	}
	int64_t next = MIN(t->bytes_at + t->bytes_idle, t->content_at + t->content_idle);
	arm(t, t->last_at >= 0 ? MIN(next, t->last_at + LINGER_MS) : next);
}

static size_t on_read(char *to, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t n = MIN(size * count, t->up.len - t->up_at);
	if (n == 0) {
		if (t->sent == t->length)
			return 0;
		t->read_paused = true;
		evtimer_del(t->timer);
		return CURL_READFUNC_PAUSE;
	}
	memcpy(to, t->up.data + t->up_at, n);
	t->up_at += n;
	t->sent += (int64_t)n;
	if (t->up_at == t->up.len) {
		/* After the last byte the memory is of no more use; before it, of much. */
		if (t->sent == t->length)
			buf_release(&t->up);
		buf_clear(&t->up);
		t->up_at = 0;
	}
	t->bytes_at = t->content_at = clock_mono_ms();
	t->events.on_consumed(t->arg, n);
	return n;
}

/* A document begins with a brace, a bracket or a tag; a stream of events never does. That tells
 * more than the content type, which imitations get wrong in both directions. */
static enum body_kind kind_of(const struct transfer *t, const char *bytes, size_t n)
{
	if (t->r.status < 200 || t->r.status > 299)
		return BODY_DOCUMENT;
	while (n > 0 && isspace((unsigned char)*bytes)) {
		bytes++;
		n--;
	}
	if (n == 0)
		return BODY_UNKNOWN;
	return strchr("{[<", *bytes) ? BODY_DOCUMENT : BODY_STREAM;
}

/* False: the rest of the answer is of no use. */
static bool look_at(struct transfer *t, const char *bytes, size_t n)
{
	struct watch *w = &t->r.watch;
	bool was_last = w->last;
	if (watch_feed(w, bytes, n, NULL)) {
		describe(t, FAULT_MALFORMED, "the stream is not made of events");
		return false;
	}
	if (w->progress)
		t->content_at = t->bytes_at;
	w->progress = false;
	if (w->content && t->r.first_content_ms < 0)
		t->r.first_content_ms = t->bytes_at;
	if (w->last && !was_last) {
		t->last_at = t->bytes_at;
		arm(t, t->last_at + LINGER_MS);
	}
	return !w->failed;
}

static size_t on_write(char *bytes, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t n = size * count;
	t->bytes_at = clock_mono_ms();
	if (t->body == BODY_UNKNOWN)
		t->body = kind_of(t, bytes, n);
	/* All or nothing: curl keeps the piece and brings it again, so it must not be looked at
	 * yet. */
	if (t->body == BODY_STREAM && t->events.room(t->arg) < n) {
		t->write_paused = true;
		if (t->last_at < 0)
			evtimer_del(t->timer);
		return CURL_WRITEFUNC_PAUSE;
	}
	t->r.bytes += (int64_t)n;
	if (t->body == BODY_DOCUMENT) {
		t->content_at = t->bytes_at;
		size_t room = TRANSFER_DOCUMENT_MAX - t->r.document.len;
		buf_add(&t->r.document, bytes, MIN(n, room));
	} else if (t->body == BODY_STREAM) {
		bool go_on = look_at(t, bytes, n);
		t->events.on_answer(t->arg, bytes, n);
		return go_on ? n : 0;
	}
	return n;
}

static void take_header(struct transfer *t, const char *name, const char *value)
{
	retry_take_header(&t->r.hints, name, value);
	limits_take_header(&t->r.limits, name, value);
	char **copy = NULL;
	if (strcasecmp(name, "location") == 0)
		copy = &t->r.location;
	else if (strcasecmp(name, "content-type") == 0)
		copy = &t->r.content_type;
	if (copy) {
		free(*copy);
		*copy = mem_strndup(value, MIN(strlen(value), 512));
	}
}

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t n = size * count;
	t->bytes_at = clock_mono_ms();
	if (n > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
		long status = 0;
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
		t->r.status = (int)status;
		/* What a 1xx carried does not count for the answer that follows it. */
		t->r.hints = (struct retry_hints)RETRY_HINTS_INIT;
		limits_init(&t->r.limits);
		return n;
	}
	const char *colon = memchr(bytes, ':', n);
	if (!colon)
		return n;
	const char *value = colon + 1, *end = bytes + n;
	while (value < end && isspace((unsigned char)*value))
		value++;
	while (end > value && isspace((unsigned char)end[-1]))
		end--;
	AUTO_FREE char *name = mem_strndup(bytes, (size_t)(colon - bytes));
	AUTO_FREE char *text = mem_strndup(value, (size_t)(end - value));
	take_header(t, name, text);
	return n;
}

/* The connection stands and the request goes out now: from here on the server is waited for. When
 * an old connection turns out to be dead, curl tries a new one by itself; with a body that is
 * partly gone that cannot work. */
static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct transfer *t = arg;
	if (t->sent > 0)
		return CURL_PREREQFUNC_ABORT;
	t->connected = true;
	watch_server(t);
	return CURL_PREREQFUNC_OK;
}

static void set_callbacks(struct transfer *t)
{
	CURL *easy = t->easy;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->errors);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, t);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
}

int transfer_start(struct transport *transport, const struct transfer_spec *spec,
		   const struct transfer_events *events, void *arg, struct transfer **ret,
		   struct err *err)
{
	struct transfer *t = mem_alloc(sizeof(*t));
	t->transport = transport;
	t->events = *events;
	t->arg = arg;
	t->length = spec->length;
	t->bytes_idle = spec->settings->bytes_idle_ms;
	t->content_idle = spec->settings->content_idle_ms;
	t->last_at = t->r.first_content_ms = -1;
	t->r.hints = (struct retry_hints)RETRY_HINTS_INIT;
	limits_init(&t->r.limits);
	watch_init(&t->r.watch, strcmp(spec->api, "anthropic") == 0);
	t->easy = curl_easy_init();
	t->timer = evtimer_new(transport_base(transport), on_timer, t);
	if (!t->easy || !t->timer) {
		transfer_free(t);
		return err_set(err, ERR_IO, "cannot make a transfer");
	}
	set_callbacks(t);
	if (request_prepare(t->easy, spec, &t->headers, err) || transport_add(transport, t->easy)) {
		transfer_free(t);
		return err_prefix(err, "provider '%s'", spec->provider->name);
	}
	*ret = t;
	return 0;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	if (t->easy && !t->done)
		transport_remove(t->transport, t->easy);
	if (t->timer)
		event_free(t->timer);
	curl_easy_cleanup(t->easy);
	request_wipe(t->headers);
	watch_release(&t->r.watch);
	buf_release(&t->r.document);
	buf_release(&t->up);
	free(t->r.location);
	free(t->r.content_type);
	free(t);
}

/* curl wants both directions at once. It may call on_write from inside. */
static void unpause(struct transfer *t)
{
	int mask = (t->read_paused ? CURLPAUSE_SEND : 0) | (t->write_paused ? CURLPAUSE_RECV : 0);
	watch_server(t);
	CURLcode code = curl_easy_pause(t->easy, mask);
	if (code != CURLE_OK) {
		t->pause_error = (int)code;
		arm(t, 0);
	}
}

void transfer_body(struct transfer *t, const char *bytes, size_t n)
{
	if (t->done || t->pause_error)
		return;
	buf_add(&t->up, bytes, n);
	if (t->read_paused) {
		t->read_paused = false;
		unpause(t);
	}
}

void transfer_room(struct transfer *t)
{
	if (t->write_paused && !t->done && !t->pause_error) {
		t->write_paused = false;
		unpause(t);
	}
}
