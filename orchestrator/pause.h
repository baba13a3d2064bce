/*
 * pause.h - model calls that wait although a slot may be free: because a person said so, or the money is spent.
 *
 * A pause kills and signals nothing. What has left goes on to its end, tools too; the next request of an agent stays
 * with the parent, whose agent waits for it as for a slot, so no watchdog counts the time (X6). No agent is started.
 *
 *     who holds it   begins                             ends
 *     a person       `baton pause RUN[/AGENT]`          `baton resume RUN[/AGENT]`
 *     the budget     a call does not fit, nothing is    `baton resume RUN --max-cost N`; else the run ends with its
 *                    in flight (X8)                     work kept when nobody works any more
 *
 * A pause of an agent holds those that it started too. The time in which a person holds the whole run does not count
 * for --time-limit. A run that goes on after its parent's end is not paused any more.
 */
#ifndef BATON_ORCHESTRATOR_PAUSE_H
#define BATON_ORCHESTRATOR_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct agent_record;
struct run;

enum pause_why { PAUSE_PERSON = 1, PAUSE_BUDGET = 2 };

struct run_pause {
	unsigned why;	  /* of enum pause_why; 0: it is not paused */
	int64_t since_ms; /* monotonic, of a person's */
	int64_t total_ms; /* of a person's that are over */
};

/* Does a person hold it, or one by whom it was started, or the run? Then its next request stays here. PAUSE_BUDGET does not
 * make that: what still fits may go. */
bool agent_is_paused(const struct agent_record *agent);
bool run_is_paused(const struct run *run); /* for whatever reason: nobody is started */
int64_t run_paused_ms(const struct run *run);

/* False: it is so already. `reason` is for people. */
bool run_pause(struct run *run, enum pause_why why, const char *reason);
bool run_unpause(struct run *run, enum pause_why why);
bool agent_pause(struct agent_record *agent);
bool agent_unpause(struct agent_record *agent);

#endif
