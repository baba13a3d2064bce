/*
 * server.c - connections and delivery. One libevent loop, no threads.
 *
 * A connection's states (conn->state):
 *   READ_HEAD -> READ_BODY -> WAIT (delay) -> SEND -> READ_HEAD (keep-alive) or CLOSE
 *   SEND -> STALLED: bytes stop, the connection stays until the client goes away
 *   any -> freed: the client closed, a fault cut or reset it
 * While an answer is being sent nothing is read, so pipelined requests wait their turn in the
 * kernel.
 */
#include "rehearsal/server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"

#define MAX_BODY   (32U << 20) /* the provider's own limit (wire.md 1.1) */
#define READ_SIZE  (256 * 1024)
#define SPLIT_SIZE 7

enum conn_state { READ_HEAD, READ_BODY, WAIT, SEND, STALLED, CLOSE };

struct conn {
	struct server *server;
	struct conn *prev, *next;
	struct bufferevent *bev;
	struct event *timer;
	enum conn_state state;
	struct buf in, head_bytes, body;
	struct http_head head;
	struct http_chunks chunks;
	struct reply reply;
	size_t next_event;
	bool head_sent;
};

struct server {
	struct event_base *base;
	struct service *service;
	struct evconnlistener *listener;
	struct conn *conns;
	uint16_t port;
};

static void conn_free(struct conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		c->server->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	event_free(c->timer);
	bufferevent_free(c->bev);
	buf_release(&c->in);
	buf_release(&c->head_bytes);
	buf_release(&c->body);
	reply_release(&c->reply);
	free(c);
}

/* An RST instead of a FIN: what a crashing server or a middlebox sends. */
static void conn_reset(struct conn *c)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	conn_free(c);
}

static struct evbuffer *conn_out(struct conn *c)
{
	return bufferevent_get_output(c->bev);
}

/* One timer per connection is enough: it either waits to begin or between two events. */
static void wait_ms(struct conn *c, int64_t ms)
{
	struct timeval tv = clock_timeval(ms);

	event_add(c->timer, &tv);
}

static const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {{200, "OK"},
		     {400, "Bad Request"},
		     {401, "Unauthorized"},
		     {403, "Forbidden"},
		     {404, "Not Found"},
		     {413, "Payload Too Large"},
		     {422, "Unprocessable Entity"},
		     {429, "Too Many Requests"},
		     {500, "Internal Server Error"},
		     {502, "Bad Gateway"},
		     {503, "Service Unavailable"},
		     {529, "Overloaded"}};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Status";
}

static bool is_chunked(const struct conn *c)
{
	return c->reply.stream && c->head.minor == 1;
}

/* A stream to an HTTP/1.0 client has no chunks: it ends with the connection. */
static void send_head(struct conn *c)
{
	struct evbuffer *out = conn_out(c);
	const struct reply *reply = &c->reply;

	c->head_sent = true;
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\n", reply->status,
			    status_text(reply->status), reply->content_type);
	if (reply->headers.len)
		evbuffer_add(out, reply->headers.data, reply->headers.len);
	if (is_chunked(c))
		evbuffer_add_printf(out, "transfer-encoding: chunked\r\n");
	else if (!reply->stream)
		evbuffer_add_printf(out, "content-length: %zu\r\n", reply->body.len);
	if (reply->stream)
		evbuffer_add_printf(out, "cache-control: no-cache\r\n");
	if (!c->head.keep_alive || (reply->stream && !is_chunked(c)))
		evbuffer_add_printf(out, "connection: close\r\n");
	evbuffer_add(out, "\r\n", 2);
}

static void send_chunk(struct conn *c, const char *s, size_t n)
{
	struct evbuffer *out = conn_out(c);

	if (!n)
		return;
	if (!is_chunked(c)) {
		evbuffer_add(out, s, n);
		return;
	}
	evbuffer_add_printf(out, "%zx\r\n", n);
	evbuffer_add(out, s, n);
	evbuffer_add(out, "\r\n", 2);
}

/* Split, every chunk is too short for a line, so that a client that parses chunk by chunk breaks.
 */
static void send_bytes(struct conn *c, size_t from, size_t to)
{
	size_t step = c->reply.split ? SPLIT_SIZE : to - from;

	for (size_t at = from; at < to; at += step)
		send_chunk(c, c->reply.body.data + at, MIN(step, to - at));
}

static size_t event_count(const struct conn *c)
{
	return c->reply.stream ? c->reply.n_ends : 1;
}

static size_t event_end(const struct conn *c, size_t event)
{
	return c->reply.stream ? c->reply.ends[event] : c->reply.body.len;
}

/* Events may go out together up to this one: the next fault, or all of them. */
static size_t next_stop(const struct conn *c)
{
	const struct reply *reply = &c->reply;
	int64_t stop = (int64_t)event_count(c);

	stop = MIN(stop, MIN(reply->stall_after, MIN(reply->cut_after, reply->reset_after)));
	if (reply->event_ms > 0)
		stop = MIN(stop, (int64_t)c->next_event + 1);
	return (size_t)MAX(stop, (int64_t)c->next_event);
}

/* A cut comes only after everything before it has left, or the client would see less than N events.
 */
static void on_flushed(struct conn *c)
{
	bool reset = c->reply.reset_after <= (int64_t)c->next_event;

	if (c->state != CLOSE)
		return;
	if (reset)
		conn_reset(c);
	else
		conn_free(c);
}

/* May free the connection: callers return at once. */
static void close_when_sent(struct conn *c)
{
	c->state = CLOSE;
	if (evbuffer_get_length(conn_out(c)) == 0)
		on_flushed(c);
}

/* A whole body that is cut or stalls sends its first half: there is no event to count by. */
static void send_half(struct conn *c)
{
	int64_t after = MIN(c->reply.cut_after, c->reply.stall_after);

	send_bytes(c, 0, after > 0 ? c->reply.body.len / 2 : 0);
	if (c->reply.cut_after == NEVER)
		c->state = STALLED;
	else
		close_when_sent(c);
}

/* The buffers keep their memory: the next request of a conversation is a little larger than this
 * one. */
static void finish_reply(struct conn *c)
{
	bool keep = c->head.keep_alive && (!c->reply.stream || is_chunked(c));

	if (is_chunked(c))
		evbuffer_add(conn_out(c), "0\r\n\r\n", 5);
	if (!keep) {
		close_when_sent(c);
		return;
	}
	reply_release(&c->reply);
	c->reply = (struct reply)REPLY_INIT;
	buf_clear(&c->body);
	c->state = READ_HEAD;
	/* From the loop, not from here: a pile of pipelined requests must not become a pile of
	 * calls. */
	bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* Sends events until a fault, a pause, or the end. */
static void send_events(struct conn *c)
{
	const struct reply *reply = &c->reply;
	size_t stop, from;

	if (reply->reset_after == 0) {
		conn_reset(c);
		return;
	}
	if (!c->head_sent)
		send_head(c);
	stop = next_stop(c);
	if (!reply->stream && MIN(reply->cut_after, reply->stall_after) != NEVER) {
		send_half(c);
		return;
	}
	from = c->next_event ? event_end(c, c->next_event - 1) : 0;
	if (stop > c->next_event)
		send_bytes(c, from, event_end(c, stop - 1));
	c->next_event = stop;
	if ((int64_t)stop >= reply->cut_after || (int64_t)stop >= reply->reset_after)
		close_when_sent(c);
	else if ((int64_t)stop >= reply->stall_after)
		c->state = STALLED;
	else if (stop < event_count(c))
		wait_ms(c, reply->event_ms);
	else
		finish_reply(c);
}

/* The state may have changed since the timer was set: only a waiting or sending connection goes on.
 */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	if (c->state == WAIT)
		c->state = SEND;
	if (c->state == SEND)
		send_events(c);
}

static void start_reply(struct conn *c)
{
	c->next_event = 0;
	c->head_sent = false;
	if (c->reply.delay_ms > 0) {
		c->state = WAIT;
		wait_ms(c, c->reply.delay_ms);
		return;
	}
	c->state = SEND;
	send_events(c);
}

/* After bytes that cannot be understood the connection cannot be used any further. */
static void refuse_http(struct conn *c, int status, const char *why)
{
	stats_add_bad_http(service_stats(c->server->service), why);
	render_error(&c->reply, PROTOCOL_ANTHROPIC, status, NULL, NULL, NULL,
		     status == 413 ? "Request exceeds the maximum size" : why);
	c->head.keep_alive = false;
	c->head.minor = 1;
	start_reply(c);
}

/* Returns true if the state changed. */
static bool read_head(struct conn *c)
{
	size_t n = http_head_length(buf_str(&c->in), c->in.len);
	struct err err = ERR_INIT;

	if (!n) {
		if (c->in.len > HTTP_MAX_HEAD)
			refuse_http(c, 431, "head too large");
		return false;
	}
	/* Kept apart, since the slices must live until the answer is sent. */
	buf_clear(&c->head_bytes);
	buf_add(&c->head_bytes, c->in.data, n);
	buf_drop(&c->in, n);
	if (http_parse_head(c->head_bytes.data, n, &c->head, &err) < 0) {
		refuse_http(c, 400, err.message);
		return false;
	}
	if (c->head.length > (int64_t)MAX_BODY) {
		refuse_http(c, 413, "request_too_large");
		return false;
	}
	if (c->head.expect_continue)
		evbuffer_add_printf(conn_out(c), "HTTP/1.1 100 Continue\r\n\r\n");
	c->chunks = (struct http_chunks){.state = CHUNK_SIZE};
	c->state = READ_BODY;
	if (c->head.length > 0)
		buf_reserve(&c->body, (size_t)c->head.length);
	return true;
}

/* Returns true when the body is complete. */
static bool take_body(struct conn *c)
{
	struct err err = ERR_INIT;
	size_t used = 0;
	int done;

	if (!c->head.chunked) {
		size_t want = c->head.length > 0 ? (size_t)c->head.length - c->body.len : 0;

		used = MIN(want, c->in.len);
		buf_add(&c->body, buf_str(&c->in), used);
		buf_drop(&c->in, used);
		return used == want;
	}
	done = http_chunks_feed(&c->chunks, buf_str(&c->in), c->in.len, &used, &c->body, &err);
	buf_drop(&c->in, used);
	if (done < 0)
		refuse_http(c, err.code == ERR_TOO_LARGE ? 413 : 400, err.message);
	return done > 0;
}

/* Moves as far as the bytes at hand allow. May free the connection. */
static void conn_advance(struct conn *c)
{
	if (c->state == READ_HEAD && !read_head(c))
		return;
	if (c->state != READ_BODY || !take_body(c))
		return;
	if (!c->body.data)
		buf_reserve(&c->body, 1);
	service_handle(c->server->service, &c->head, c->body.data, c->body.len, &c->reply);
	start_reply(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t n = evbuffer_get_length(input);

	if (c->state != READ_HEAD && c->state != READ_BODY)
		return;
	if (n) {
		buf_add(&c->in, evbuffer_pullup(input, -1), n);
		evbuffer_drain(input, n);
	}
	conn_advance(c);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	on_flushed(arg);
}

/* A client that only shuts down its sending side is treated as gone: none of ours does. */
static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		conn_free(arg);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int len, void *arg)
{
	struct server *server = arg;
	struct conn *c = mem_alloc(sizeof(*c));
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->server = server;
	c->bev = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->timer = evtimer_new(server->base, on_timer, c);
	c->body.max = MAX_BODY + 1;
	c->reply = (struct reply)REPLY_INIT;
	c->next = server->conns;
	if (c->next)
		c->next->prev = c;
	server->conns = c;
	bufferevent_set_max_single_read(c->bev, READ_SIZE);
	bufferevent_setwatermark(c->bev, EV_READ, 0, 4 * READ_SIZE);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

int server_new(struct event_base *base, struct service *service, uint16_t port, struct server **ret,
	       struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	struct server *server = mem_alloc(sizeof(*server));

	server->base = base;
	server->service = service;
	server->listener = evconnlistener_new_bind(
		base, on_accept, server,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 1024,
		(struct sockaddr *)&address, sizeof(address));
	if (!server->listener) {
		err_sys(err, "cannot listen on 127.0.0.1:%u", port);
		free(server);
		return -1;
	}
	getsockname(evconnlistener_get_fd(server->listener), (struct sockaddr *)&address, &len);
	server->port = ntohs(address.sin_port);
	*ret = server;
	return 0;
}

uint16_t server_port(const struct server *server)
{
	return server->port;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	while (server->conns)
		conn_free(server->conns);
	evconnlistener_free(server->listener);
	free(server);
}
