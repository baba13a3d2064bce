/*
 * transport.h - libcurl's multi interface on a libevent loop: sockets and timers, nothing of calls.
 *
 * One transport per gateway, so that connections, name lookups, TLS sessions and the certificate
 * store are shared by all agents. Only transport.c, transfer.c and gateway_main.c know curl.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_TRANSPORT_H
#define BATON_ORCHESTRATOR_GATEWAY_TRANSPORT_H

#include <curl/curl.h>
#include <event2/event.h>

#include "base/err.h"

struct transport;

/* on_done is called for each finished transfer with the pointer that was set as CURLOPT_PRIVATE; it
 * may remove and free that handle. max_host bounds the connections to one host. */
typedef void (*transport_done_fn)(void *private, int code); /* code: a CURLcode */
int transport_new(struct event_base *base, long max_host, transport_done_fn on_done,
		  struct transport **ret, struct err *err);
void transport_free(struct transport *t); /* NULL allowed; all handles are removed before */
struct event_base *transport_base(const struct transport *t);
int transport_add(struct transport *t, CURL *easy);
void transport_remove(struct transport *t, CURL *easy);

#endif
