/*
 * session.h - one simulated session: an agent's real loop, the server that answers it, the watcher of both.
 *
 *   plan     what was drawn from the seed                     plan.h
 *   agent    the product: work_round over a transport of ours
 *   server   answers calls from memory; enforces its window   server.c, conduct.c
 *   tools    results from the generator                       tools.c
 *   watch    what must hold, looked at from outside           watch.c
 *   mutant   what is broken on purpose                        mutants.c
 *
 * All that happens follows from the seed: time is virtual, and nothing else is read but the files that the agent
 * wrote itself.
 */
#ifndef SIMULATOR_SESSION_H
#define SIMULATOR_SESSION_H

#include "agent/state.h"
#include "plan.h"
#include "reading.h"
#include "server.h"
#include "tally.h"
#include "watch.h"

struct mutant;

struct session_cost { /* tokens as they were settled */
	int64_t fresh, read, written, output, calls;
	struct context_counts counts;
};

struct session {
	struct session_plan plan;
	struct random random;
	struct tokenizer tokenizer;
	const struct mutant *mutant; /* NULL: none */
	struct tallies *tallies;
	const char *folder;
	struct agent agent;
	int peer;	  /* our end of the agent's channel */
	struct buf heard; /* what came and was not looked at */
	int64_t now_us;
	int64_t answers; /* to main calls */
	int64_t numbers; /* for ids and sentences that occur once */
	bool stopping;	 /* a stop was asked for */
	bool trace;
	struct session_cost cost;
	struct server server;
	struct watch watch;
};

extern struct session *session_now; /* tools and clocks get no argument of ours */

struct session_options {
	uint64_t seed;
	enum form form;
	const struct mutant *mutant;
	const char *folder;		 /* exists and is empty */
	bool load;			 /* read the transcript back (H12) */
	bool trace;			 /* print calls and what the agent tells */
	const struct session_plan *plan; /* instead of one that is drawn; NULL */
	struct session_cost *ret_cost;	 /* NULL: nobody asks */
};

/* Runs it to its end. 0, or 1 with the watcher's finding copied to *ret. */
int session_run(const struct session_options *options, struct tallies *tallies,
		struct finding *ret);

/* Pumps the channel: what the agent told is read, what we told is taken in by it. */
void session_hear(struct session *s);
void session_control(struct session *s, const char *action, const char *body);
/* What the next report is answered with; stays in the channel until the agent waits for it. */
void session_acknowledge(struct session *s, const char *key);
void session_user_says(struct session *s, struct message *m);

#endif
