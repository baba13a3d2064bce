/*
 * merge_queue.h - which branches go into the result next, and what becomes of each. Pure: no process, no clock, no file.
 *
 * Entries wait in the order in which they came. A batch of the first ones is merged in memory on top of the result, judged
 * by the gate as one, and lands as one. States and legal moves:
 *
 *     IDLE     --begin-->          TRYING     the batch is merged in memory
 *     TRYING   --tried-->          GATING     what merged before the first conflict is judged (without a gate: LANDING)
 *                                  IDLE       the first of the batch conflicts with the result: it is returned
 *     GATING   --green-->          LANDING
 *              --red-->            GATING     once more on the same commit; green then: the gate is flaky, and said to be
 *              --red again-->      IDLE       one alone is returned; of several each is in half as large a batch next time
 *     LANDING  --landed-->         IDLE       merged
 *              --moved-->          IDLE       somebody else moved the result: all of the batch again, on top of that
 *
 * A branch that conflicts with one of its own batch only waits until that one has landed or not. So nothing is merged that a
 * gate did not pass with all that was merged before it; every entry ends; and of N entries in batches of B at most
 * N * (2 + ceil(log2 B)) gates run, but for those that a moved result makes necessary again.
 *
 * The state is a fold of begin (with its ids), tried, gated, landed, moved and failed: whoever records these can rebuild it.
 */
#ifndef BATON_ORCHESTRATOR_MERGE_QUEUE_H
#define BATON_ORCHESTRATOR_MERGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum merge_phase { MERGE_IDLE, MERGE_TRYING, MERGE_GATING, MERGE_LANDING };
const char *merge_phase_name(enum merge_phase phase);

enum merge_outcome {
	MERGE_OPEN,
	MERGE_MERGED,
	MERGE_CONFLICT, /* with the result */
	MERGE_RED,	/* the gate does not pass with it */
	MERGE_REFUSED,	/* it cannot be merged at all: the reason says why */
	MERGE_REPLACED, /* its agent submitted a newer one before its turn came */
};
const char *merge_outcome_name(enum merge_outcome outcome); /* "open", "merged", ... */
enum merge_outcome merge_outcome_find(const char *name);    /* MERGE_OPEN if there is none */

struct merge_entry {
	int64_t id;	    /* 1, 2, ... in the order of submission */
	char *agent, *task; /* task may be NULL */
	char *commit;
	enum merge_outcome outcome;
	char *reason; /* of an outcome that is not MERGED; NULL */
	bool flaky;   /* merged, and the gate was red first */
	size_t cap;   /* at most so many in a batch with it */
	bool told;    /* the driver's: its outcome is known to whoever waits */
};

#define MERGE_BATCH_MAX 64

struct merge_queue {
	struct merge_entry *entries;
	size_t n, cap;
	char *tip; /* what the result stands at, or will begin from */
	bool born; /* its branch exists */
	bool gated;
	size_t batch_max;

	enum merge_phase phase;
	int64_t batch[MERGE_BATCH_MAX];
	size_t n_batch;
	char *commit; /* GATING and LANDING: what is judged, what lands */
	int attempt;  /* GATING: 1 or 2 */

	int64_t gates, flaky; /* so far */
};

void merge_queue_init(struct merge_queue *q, const char *base, bool gated, size_t batch_max);
void merge_queue_release(struct merge_queue *q);

/* A branch at this commit. An older entry of the agent that waits is replaced. Returns the new id; that of a waiting one
 * with the same commit, if there is one. */
int64_t merge_queue_submit(struct merge_queue *q, const char *agent, const char *task,
			   const char *commit);
struct merge_entry *merge_queue_entry(const struct merge_queue *q, int64_t id); /* NULL: none */
size_t merge_queue_waiting(const struct merge_queue *q); /* OPEN, those of the batch too */

/* IDLE: the batch that is next, its number, 0 if nothing waits. */
size_t merge_queue_next(const struct merge_queue *q, int64_t ids[MERGE_BATCH_MAX]);
/* -1: not legal now (a record that contradicts those before it); nothing changes. */
int merge_queue_begin(struct merge_queue *q, const int64_t *ids, size_t n);
/* The first `merged` of the batch merged into `commit`; conflict: why the next one did not, or NULL. */
int merge_queue_tried(struct merge_queue *q, size_t merged, const char *commit,
		      const char *conflict);
/* The try failed for another reason: several are tried one by one, one alone is refused. */
int merge_queue_failed(struct merge_queue *q, const char *reason);
int merge_queue_gated(struct merge_queue *q, bool green, const char *reason);
/* tip: what the result stands at, if others added to it since; NULL: at what landed. */
int merge_queue_landed(struct merge_queue *q, const char *tip);
/* It stands elsewhere, and does not hold what was to land. tip NULL: the branch is gone. */
int merge_queue_moved(struct merge_queue *q, const char *tip);

#endif
