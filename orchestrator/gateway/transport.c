/*
 * transport.c - see transport.h.
 *
 * curl says which sockets and which timeout it waits for; libevent waits; each event is handed back
 * by curl_multi_socket_action, and finished transfers are collected after it. curl's callbacks only
 * note things: handles are added and removed outside of them.
 *
 * Name lookups run in threads of curl's own, which exist only while one is under way. Connections
 * that rest are kept, as many as may be open to one host; curl notices at the next use that one has
 * died.
 */
#include "orchestrator/gateway/transport.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

struct transport {
	struct event_base *base;
	CURLM *multi;
	struct event *timer;
	transport_done_fn on_done;
};

static void collect(struct transport *t)
{
	CURLMsg *msg;
	int left;
	while ((msg = curl_multi_info_read(t->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		char *private = NULL;
		CURLcode code = msg->data.result;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private);
		t->on_done(private, (int)code); /* msg is invalid afterwards */
	}
}

static void on_socket_event(evutil_socket_t fd, short what, void *arg)
{
	struct transport *t = arg;
	int mask =
		(what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	int running;
	curl_multi_socket_action(t->multi, fd, mask, &running);
	collect(t);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct transport *t = arg;
	int running;
	curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(t);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *per_socket)
{
	struct transport *t = arg;
	struct event *event = per_socket;
	if (event)
		event_free(event);
	event = NULL;
	/* A new event for each change of interest: libevent cannot change a mask in place. */
	if (what != CURL_POLL_REMOVE) {
		short mask = EV_PERSIST;
		if (what & CURL_POLL_IN)
			mask |= EV_READ;
		if (what & CURL_POLL_OUT)
			mask |= EV_WRITE;
		event = event_new(t->base, fd, mask, on_socket_event, t);
		if (!event || event_add(event, NULL))
			abort();
	}
	curl_multi_assign(t->multi, fd, event);
	return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct transport *t = arg;
	struct timeval tv = clock_timeval(timeout_ms);
	if (timeout_ms < 0)
		evtimer_del(t->timer);
	else
		evtimer_add(t->timer, &tv);
	return 0;
}

int transport_new(struct event_base *base, long max_host, transport_done_fn on_done,
		  struct transport **ret, struct err *err)
{
	struct transport *t = mem_alloc(sizeof(*t));
	t->base = base;
	t->on_done = on_done;
	t->multi = curl_multi_init();
	t->timer = evtimer_new(base, on_timer, t);
	if (!t->multi || !t->timer) {
		transport_free(t);
		return err_set(err, ERR_IO, "cannot start curl");
	}
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
	curl_multi_setopt(t->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(t->multi, CURLMOPT_MAX_HOST_CONNECTIONS, max_host);
	curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, max_host);
	*ret = t;
	return 0;
}

void transport_free(struct transport *t)
{
	if (!t)
		return;
	if (t->multi)
		curl_multi_cleanup(t->multi);
	if (t->timer)
		event_free(t->timer);
	free(t);
}

struct event_base *transport_base(const struct transport *t)
{
	return t->base;
}

int transport_add(struct transport *t, CURL *easy)
{
	return curl_multi_add_handle(t->multi, easy) == CURLM_OK ? 0 : -1;
}

void transport_remove(struct transport *t, CURL *easy)
{
	curl_multi_remove_handle(t->multi, easy);
}
