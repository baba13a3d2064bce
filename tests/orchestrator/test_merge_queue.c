/*
 * test_merge_queue.c - the merge queue in worlds of chance (issue 5, item 6): it never merges what is red, each branch ends,
 * the gate runs a bounded number of times, and a queue that died at any step goes on from its records.
 *
 * A world has branches; some are red by themselves, some only together with another one, some conflict with another one, and
 * a gate may say red though all is well (it never says green of what is red). Commits are texts that list what is in them.
 */
#include "tests/base/test_base.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "orchestrator/merge_queue.h"

#define BRANCHES 12
#define WORLDS	 1500

struct world {
	uint64_t seed;
	int n;
	bool bad[BRANCHES];
	int red_with[BRANCHES];	      /* -1: none */
	int conflicts_with[BRANCHES]; /* -1: none; both ways */
	int flake_percent;
	char result[256]; /* what the result holds: the truth */
	int gates, landings, moves;
};

/* One record of what happened: the driver's journal. */
struct event {
	enum { SUBMIT, BEGIN, TRIED, FAILED, GATED, LANDED, MOVED } kind;
	char text[256];
	int64_t ids[MERGE_BATCH_MAX];
	size_t n;
	bool flag;
};

struct log {
	struct event events[2000];
	size_t n;
};

static unsigned chance(struct world *w, unsigned below)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->seed >> 33) % below;
}

static bool holds(const char *commit, int branch)
{
	return strchr(commit, 'a' + branch) != NULL;
}

static bool truly_red(const struct world *w, const char *commit)
{
	for (int i = 0; i < w->n; i++) {
		if (holds(commit, i) &&
		    (w->bad[i] || (w->red_with[i] >= 0 && holds(commit, w->red_with[i]))))
			return true;
	}
	return false;
}

static bool conflicts(const struct world *w, const char *commit, int branch)
{
	for (int i = 0; i < w->n; i++) {
		if (holds(commit, i) &&
		    (w->conflicts_with[i] == branch || w->conflicts_with[branch] == i))
			return true;
	}
	return false;
}

static void make_world(struct world *w, uint64_t seed)
{
	*w = (struct world){.seed = seed * 77 + 1, .result = "-"};
	w->n = 1 + (int)chance(w, BRANCHES);
	w->flake_percent = (int)chance(w, 3) * 15;
	for (int i = 0; i < w->n; i++) {
		w->bad[i] = chance(w, 6) == 0;
		w->red_with[i] = i > 0 && chance(w, 8) == 0 ? (int)chance(w, (unsigned)i) : -1;
		w->conflicts_with[i] =
			i > 0 && chance(w, 6) == 0 ? (int)chance(w, (unsigned)i) : -1;
	}
}

/* ---- records, and a queue that is made of them ---- */

static void apply(struct merge_queue *q, const struct event *e)
{
	int rc = 0;

	switch (e->kind) {
	case SUBMIT: merge_queue_submit(q, e->text, NULL, e->text); break;
	case BEGIN: rc = merge_queue_begin(q, e->ids, e->n); break;
	case TRIED: rc = merge_queue_tried(q, e->n, e->text, e->flag ? "conflict" : NULL); break;
	case FAILED: rc = merge_queue_failed(q, "failed"); break;
	case GATED: rc = merge_queue_gated(q, e->flag, "red"); break;
	case LANDED: rc = merge_queue_landed(q, e->text[0] ? e->text : NULL); break;
	case MOVED: rc = merge_queue_moved(q, e->text); break;
	}
	assert_int_equal(rc, 0);
}

static void record(struct merge_queue *q, struct log *log, struct event e)
{
	assert_true(log->n < ARRAY_SIZE(log->events));
	log->events[log->n++] = e;
	apply(q, &e);
}

static void assert_same(const struct merge_queue *a, const struct merge_queue *b)
{
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->n_batch, b->n_batch);
	assert_int_equal(a->attempt, b->attempt);
	assert_string_equal(a->tip, b->tip);
	for (size_t i = 0; i < a->n; i++)
		assert_int_equal(a->entries[i].outcome, b->entries[i].outcome);
}

static void rebuild(struct merge_queue *q, const struct log *log, size_t batch_max)
{
	struct merge_queue again;

	merge_queue_init(&again, "-", true, batch_max);
	for (size_t i = 0; i < log->n; i++)
		apply(&again, &log->events[i]);
	assert_same(q, &again);
	merge_queue_release(q);
	*q = again;
}

/* ---- one step of a driver ---- */

static void do_try(struct merge_queue *q, struct log *log, struct world *w)
{
	struct event e = {.kind = TRIED};
	char commit[256];

	snprintf(commit, sizeof(commit), "%s", q->tip);
	for (size_t i = 0; i < q->n_batch; i++) {
		int branch = merge_queue_entry(q, q->batch[i])->commit[0] - 'a';

		if (!holds(commit, branch) && conflicts(w, commit, branch)) {
			e.flag = true;
			break;
		}
		e.n++;
		if (holds(commit, branch))
			continue; /* it landed, and nobody lived to say so */
		size_t len = strlen(commit);
		commit[len] = (char)('a' + branch);
		commit[len + 1] = '\0';
	}
	snprintf(e.text, sizeof(e.text), "%s", commit);
	record(q, log, e);
}

static void do_gate(struct merge_queue *q, struct log *log, struct world *w)
{
	bool green = !truly_red(w, q->commit);

	w->gates++;
	if (green && (int)chance(w, 100) < w->flake_percent)
		green = false;
	record(q, log, (struct event){.kind = GATED, .flag = green});
}

/* The effect comes after the record that led to it and before its own: a kill in between lands a second time. */
static void do_land(struct merge_queue *q, struct log *log, struct world *w)
{
	struct event moved = {.kind = MOVED};

	/* With a commit of somebody else's on top of ours it has landed all the same. */
	if (strncmp(w->result, q->commit, strlen(q->commit)) != 0) {
		if (strcmp(w->result, q->tip) != 0) {
			snprintf(moved.text, sizeof(moved.text), "%s", w->result);
			record(q, log, moved);
			return;
		}
		assert_false(truly_red(w, q->commit)); /* never merges red */
		snprintf(w->result, sizeof(w->result), "%s", q->commit);
		w->landings++;
		if (chance(w, 6) == 0)
			return; /* killed */
	}
	struct event landed = {.kind = LANDED};
	snprintf(landed.text, sizeof(landed.text), "%s", w->result);
	record(q, log, landed);
}

static void step(struct merge_queue *q, struct log *log, struct world *w)
{
	struct event e = {.kind = BEGIN};

	switch (q->phase) {
	case MERGE_IDLE:
		e.n = merge_queue_next(q, e.ids);
		if (e.n)
			record(q, log, e);
		break;
	case MERGE_TRYING: do_try(q, log, w); break;
	case MERGE_GATING: do_gate(q, log, w); break;
	case MERGE_LANDING:
		/* Somebody else's commit, which conflicts with nothing. */
		if (w->moves < 2 && chance(w, 20) == 0 && strlen(w->result) < 200) {
			w->moves++;
			strcat(w->result, ".");
		}
		do_land(q, log, w);
		break;
	}
}

static int log2_up(size_t n)
{
	int bits = 0;

	while (((size_t)1 << bits) < n)
		bits++;
	return bits;
}

static void check_end(const struct merge_queue *q, const struct world *w, size_t batch_max)
{
	assert_int_equal(q->n, w->n);
	assert_int_equal(merge_queue_waiting(q), 0);
	assert_string_equal(q->tip, w->result);
	for (int i = 0; i < w->n; i++) {
		const struct merge_entry *e = &q->entries[i];
		int branch = e->commit[0] - 'a';
		const char *first = strchr(w->result, e->commit[0]);

		assert_int_equal(e->outcome == MERGE_MERGED, first != NULL);
		assert_true(!first || !strchr(first + 1, e->commit[0])); /* nothing twice */
		assert_false(e->outcome == MERGE_MERGED && w->bad[branch]);
		if (e->outcome == MERGE_CONFLICT)
			assert_true(conflicts(w, w->result, branch));
		assert_true(e->outcome == MERGE_MERGED || e->reason);
		/* Without a gate that lies none is sent back that would have passed. */
		if (e->outcome == MERGE_RED && w->flake_percent == 0) {
			char with[260];
			snprintf(with, sizeof(with), "%s%c", w->result, e->commit[0]);
			assert_true(truly_red(w, with));
		}
	}
	assert_int_equal(q->gates, w->gates);
	int bound = w->n * (2 + log2_up(batch_max)) + 2 * w->moves;
	if (w->gates > bound)
		fail_msg("%d gates for %d branches in batches of %zu: more than %d", w->gates, w->n,
			 batch_max, bound);
}

static void the_queue_keeps_its_promises(void **state)
{
	struct log *log = mem_alloc(sizeof(*log));
	int64_t gates = 0, branches = 0, flaky = 0;

	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct world w;
		struct merge_queue q;
		int sent = 0;

		make_world(&w, seed);
		size_t batch_max = (size_t)1 << chance(&w, 4);
		log->n = 0;
		merge_queue_init(&q, "-", true, batch_max);
		for (int turn = 0; sent < w.n || merge_queue_waiting(&q); turn++) {
			assert_true(turn < 5000); /* none starves */
			if (sent < w.n && chance(&w, 3) == 0) {
				struct event e = {.kind = SUBMIT};
				e.text[0] = (char)('a' + sent++);
				record(&q, log, e);
			}
			step(&q, log, &w);
			if (chance(&w, 5) == 0)
				rebuild(&q, log, batch_max);
		}
		check_end(&q, &w, batch_max);
		gates += q.gates;
		branches += w.n;
		flaky += q.flaky;
		merge_queue_release(&q);
	}
	print_message("%d worlds: %.2f gates for each branch, %d flaky\n", WORLDS,
		      (double)gates / (double)branches, (int)flaky);
	free(log);
}

static void submit(struct merge_queue *q, const char *names)
{
	for (; *names; names++) {
		char name[2] = {*names, '\0'};
		merge_queue_submit(q, name, NULL, name);
	}
}

static size_t begin_next(struct merge_queue *q)
{
	int64_t ids[MERGE_BATCH_MAX];
	size_t n = merge_queue_next(q, ids);

	assert_int_equal(merge_queue_begin(q, ids, n), 0);
	return n;
}

static void a_red_batch_is_halved_and_a_flaky_gate_is_told(void **state)
{
	struct merge_queue q;

	merge_queue_init(&q, "base", true, 4);
	submit(&q, "abcd");
	assert_int_equal(begin_next(&q), 4);
	assert_int_equal(merge_queue_tried(&q, 4, "x", NULL), 0);
	merge_queue_gated(&q, false, "red");
	assert_int_equal(q.phase, MERGE_GATING); /* once more */
	merge_queue_gated(&q, false, "red");
	assert_int_equal(begin_next(&q), 2);
	merge_queue_tried(&q, 2, "ab", NULL);
	merge_queue_gated(&q, false, "red");
	merge_queue_gated(&q, true, NULL); /* flaky */
	assert_int_equal(merge_queue_landed(&q, NULL), 0);
	assert_true(q.entries[0].flaky && q.entries[1].flaky && !q.entries[2].flaky);
	assert_int_equal(q.flaky, 1);
	assert_string_equal(q.tip, "ab");
	assert_int_equal(begin_next(&q), 2);
	/* One that conflicts with its own batch waits; with the result it goes back. */
	merge_queue_tried(&q, 1, "abc", "d.c");
	assert_int_equal(q.n_batch, 1);
	merge_queue_gated(&q, true, NULL);
	merge_queue_landed(&q, NULL);
	assert_int_equal(begin_next(&q), 1);
	merge_queue_tried(&q, 0, "abc", "d.c");
	assert_int_equal(q.entries[3].outcome, MERGE_CONFLICT);
	assert_string_equal(q.entries[3].reason, "d.c");
	assert_int_equal(q.phase, MERGE_IDLE);
	merge_queue_release(&q);
}

static void a_newer_state_replaces_one_that_waits(void **state)
{
	struct merge_queue q;

	merge_queue_init(&q, "base", false, 1);
	assert_int_equal(merge_queue_submit(&q, "a1", "t1", "c1"), 1);
	assert_int_equal(merge_queue_submit(&q, "a1", "t1", "c1"), 1); /* the same one */
	begin_next(&q);
	assert_int_equal(merge_queue_submit(&q, "a1", "t1", "c2"), 2); /* the first is under way */
	assert_int_equal(merge_queue_submit(&q, "a1", "t1", "c3"), 3);
	assert_int_equal(q.entries[0].outcome, MERGE_OPEN);
	assert_int_equal(q.entries[1].outcome, MERGE_REPLACED);
	/* What does not fit the state changes nothing. */
	assert_int_equal(merge_queue_gated(&q, true, NULL), -1);
	assert_int_equal(merge_queue_landed(&q, NULL), -1);
	assert_int_equal(merge_queue_begin(&q, (int64_t[]){3}, 1), -1);
	merge_queue_failed(&q, "no such commit");
	assert_int_equal(q.entries[0].outcome, MERGE_REFUSED);
	assert_int_equal(merge_queue_begin(&q, (int64_t[]){2}, 1), -1);
	begin_next(&q);
	merge_queue_tried(&q, 1, "c3", NULL);
	assert_int_equal(q.phase, MERGE_LANDING); /* there is no gate */
	merge_queue_release(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_queue_keeps_its_promises),
		cmocka_unit_test(a_red_batch_is_halved_and_a_flaky_gate_is_told),
		cmocka_unit_test(a_newer_state_replaces_one_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
