/*
 * merge_queue.c - see merge_queue.h.
 *
 * Why a batch that is red twice is halved and not searched for its culprit: a branch can be red with one that came before it
 * and green without it, so "the" culprit need not exist. Halves land what is green as early as it is known to be, and the last
 * one standing alone on top of all that landed is the one to go back.
 */
#include "orchestrator/merge_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const phases[] = {"idle", "trying", "gating", "landing"};
static const char *const outcomes[] = {"open", "merged", "conflict", "red", "refused", "replaced"};

const char *merge_phase_name(enum merge_phase phase)
{
	return (size_t)phase < ARRAY_SIZE(phases) ? phases[phase] : "?";
}

const char *merge_outcome_name(enum merge_outcome outcome)
{
	return (size_t)outcome < ARRAY_SIZE(outcomes) ? outcomes[outcome] : "?";
}

enum merge_outcome merge_outcome_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
		if (strcmp(outcomes[i], name) == 0)
			return (enum merge_outcome)i;
	}
	return MERGE_OPEN;
}

void merge_queue_init(struct merge_queue *q, const char *base, bool gated, size_t batch_max)
{
	*q = (struct merge_queue){.tip = mem_strdup(base),
				  .gated = gated,
				  .batch_max = MIN(MAX(batch_max, 1), MERGE_BATCH_MAX)};
}

void merge_queue_release(struct merge_queue *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->entries[i].agent);
		free(q->entries[i].task);
		free(q->entries[i].commit);
		free(q->entries[i].reason);
	}
	free(q->entries);
	free(q->tip);
	free(q->commit);
	*q = (struct merge_queue){.tip = NULL};
}

struct merge_entry *merge_queue_entry(const struct merge_queue *q, int64_t id)
{
	return id > 0 && (size_t)id <= q->n ? &q->entries[id - 1] : NULL;
}

static bool in_batch(const struct merge_queue *q, int64_t id)
{
	for (size_t i = 0; i < q->n_batch; i++) {
		if (q->batch[i] == id)
			return true;
	}
	return false;
}

static void end_entry(struct merge_entry *entry, enum merge_outcome outcome, const char *reason)
{
	entry->outcome = outcome;
	free(entry->reason);
	entry->reason = mem_strdup(reason);
}

int64_t merge_queue_submit(struct merge_queue *q, const char *agent, const char *task,
			   const char *commit)
{
	for (size_t i = 0; i < q->n; i++) {
		struct merge_entry *entry = &q->entries[i];

		if (entry->outcome != MERGE_OPEN || strcmp(entry->agent, agent) != 0)
			continue;
		if (strcmp(entry->commit, commit) == 0)
			return entry->id;
		if (!in_batch(q, entry->id))
			end_entry(entry, MERGE_REPLACED,
				  "a newer state of the branch was submitted");
	}
	MEM_GROW(q->entries, q->cap, q->n + 1);
	q->entries[q->n] = (struct merge_entry){.id = (int64_t)q->n + 1,
						.agent = mem_strdup(agent),
						.task = mem_strdup(task),
						.commit = mem_strdup(commit),
						.cap = q->batch_max};
	return q->entries[q->n++].id;
}

size_t merge_queue_waiting(const struct merge_queue *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		n += q->entries[i].outcome == MERGE_OPEN;
	return n;
}

size_t merge_queue_next(const struct merge_queue *q, int64_t ids[MERGE_BATCH_MAX])
{
	size_t n = 0, most = q->batch_max;

	for (size_t i = 0; i < q->n && n < most && q->phase == MERGE_IDLE; i++) {
		const struct merge_entry *entry = &q->entries[i];

		if (entry->outcome != MERGE_OPEN)
			continue;
		if (n >= entry->cap)
			break; /* it would not fit in this batch, and nobody passes it */
		most = MIN(most, entry->cap);
		ids[n++] = entry->id;
	}
	return n;
}

static void to_idle(struct merge_queue *q)
{
	q->phase = MERGE_IDLE;
	q->n_batch = 0;
	free(q->commit);
	q->commit = NULL;
}

int merge_queue_begin(struct merge_queue *q, const int64_t *ids, size_t n)
{
	if (q->phase != MERGE_IDLE || n == 0 || n > MERGE_BATCH_MAX)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct merge_entry *entry = merge_queue_entry(q, ids[i]);

		if (!entry || entry->outcome != MERGE_OPEN)
			return -1;
	}
	memcpy(q->batch, ids, n * sizeof(*ids));
	q->n_batch = n;
	q->phase = MERGE_TRYING;
	return 0;
}

int merge_queue_tried(struct merge_queue *q, size_t merged, const char *commit,
		      const char *conflict)
{
	if (q->phase != MERGE_TRYING || merged > q->n_batch || !commit ||
	    (merged < q->n_batch && !conflict))
		return -1;
	if (merged == 0) {
		end_entry(merge_queue_entry(q, q->batch[0]), MERGE_CONFLICT, conflict);
		to_idle(q);
		return 0;
	}
	q->n_batch = merged;
	q->commit = mem_strdup(commit);
	q->attempt = 1;
	q->phase = q->gated ? MERGE_GATING : MERGE_LANDING;
	return 0;
}

static void split(struct merge_queue *q, size_t cap)
{
	for (size_t i = 0; i < q->n_batch; i++) {
		struct merge_entry *entry = merge_queue_entry(q, q->batch[i]);
		entry->cap = MIN(entry->cap, cap);
	}
}

int merge_queue_failed(struct merge_queue *q, const char *reason)
{
	if (q->phase != MERGE_TRYING)
		return -1;
	if (q->n_batch == 1)
		end_entry(merge_queue_entry(q, q->batch[0]), MERGE_REFUSED, reason);
	else
		split(q, 1);
	to_idle(q);
	return 0;
}

int merge_queue_gated(struct merge_queue *q, bool green, const char *reason)
{
	if (q->phase != MERGE_GATING)
		return -1;
	q->gates++;
	if (green) {
		q->flaky += q->attempt > 1;
		for (size_t i = 0; i < q->n_batch; i++)
			merge_queue_entry(q, q->batch[i])->flaky |= q->attempt > 1;
		q->phase = MERGE_LANDING;
	} else if (q->attempt == 1) {
		q->attempt = 2;
	} else if (q->n_batch > 1) {
		split(q, (q->n_batch + 1) / 2);
		to_idle(q);
	} else {
		end_entry(merge_queue_entry(q, q->batch[0]), MERGE_RED, reason);
		to_idle(q);
	}
	return 0;
}

int merge_queue_landed(struct merge_queue *q, const char *tip)
{
	if (q->phase != MERGE_LANDING)
		return -1;
	for (size_t i = 0; i < q->n_batch; i++)
		end_entry(merge_queue_entry(q, q->batch[i]), MERGE_MERGED, NULL);
	free(q->tip);
	q->tip = mem_strdup(tip ? tip : q->commit);
	q->born = true;
	to_idle(q);
	return 0;
}

int merge_queue_moved(struct merge_queue *q, const char *tip)
{
	if (q->phase != MERGE_LANDING)
		return -1;
	q->born = tip != NULL;
	if (tip) {
		free(q->tip);
		q->tip = mem_strdup(tip);
	}
	to_idle(q);
	return 0;
}
