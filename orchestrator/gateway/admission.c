/*
 * admission.c - see admission.h.
 *
 * A lane's queue is a plain list that is searched for each grant: it holds the calls that wait, at
 * most a few per agent, and a grant stands before a network round trip. Shares are kept for the
 * run, since forgetting when an agent was served last would let the quick ones overtake for ever.
 *
 * Three things hold a ticket back, and each knows when to look again:
 *
 *   ready_at     this call only   the wait before its next attempt
 *   pause_until  the lane         what one of its calls was told by a 429, 503 or 529
 *   windows      by kind          what the rate headers say is left until their reset
 *
 * and one that only a release ends: the lane's limit. It moves as TCP's window does (additive
 * increase, multiplicative decrease), because providers do not tell how many calls they bear.
 */
#include "orchestrator/gateway/admission.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* After so long a wait a background call is no longer second. */
#define AGE_MS 30000

struct share {
	char *agent;
	int flying;
	uint64_t served; /* number of the last grant in the lane; 0: never */
	struct share *next;
};

struct window {	       /* what is left of a learned limit */
	int64_t left;  /* -1: not known */
	int64_t limit; /* -1: not known */
	int64_t reset; /* monotonic ms at which `left` is worthless */
};

struct lane {
	int ceiling;
	double limit;
	int flying;
	int64_t pause_until, cut_at;
	struct window windows[LIMIT_KINDS];
	bool counts_cached;
	uint64_t served;
	struct share *shares;
	struct ticket *first, *last;
};

struct admission {
	struct lane *lanes;
	size_t n;
	uint64_t number;
};

struct admission *admission_new(const int *slots, size_t lanes)
{
	struct admission *a = mem_alloc(sizeof(*a));
	a->n = lanes;
	a->lanes = mem_alloc(sizeof(*a->lanes) * (lanes + 1));
	for (size_t i = 0; i < lanes; i++) {
		struct lane *lane = &a->lanes[i];
		lane->ceiling = slots[i] > 0 ? slots[i] : ADMISSION_DEFAULT_SLOTS;
		lane->limit = lane->ceiling;
		lane->cut_at = -1;
		for (size_t k = 0; k < LIMIT_KINDS; k++)
			lane->windows[k] = (struct window){-1, -1, 0};
	}
	return a;
}

void admission_free(struct admission *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++) {
		while (a->lanes[i].shares) {
			struct share *share = a->lanes[i].shares;
			a->lanes[i].shares = share->next;
			free(share->agent);
			free(share);
		}
	}
	free(a->lanes);
	free(a);
}

int admission_ceiling(const struct admission *a, size_t lane)
{
	return a->lanes[lane].ceiling;
}

double admission_limit(const struct admission *a, size_t lane)
{
	return a->lanes[lane].limit;
}

static struct share *find_share(struct lane *lane, const char *agent)
{
	struct share *share;
	for (share = lane->shares; share; share = share->next) {
		if (strcmp(share->agent, agent) == 0)
			return share;
	}
	share = mem_alloc(sizeof(*share));
	share->agent = mem_strdup(agent);
	share->next = lane->shares;
	lane->shares = share;
	return share;
}

void admission_enqueue(struct admission *a, struct ticket *t, size_t lane_index, const char *agent,
		       int64_t now, int64_t ready_at)
{
	struct lane *lane = &a->lanes[lane_index];
	t->lane = lane_index;
	t->share = find_share(lane, agent);
	t->queued_at = now;
	t->ready_at = ready_at;
	t->number = ++a->number;
	t->state = TICKET_QUEUED;
	t->next = NULL;
	t->prev = lane->last;
	*(lane->last ? &lane->last->next : &lane->first) = t;
	lane->last = t;
}

static void unlink_ticket(struct lane *lane, struct ticket *t)
{
	*(t->prev ? &t->prev->next : &lane->first) = t->next;
	*(t->next ? &t->next->prev : &lane->last) = t->prev;
	t->prev = t->next = NULL;
}

void admission_leave(struct admission *a, struct ticket *t)
{
	struct lane *lane = &a->lanes[t->lane];
	if (t->state == TICKET_QUEUED) {
		unlink_ticket(lane, t);
	} else if (t->state == TICKET_FLYING) {
		lane->flying--;
		t->share->flying--;
	}
	t->state = TICKET_IDLE;
}

/* Until when the windows hold this ticket back; 0: they do not. Without the cached part an estimate
 * says nothing about Anthropic's input limit (wire.md 1.7), so there only an empty window counts.
 */
static int64_t window_blocks(const struct lane *lane, const struct ticket *t, int64_t now)
{
	int64_t until = 0;
	for (size_t k = 0; k < LIMIT_KINDS; k++) {
		const struct window *w = &lane->windows[k];
		if (w->left < 0 || now >= w->reset)
			continue;
		bool tokens = k == LIMIT_TOKENS && lane->counts_cached &&
			      (w->limit < 0 || t->estimate <= w->limit);
		if (w->left == 0 || (tokens && t->estimate > w->left))
			until = MAX(until, w->reset);
	}
	return until;
}

/* True if a goes before b. */
static bool goes_before(const struct ticket *a, const struct ticket *b, int64_t now)
{
	bool second_a = a->purpose != CALL_MAIN && now - a->queued_at < AGE_MS;
	bool second_b = b->purpose != CALL_MAIN && now - b->queued_at < AGE_MS;
	if (second_a != second_b)
		return second_b;
	if (a->share->flying != b->share->flying)
		return a->share->flying < b->share->flying;
	if (a->share->served != b->share->served)
		return a->share->served < b->share->served;
	return a->number < b->number;
}

static void wake_at(int64_t *wake, int64_t at)
{
	if (*wake < 0 || at < *wake)
		*wake = at;
}

static struct ticket *pick(struct lane *lane, int64_t now, int64_t *wake)
{
	struct ticket *best = NULL;
	if (!lane->first || lane->flying >= (int)lane->limit)
		return NULL;
	if (lane->pause_until > now) {
		wake_at(wake, lane->pause_until);
		return NULL;
	}
	for (struct ticket *t = lane->first; t; t = t->next) {
		int64_t blocked = MAX(t->ready_at, window_blocks(lane, t, now));
		if (blocked > now)
			wake_at(wake, blocked);
		else if (!best || goes_before(t, best, now))
			best = t;
	}
	return best;
}

static void grant(struct lane *lane, struct ticket *t, int64_t now)
{
	unlink_ticket(lane, t);
	t->state = TICKET_FLYING;
	t->granted_at = now;
	t->share->flying++;
	t->share->served = ++lane->served;
	lane->flying++;
	/* The headers of the next answer correct this; until then the calls of one turn must not
	 * all take the same last place. */
	struct window *requests = &lane->windows[LIMIT_REQUESTS];
	if (requests->left > 0)
		requests->left--;
	struct window *tokens = &lane->windows[LIMIT_TOKENS];
	if (lane->counts_cached && tokens->left > 0)
		tokens->left = MAX(0, tokens->left - t->estimate);
}

struct ticket *admission_next(struct admission *a, int64_t now, int64_t *ret_wake)
{
	*ret_wake = -1;
	for (size_t i = 0; i < a->n; i++) {
		struct ticket *t = pick(&a->lanes[i], now, ret_wake);
		if (t) {
			grant(&a->lanes[i], t, now);
			return t;
		}
	}
	return NULL;
}

void admission_done(struct admission *a, struct ticket *t, bool succeeded, bool congested,
		    int64_t now)
{
	struct lane *lane = &a->lanes[t->lane];
	/* Measured from what was really in flight: the limit may never have been reached. */
	if (congested && t->granted_at > lane->cut_at) {
		lane->limit = MAX(1.0, (double)MIN(lane->flying, (int)lane->limit) / 2);
		lane->cut_at = now;
	} else if (succeeded && lane->limit < lane->ceiling) {
		lane->limit = MIN(lane->limit + 1 / lane->limit, (double)lane->ceiling);
	}
	admission_leave(a, t);
}

bool admission_pause(struct admission *a, size_t lane, int64_t until)
{
	if (until <= a->lanes[lane].pause_until)
		return false;
	a->lanes[lane].pause_until = until;
	return true;
}

void admission_learn(struct admission *a, size_t lane_index, const struct limit_news *news,
		     int64_t server_date, int64_t now_wall, int64_t now, int64_t max_wait)
{
	struct lane *lane = &a->lanes[lane_index];
	if (!news->any)
		return;
	lane->counts_cached = news->counts_cached;
	for (size_t k = 0; k < LIMIT_KINDS; k++) {
		const struct limit_bucket *b = &news->buckets[k];
		int64_t reset = limits_reset_ms(b, server_date, now_wall);
		if (b->remaining < 0 || reset < 0)
			continue;
		lane->windows[k] = (struct window){.left = b->remaining,
						   .limit = b->limit,
						   .reset = now + MIN(reset, max_wait)};
	}
}

const char *admission_reason(const struct admission *a, const struct ticket *t, int64_t now,
			     int64_t *ret_until)
{
	const struct lane *lane = &a->lanes[t->lane];
	int64_t limited = MAX(lane->pause_until, window_blocks(lane, t, now));
	*ret_until = -1;
	if (t->ready_at > now && t->ready_at >= limited) {
		*ret_until = t->ready_at;
		return "retry";
	}
	if (limited > now) {
		*ret_until = limited;
		return "limit";
	}
	return "slot";
}

void admission_each(struct admission *a, void (*fn)(struct ticket *t, void *arg), void *arg)
{
	for (size_t i = 0; i < a->n; i++) {
		for (struct ticket *t = a->lanes[i].first; t; t = t->next)
			fn(t, arg);
	}
}
