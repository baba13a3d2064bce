/*
 * transfer.h - one attempt of one call as an HTTP request: a body streamed up, an answer streamed
 * down.
 *
 * Neither side is held in memory beyond the call's credit: when the body that the agent has sent is
 * used up the sending half pauses, when the agent's credit is used up the receiving half does, this
 * transfer alone. Answers of status 200 that are streams of events go to on_answer as they come;
 * everything else (errors, JSON, HTML) is collected, at most TRANSFER_DOCUMENT_MAX bytes of it.
 *
 * Timers run only while the server is the one that is waited for: bytes_idle_ms without any byte in
 * either direction, content_idle_ms without anything but keep-alives.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_TRANSFER_H
#define BATON_ORCHESTRATOR_GATEWAY_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "orchestrator/gateway/limits.h"
#include "orchestrator/gateway/retry.h"
#include "orchestrator/gateway/settings.h"
#include "orchestrator/gateway/watch.h"

#define TRANSFER_DOCUMENT_MAX (64 << 10)

enum transfer_fault {
	FAULT_NONE,
	FAULT_CONNECT,	 /* no connection: name, refused, timeout, TLS broken off */
	FAULT_TRUST,	 /* the certificate is not trusted, or the bundle cannot be read */
	FAULT_SETUP,	 /* an address or option that curl refuses */
	FAULT_PROXY,	 /* the proxy refuses the tunnel */
	FAULT_BROKEN,	 /* the connection ended or failed in between */
	FAULT_STALLED,	 /* a timer */
	FAULT_MALFORMED, /* not HTTP, or a stream that is not made of events */
};

struct transfer_result {
	enum transfer_fault fault;
	char detail[256]; /* what curl or the timer says of the fault; names no credentials */
	int status;	  /* 0: no response */
	bool stream;	  /* the answer was a stream of events; then watch says how it ended */
	struct watch watch;
	struct buf document;
	char *content_type, *location; /* NULL if absent */
	struct retry_hints hints;
	struct limit_news limits;
	int64_t bytes;		  /* of the answer's body */
	int64_t first_content_ms; /* monotonic time of the first content, -1: none came */
	bool reused;		  /* on a connection that had served before */
	bool stale;		  /* that connection was dead, no byte of an answer came */
	int http;		  /* 1 or 2; 0: no response */
};

struct transfer_events {
	size_t (*room)(void *arg); /* answer bytes that are accepted now */
	void (*on_answer)(void *arg, const char *bytes, size_t n);
	void (*on_consumed)(void *arg, size_t n); /* body bytes that are out */
	/* Called once, from the loop; the transfer is to be freed in it or later. */
	void (*on_done)(void *arg, const struct transfer_result *result);
};

struct transfer_spec {
	const struct provider *provider;
	const struct gateway_settings *settings;
	const char *api, *beta; /* beta: NULL for none */
	int64_t length;
	bool fresh; /* on a new connection: the last one was bad */
};

struct transport;
struct transfer;

/* transport_done_fn of the transport that runs transfers. */
void transfer_finished(void *transfer, int code);

/* Starts at once; the body may follow as it comes. */
int transfer_start(struct transport *transport, const struct transfer_spec *spec,
		   const struct transfer_events *events, void *arg, struct transfer **ret,
		   struct err *err);
void transfer_free(struct transfer *t); /* cancels if it is not done; NULL allowed */
void transfer_body(struct transfer *t, const char *bytes, size_t n);
void transfer_room(struct transfer *t); /* room() has grown */

#endif
