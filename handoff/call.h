/*
 * call.h - the call protocol: one model call over the channel, from its three sides.
 *
 *   agent (caller)          parent (relay)            gateway (callee)
 *   request  ------------->  reserve, new number --->  queue for a slot
 *            <-- waiting --                   <-----   waiting {reason, until}
 *            <-- grant ----                   <-----   grant {attempt}
 *   data * ---------------------------------------->   body of the HTTP request, as it is sent
 *   end    ---------------------------------------->
 *            <-- data * ------------------------------ bytes of the answer (SSE), as they come
 *            <-- again --  what came is void; wait for the next grant and send the body once more
 *            <-- end {outcome} ------------------------ the call is over
 *   cancel ------------->  end {outcome:"cancelled"} at once
 *                                        ------->  cancel: drop the call, nothing is answered
 *   usage  ------------->  settle the reservation (of the attempt that just ended or of the call)
 *
 * Credit: in each direction of a call at most CALL_CREDIT bytes of data may be outstanding; the
 * receiver returns credit {bytes} as it consumes. So no queue grows beyond CALL_CREDIT per call and
 * direction, no reader ever has to stop reading a channel, and nobody blocks. A grant resets both
 * windows to CALL_CREDIT.
 *
 * Earlier attempts cannot be mistaken for the present one. Downwards the order of the channel is
 * enough: what comes between `again` and the next `grant` is void. Upwards old frames may still be
 * on their way when the next grant is out, so the caller answers each grant with exactly one mark,
 * a `credit` with bytes = 0, before anything else of that attempt. The callee counts: it is open
 * when every grant that it sent has had its mark (a single flag would take the late mark of attempt
 * 1 for that of attempt 2). Data, end and credit that arrive while it is not open are dropped. The
 * marks of grants that a dead gateway sent are counted off by the relay and never reach the new
 * one. Attempts are numbered upwards over the whole call: a grant names the attempt that begins, an
 * `again` the one that is void; the request tells a new gateway which number comes next.
 *
 * The relay answers a cancel itself, with an urgent end, so that neither a busy gateway nor queued
 * bytes delay it. It may cross an end, an again or a grant: the caller ignores all but the first
 * end. Each call has exactly one for its caller. Urgent frames (request, cancel, abort) overtake
 * data, so the gateway, too, ignores frames for numbers that it has closed.
 *
 * Outcomes of end from the gateway: ok, failed, cancelled. With failed: class (call_class_name),
 * HTTP status (0 if none), used/limit tokens if the error named them, until (wall ms) for limits,
 * and the provider's message as the body (at most 8 KiB, sanitised).
 *
 * This file holds the bookkeeping of windows for caller and callee and the relay table of the
 * parent. It does no I/O of its own: it sends frames through a struct channel.
 */
#ifndef BATON_HANDOFF_CALL_H
#define BATON_HANDOFF_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "handoff/channel.h"

#define CALL_CREDIT   (256 << 10)
#define CALL_PART     (16 << 10) /* of a body or answer in one frame: an urgent one waits for it */
#define CALL_PER_PEER 8		 /* open calls of one agent */

/* Classes of a failed call, as the agent needs to tell them apart. */
enum call_class {
	CALL_CLASS_NONE,
	CALL_OVERFLOW,	  /* prompt too long; used/limit may be known */
	CALL_RATE_LIMIT,  /* a limit whose end is later than we are willing to sleep: until */
	CALL_OVERLOAD,	  /* retries used up on 5xx, 529 */
	CALL_AUTH,	  /* 401, 403, missing key */
	CALL_QUOTA,	  /* 402, insufficient_quota, spend limit: no retry helps */
	CALL_REFUSED,	  /* the provider declined on policy */
	CALL_BAD_REQUEST, /* other 4xx: our request is wrong */
	CALL_NETWORK,	  /* no connection, TLS, DNS, stalls used up */
	CALL_BUDGET,	  /* the parent refused: budget */
	CALL_GATEWAY,	  /* the gateway died twice under this call */
};
const char *call_class_name(enum call_class class); /* "overflow", ... */
enum call_class call_class_parse(const char *name); /* CALL_CLASS_NONE if unknown */
/* The provider was not reached or did not serve us: another time the same call may go through. */
bool call_class_unreachable(enum call_class class);

/* What a call is for; "background" and "compact" yield to "main" in the gateway's queue. */
enum call_purpose { CALL_MAIN, CALL_BACKGROUND, CALL_COMPACT };
const char *call_purpose_name(enum call_purpose purpose);

/* ---- the caller's side (agent) ---- */

struct call_request {
	enum call_purpose purpose;
	const char *provider, *model, *api; /* api: "anthropic" or "openai" */
	int64_t length;			    /* bytes of the body, exact */
	int64_t estimate;		    /* input tokens by the ledger */
	int64_t max_tokens;		    /* as written into the body */
	const char *beta;		    /* value of anthropic-beta, or NULL */
};

struct call_end {
	const char *outcome; /* "ok", "failed", "cancelled" */
	enum call_class class;
	int status;
	int64_t used, limit; /* tokens, 0 if unknown */
	int64_t until;	     /* wall ms, 0 if none */
	int64_t ttft_ms;     /* time to first content byte, -1 if none came */
	const char *message; /* sanitised text of the provider, "" if none */
};

struct call_callers; /* the open calls of one channel */

struct call_events {
	/* The body is wanted from its first byte (first grant, or after again). Returns the bytes
	 * of the body, which must stay valid until the call is over. */
	const char *(*body)(void *arg, size_t *ret_len);
	/* Bytes of the answer; consumed at once (credit goes back by itself). -1 with err set
	 * cancels. */
	int (*on_data)(void *arg, const char *bytes, size_t n, struct err *err);
	/* What came is void. status: of the attempt that failed, 0 if it had none. */
	void (*on_again)(void *arg, int attempt, int status, const char *reason,
			 int64_t until_wall_ms);
	void (*on_waiting)(void *arg, const char *reason, int64_t until_wall_ms);
	/* The call is over; the caller object is freed after it returns. Called exactly once for
	 * each call that call_cancel did not end. When on_data cancelled, message is its error. */
	void (*on_end)(void *arg, const struct call_end *end);
};

/* Several calls may be open on one channel. */
struct call_callers *call_callers_new(struct channel *ch);
void call_callers_free(struct call_callers *set);
/* Starts a call; returns its req number (> 0), or -1 if CALL_PER_PEER are open. */
int64_t call_start(struct call_callers *set, const struct call_request *request,
		   const struct call_events *events, void *arg, struct err *err);
/* Nothing is called for the call any more, so arg may go at once. Unknown numbers are ignored. */
void call_cancel(struct call_callers *set, int64_t req);
/* Feeds frames of types WAITING, GRANT, DATA, END, AGAIN, CREDIT. Unknown req numbers are ignored.
 * -1: the other side broke the protocol. */
int call_callers_frame(struct call_callers *set, const struct frame *frame, struct err *err);
/* To be called when the channel could write: sends more of the bodies within credit. */
void call_callers_pump(struct call_callers *set);

/* ---- the relay (parent): numbers only, no bodies are kept ---- */

struct call_relay;
/* One relay for the whole star. The gateway's channel may change (restart). */
struct call_relay *call_relay_new(void);
void call_relay_free(struct call_relay *relay);
void call_relay_gateway(struct call_relay *relay, struct channel *gateway); /* NULL: none now */

struct call_entry {	/* one open call, as the parent sees it */
	int64_t number; /* the gateway's number */
	int64_t req;	/* the agent's number */
	struct channel *from;
	void *peer;   /* the parent's own agent */
	char *fields; /* header fields of the request, for a new gateway */
	int64_t estimate, max_tokens;
	/* Of the present attempt; kept over `again`, 0 at the grant. */
	int64_t bytes_up, bytes_down;
	int attempt; /* the attempt that was granted last; 0 before the first grant */
	int gateway_deaths;
	bool held; /* not sent to the gateway yet (budget) */
	bool over; /* the gateway's end was sent to the agent: settle, then call_relay_close */
	double reserved; /* the parent's budget keeps its figure here */
	/* The relay's own: windows and marks (see above). */
	int64_t out_up, out_down; /* bytes forwarded and not credited back */
	int marks_owed;		  /* grants forwarded whose mark has not come */
	int marks_stale;	  /* of them, those of dead gateways */
	bool granted;		  /* a grant was forwarded, and no `again` since */
	bool released;		  /* the present gateway has it */
	struct call_entry *next;
};

/* A request frame of an agent: makes the entry, held. The parent then calls call_relay_release
 * (send it to the gateway, or keep it for the next one) or call_relay_refuse (tells the agent `end`
 * with failed/class and closes the entry; for CALL_BUDGET limit is the max_tokens that the budget
 * still covers, 0 if none). NULL with err: the agent broke the protocol (req in use, more than
 * CALL_PER_PEER open, header too long). */
struct call_entry *call_relay_open(struct call_relay *relay, struct channel *from, void *peer,
				   const struct frame *request, const char *agent_name,
				   struct err *err);
void call_relay_release(struct call_relay *relay, struct call_entry *entry);
void call_relay_refuse(struct call_relay *relay, struct call_entry *entry, enum call_class class,
		       int64_t limit, const char *message);
/* Frames DATA, END, CREDIT, CANCEL from an agent; -1: that agent broke the protocol. CANCEL closes
 * the entry: a parent that settles by its bytes looks at call_relay_find before. */
int call_relay_from_agent(struct call_relay *relay, struct channel *from, const struct frame *frame,
			  struct err *err);
/* Frames from the gateway. *ret_entry is the call that the frame belongs to (NULL if it is gone);
 * *ret_over is set when it ended: the parent settles and then calls call_relay_close. -1: the
 * gateway broke the protocol. */
int call_relay_from_gateway(struct call_relay *relay, const struct frame *frame,
			    struct call_entry **ret_entry, bool *ret_over, struct err *err);
void call_relay_close(struct call_relay *relay, struct call_entry *entry);
/* The agent is gone: abort to the gateway for each of its calls; calls fn for each before it goes.
 * To be called before its channel is freed. */
void call_relay_drop_agent(struct call_relay *relay, struct channel *from,
			   void (*fn)(struct call_entry *entry, void *arg), void *arg);
/* The gateway died: `again` to the agents of all calls that were granted; a call with two deaths
 * ends as failed/gateway (fn is called for those, then they are closed). With the new gateway's
 * channel set, call_relay_reissue sends the requests again. To settle the attempts that were lost,
 * walk call_relay_each before. */
void call_relay_gateway_died(struct call_relay *relay,
			     void (*fn)(struct call_entry *entry, void *arg), void *arg);
void call_relay_reissue(struct call_relay *relay);
struct call_entry *call_relay_find(struct call_relay *relay, struct channel *from, int64_t req);
/* Every entry that is not closed, oldest first; fn may close the entry that it is given. */
void call_relay_each(struct call_relay *relay, void (*fn)(struct call_entry *entry, void *arg),
		     void *arg);
size_t call_relay_count(const struct call_relay *relay);

/* ---- the callee's side (gateway): windows of one call ---- */

/* All zero at the request; one for the whole call (resetting it for a retry would lose the count of
 * marks). An `end` of the caller counts only while it is open. */
struct call_window {
	int64_t may_send;    /* answer bytes that the caller still takes */
	int64_t outstanding; /* body bytes received and not yet credited back */
	int64_t consumed;    /* of them, those consumed */
	int marks_due;	     /* grants sent whose mark has not come */
	bool voided;	     /* an `again` was sent, and no grant since */
	bool open;	     /* not voided, and every grant has its mark */
};
void call_window_granted(struct call_window *w); /* with each grant sent */
void call_window_voided(struct call_window *w);	 /* with each again sent */
/* A data frame of n bytes came: 1 take it, 0 drop it (an earlier attempt's), -1 over credit. */
int call_window_received(struct call_window *w, size_t n, struct err *err);
/* n body bytes were consumed: sends credit when it is worth a frame (64 KiB, or all that is out).
 */
void call_window_consumed(struct call_window *w, struct channel *ch, int64_t req, size_t n);
/* A credit frame came; bytes = 0 is the caller's mark. */
void call_window_credit(struct call_window *w, int64_t bytes);
/* Sends up to n bytes within credit; returns how many. */
size_t call_window_send(struct call_window *w, struct channel *ch, int64_t req, const char *bytes,
			size_t n);

#endif
