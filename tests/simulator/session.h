/*
 * session.h - one simulated session: an agent's real loop, the server that answers it, the watcher of both.
 *
 *   plan     what was drawn from the seed                     plan.h
 *   agent    the product: work_round over a transport of ours
 *   server   answers calls from memory; enforces its window   server.c, conduct.c
 *   tools    results from the generator                       tools.c
 *   world    the files and notes that they work on            world.h
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
#include "world.h"

struct mutant;

struct session_cost { /* tokens as they were settled */
	int64_t fresh, read, written, output, calls;
	uint64_t trail; /* of all request bodies */
	struct context_counts counts;
};

struct session {
	struct session_plan plan;
	struct random random;
	struct tokenizer tokenizer, tokenizer_apart;
	const struct mutant *mutant; /* NULL: none */
	struct tallies *tallies;
	const char *folder;
	struct agent agent;
	int peer; /* our end of the agent's channel */
	int agents_end;
	struct buf heard;	/* what came and was not looked at */
	struct buf task, rules; /* of the start document */
	int64_t offloaded;	/* the next file's number, as it was counted */
	int64_t now_us;
	int64_t answers; /* to main calls */
	int64_t numbers; /* for ids and sentences that occur once */
	bool stopping;	 /* a stop was asked for */
	bool trace;
	bool over;
	int rc; /* of the loop */
	struct err err;
	struct session_cost cost;
	struct server server;
	struct watch watch;
	struct world world;
};

extern struct session
	*session_now; /* tools and clocks get no argument of ours: that of the last step */

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

/* The same in steps of a round, so that several can be under way in one process. The caller closes. */
struct session *session_open(const struct session_options *options, struct tallies *tallies);
bool session_step(struct session *s); /* false: it is over */
int session_close(struct session *s, const struct session_options *options, struct finding *ret);

/* Pumps the channel: what the agent told is read, what we told is taken in by it. */
void session_hear(struct session *s);
void session_control(struct session *s, const char *action, const char *body);
/* What the next report is answered with; stays in the channel until the agent waits for it. */
void session_acknowledge(struct session *s, const char *key);
/* Every wait of the agent takes in what lies there: the answer to a report by rule is laid again. */
void session_lay(struct session *s);
void session_user_says(struct session *s, struct message *m);

#endif
