/*
 * bench_rungs.c - what each rung of the ladder takes over a long history.
 *
 * 2,000 rounds by chance (tests/agent/history_fixture), in a window that holds them. One JSON line a rung: the
 * median of several runs in microseconds of processor time, each on a history of its own, the tokens that it freed, and the
 * bytes of the conversation. Issue 3 bounds a rung at 10 ms.
 */
#include "tests/agent/history_fixture.h"

#include <inttypes.h>
#include <time.h>

enum { ROUNDS = 2000, RUNS = 7, WINDOW = 4000000 };

/* Processor time: the machine may have other work. */
static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static size_t bytes_of(const struct history *h)
{
	size_t sum = 0;

	for (size_t i = 0; i < h->c.n; i++)
		for (size_t k = 0; k < h->c.messages[i]->n_blocks; k++)
			sum += h->c.messages[i]->blocks[k].text_len;
	return sum;
}

/* The thresholds are put where this history is, so that every rung has its reason to run. */
static void start(struct history *h, int run)
{
	history_start(h, WINDOW);
	history_generate(h, (uint64_t)run + 1, ROUNDS);
	h->knobs.clear_idle = 1;
	h->knobs.decay = 1;
	h->budget.clear_gain = h->budget.clear_at = 1;
	h->budget.effective = ledger_used(&h->ledger) + 1000;
	h->budget.compact = ledger_used(&h->ledger) / 2;
	h->in.idle_ms = INT64_C(3600000);
	h->in.epoch = -1; /* decay joins */
}

static void measure(const struct rung *rung)
{
	int64_t times[RUNS], freed = 0;
	size_t bytes = 0;

	for (int i = 0; i < RUNS; i++) {
		struct history h;
		int64_t began;
		bool wanted;

		start(&h, i);
		began = now_us();
		wanted = rung->wanted(&h.in);
		if (wanted)
			rung->run(&h.in, &freed, NULL);
		times[i] = now_us() - began;
		bytes = bytes_of(&h);
		history_end(&h);
	}
	qsort(times, RUNS, sizeof(times[0]), by_size);
	printf("{\"bench\":\"rungs\",\"rung\":\"%s\",\"rounds\":%d,\"bytes\":%zu,\"freed\":%" PRId64
	       ",\"us\":%" PRId64 ",\"worst_us\":%" PRId64 "}\n",
	       rung->name, ROUNDS, bytes, freed, times[RUNS / 2], times[RUNS - 1]);
}

int main(void)
{
	size_t n;
	const struct rung *table = rung_table(&n);

	for (size_t i = 0; i < n; i++)
		if (table[i].time == RUNG_REQUEST)
			measure(&table[i]);
	return 0;
}
