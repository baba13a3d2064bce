/*
 * watch.h - what must hold in every session, looked at from outside.
 */
#ifndef SIMULATOR_WATCH_H
#define SIMULATOR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "reading.h"

struct session;
struct server_call;

struct finding {
	bool found;
	char rule[8];
	char text[500];
	int64_t request;
};

struct watch_result { /* a tool result that was sent */
	uint64_t id, hash;
	size_t size;
	int64_t epoch;
};

struct watch {
	struct finding finding;
	struct buf constraints, lies,
		refuse; /* texts, each ended by NUL: must stand, must not stand */
	struct watch_result *results;
	size_t n_results, cap_results; /* a hash table */
	int64_t epoch;		       /* of the last main request */
	int64_t checked_epoch;	       /* X2 was looked at */
	int64_t checked_request;       /* the last one in which it was */
	int64_t breaks_told; /* events that told of a cache break since the last main request */
	int64_t compactions; /* events since the last main request */
	int64_t all_compactions;
	int64_t by_rule;
	int futile;	    /* in a row */
	int judged;	    /* of them by the present request */
	int64_t side_calls; /* since the last main request */
	int64_t main_requests;
	int64_t life_requests; /* of this process of the agent */
	int64_t asked_us;      /* the last of them */
	/* watch_side.c: what may have caused a compaction. */
	bool trouble;	   /* with a call of the agent's own since the last good answer */
	bool wished;	   /* by hand */
	bool reported;	   /* a report frame came */
	bool limits_known; /* W1's figures can be computed from the plan alone */
};

void watch_fail(struct session *s, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A request as it was read. `before`: messages of the request before. */
void watch_request(struct session *s, const struct server_call *c, const struct reading *r,
		   size_t before, const char *body, size_t n);
/* Another process goes on, with another model: nothing is known of prefixes and results. */
void watch_switch(struct watch *w);
/* The answer tells no usage: what the agent cannot know is no verdict on a compaction. */
void watch_unjudged(struct session *s, const struct server_call *c);
/* A call begins. */
void watch_call(struct session *s, struct server_call *c);
/* The answer of a call is complete; something went wrong with it. */
void watch_call_ends(struct session *s, const struct server_call *c);
void watch_trouble(struct session *s, const struct server_call *c);
/* A compaction was told of: did something that may cause it come before (H11)? */
void watch_cause(struct session *s, const char *body, size_t n);
/* What must be before the model after a compaction, and at every time (watch_world.c). */
void watch_world(struct session *s, const struct reading *r, const char *body, size_t n);
/* An event of the agent: its name and body (watch_events.c). */
void watch_event(struct session *s, const char *name, const char *body, size_t n);
/* rc of the loop; the agent is still there. */
void watch_end(struct session *s, int rc, const struct err *err);
/* The transcript of a session, read back (watch_load.c). */
void watch_load(struct session *s);
/* Keeps a text that must (constraints) or must not (lies, refuse) stand in requests. */
void watch_keep(struct buf *list, const char *text, size_t n);
void watch_release(struct watch *w);

#endif
