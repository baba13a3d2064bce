/*
 * peer.h - a test's own parent of a real baton-gateway process: the channel, the keys, the calls.
 *
 * The peer speaks as the parent's relay does: request, mark, data, end, credit, cancel. It waits by
 * poll(2) for a condition with a deadline, and fails the test when that passes.
 */
#ifndef BATON_TESTS_GATEWAY_PEER_H
#define BATON_TESTS_GATEWAY_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "handoff/call.h"
#include "handoff/channel.h"

#define PEER_DEADLINE_MS 10000

struct peer_call {
	int64_t req;
	const char *body;
	size_t len, sent;
	int64_t credit, owed;			   /* owed: answer bytes not credited back */
	bool hold_credit;			   /* the test gives credit back itself */
	bool hold_body;				   /* the test sends the body itself */
	int grants, attempt, agains, waits, datas; /* attempt: as the last grant says */
	int64_t until, waiting_until;
	char reason[256], waiting[256]; /* waiting: all reasons, a blank after each */
	struct buf answer;
	bool granted, over;
	char outcome[32], class[32];
	int status;
	int64_t used, limit, end_until, ttft_ms;
	char *message;
	int64_t granted_at, over_at;
};

struct peer {
	pid_t pid;
	int expected_status; /* of the gateway's exit */
	struct channel *channel;
	struct peer_call *calls[256];
	size_t n_calls;
	bool hello, ready, closed;
	int64_t pongs;
	int first_attempt; /* said in requests if above 0, as for a new gateway */
	struct buf notes;  /* one line a note: name and body */
	int64_t most_out;  /* most answer bytes that were outstanding in any call */
};

/* The proxies and certificates of the tester's own machine are none of the tests'. */
void peer_clean_environment(void);

/* Starts the gateway with the keys document (NULL: an empty file) and sends the start document. */
void peer_start(struct peer *p, const char *keys, const char *start);
/* The same for one provider "p" at http://127.0.0.1:port with short timers. more: further members
 * of the provider, ",\"x\":1", or NULL; top: further members of the document, which win, or NULL.
 */
#define PEER_LONG_TIMERS ",\"timeouts\":{\"bytes_idle_ms\":60000,\"content_idle_ms\":60000}"

void peer_start_one(struct peer *p, int port, const char *api, const char *more, const char *top);
void peer_stop(struct peer *p); /* closes the channel; the gateway must exit as expected */

/* The call object is owned by the peer until peer_stop. */
struct peer_call *peer_call(struct peer *p, const char *api, const char *body, size_t len);
/* A request with everything said; agent and purpose may be NULL. */
struct peer_call *peer_call_as(struct peer *p, const char *agent, const char *purpose,
			       const char *api, const char *body, size_t len, bool hold);
void peer_send_body(struct peer *p, struct peer_call *c); /* what credit allows */
void peer_credit(struct peer *p, struct peer_call *c);	  /* gives all owed credit back */
void peer_cancel(struct peer *p, struct peer_call *c);
void peer_abort(struct peer *p, struct peer_call *c);

/* Runs the channel until cond(arg) is true; aborts the test at the deadline. */
void peer_wait(struct peer *p, bool (*cond)(void *arg), void *arg);
void peer_wait_over(struct peer *p, struct peer_call *c);
/* Runs the channel for what is there now, and for at most ms if nothing is. */
void peer_turn(struct peer *p, int ms);

#endif
