/*
 * server.h - the model server, as a transport that answers from memory.
 */
#ifndef SIMULATOR_SERVER_H
#define SIMULATOR_SERVER_H

#include "agent/transport.h"
#include "cache.h"
#include "faults.h"
#include "reading.h"
#include "speech.h"

struct session;

enum step_kind { STEP_AGAIN, STEP_WAITING, STEP_DATA, STEP_END };

struct step {
	enum step_kind kind;
	int status; /* STEP_AGAIN */
	const char *reason;
	int64_t delay_ms;
	size_t from, to;     /* STEP_DATA: bytes of the call's stream */
	struct call_end end; /* STEP_END */
};

#define STEPS_MAX 12

struct server_call {
	int64_t req;
	struct call_events events;
	void *user;
	enum call_purpose purpose;
	int64_t estimate, max_tokens;
	bool answered; /* its steps are known */
	int patience;  /* waits before a background call is answered */
	struct step steps[STEPS_MAX];
	size_t n_steps, at;
	struct speech speech;
	int64_t prompt;		       /* tokens, by the server's count, without what it cleared */
	int64_t window;		       /* of the model that is asked */
	int64_t cleared, cleared_uses; /* by the provider (H2) */
	bool apart;		       /* not the agent's own model (H16) */
	int64_t epoch;		       /* of the view when it was opened */
	bool ended;
};

struct server {
	struct reading main, side, apart;
	struct server_call *open[CALL_PER_PEER];
	size_t n_open;
	int64_t next_req;
	int64_t window; /* the real one */
	int64_t requests;
	uint64_t trail;	       /* of all requests so far (pairs.c) */
	int starting, serving; /* a call is being opened, events are being given */
	int64_t edits_refused; /* number of the newest call when that was said; 0: never */
	struct cache cache;
	struct cache_hit hit; /* what of the present prompt the server has already */
	bool over;	      /* nothing is answered any more: the watcher has found something */
};

struct transport server_transport(struct session *s);
void server_init(struct session *s);
void server_release(struct session *s);

/* For conduct.c: steps of a call. */
void server_again(struct server_call *c, int status, const char *reason, int64_t delay_ms);
void server_say(struct server_call *c, size_t from, size_t to);
struct call_end *server_end(struct server_call *c, const char *outcome, enum call_class class,
			    int status, const char *message);

#endif
