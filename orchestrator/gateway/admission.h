/*
 * admission.h - who may send next: slots, fairness among agents, pauses, learned limits.
 *
 * One lane per provider. A call queues with a ticket that lives in the caller's struct;
 * admission_next gives the tickets that may go now. The order within a lane: main before compact
 * and background (which count as main once they have waited long), then the agent with the fewest
 * calls in flight, then the agent served longest ago, then age.
 *
 * A lane's limit falls by half at a sign of congestion and grows by one per limit successes, never
 * above its ceiling; a pause holds the whole lane, so that one agent's back-off slows the others
 * before they run into the same wall. All times are monotonic ms and come from the caller; nothing
 * here waits.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_ADMISSION_H
#define BATON_ORCHESTRATOR_GATEWAY_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handoff/call.h"
#include "orchestrator/gateway/limits.h"

#define ADMISSION_DEFAULT_SLOTS 64

struct share; /* an agent's part in a lane */

enum ticket_state { TICKET_IDLE, TICKET_QUEUED, TICKET_FLYING };

struct ticket {
	enum call_purpose purpose; /* set by the owner, with estimate and owner */
	int64_t estimate;
	void *owner;
	/* admission's own: */
	enum ticket_state state;
	size_t lane;
	struct share *share;
	int64_t queued_at, ready_at, granted_at;
	uint64_t number;
	struct ticket *prev, *next;
};

struct admission;

/* One lane per entry of slots; 0 stands for ADMISSION_DEFAULT_SLOTS. */
struct admission *admission_new(const int *slots, size_t lanes);
void admission_free(struct admission *a); /* NULL allowed; tickets are not touched */
int admission_ceiling(const struct admission *a, size_t lane);
double admission_limit(const struct admission *a,
		       size_t lane); /* as it is now, for tests and notes */

/* The ticket must be idle. It becomes eligible at ready_at. */
void admission_enqueue(struct admission *a, struct ticket *t, size_t lane, const char *agent,
		       int64_t now, int64_t ready_at);
/* Takes a ticket out, whatever its state. */
void admission_leave(struct admission *a, struct ticket *t);
/* The next ticket that may go; it is in flight from now on. NULL: none now, and *ret_wake is the
 * time at which to ask again (-1: only when something changes). */
struct ticket *admission_next(struct admission *a, int64_t now, int64_t *ret_wake);
/* An attempt is over; the ticket is idle again. congested halves the lane's limit, once per burst:
 * attempts that were granted before the last cut do not cut again. */
void admission_done(struct admission *a, struct ticket *t, bool succeeded, bool congested,
		    int64_t now);
/* Nothing of the lane goes before `until`. True if that is news (later than what was known). */
bool admission_pause(struct admission *a, size_t lane, int64_t until);
/* Rate headers of a response; a reset later than max_wait ms away is taken as max_wait. */
void admission_learn(struct admission *a, size_t lane, const struct limit_news *news,
		     int64_t server_date, int64_t now_wall, int64_t now, int64_t max_wait);
/* Why a queued ticket waits: "retry", "limit" or "slot"; *ret_until as monotonic ms or -1. */
const char *admission_reason(const struct admission *a, const struct ticket *t, int64_t now,
			     int64_t *ret_until);
/* Calls fn for each queued ticket; fn must not change the queue. */
void admission_each(struct admission *a, void (*fn)(struct ticket *t, void *arg), void *arg);

#endif
