/*
 * bench_memory.c - what a long conversation takes in memory beside its own bytes, and what its prefix hashes cost.
 *
 * 2,000 rounds by chance, as they are in an agent: with estimates, rendered for the request, in the view, in the ledger,
 * hashed, looked through for facts and for the user's words. One JSON line each: the bytes that malloc has given out
 * (mallinfo2) per byte that the messages say, which X14 bounds at 3; processor time of hashing all messages and of one round more (H17); the
 * same memory after 20 compactions of that history, since what they replace must not stay.
 */
#include "tests/agent/history_fixture.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "agent/context/epoch.h"
#include "agent/context/facts.h"
#include "agent/context/prefix.h"
#include "agent/model/client.h"
#include "agent/validate.h"
#include "base/memory.h"

enum { ROUNDS = 2000, WINDOW = 4000000, COMPACTIONS = 20, RUNS = 21 };

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What a message says, in whatever member: without JSON around it. */
static size_t bytes_of(const struct message *m)
{
	size_t sum = 0;

	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		sum += b->text_len + (b->raw ? strlen(b->raw) : 0) + (b->id ? strlen(b->id) : 0) +
		       (b->name ? strlen(b->name) : 0);
	}
	return sum;
}

struct life {
	struct history h;
	struct model_client *client;
	struct facts facts;
	struct prefix prefix;
};

/* What the agent does with a message once it is appended. */
static void take(struct life *l)
{
	view_sync(&l->h.view, &l->h.c);
	for (size_t i = 0; i < l->h.view.n; i++)
		if (!l->h.view.list[i]->rendered)
			client_render_message(l->client, l->h.view.list[i]);
	facts_take(&l->facts, &l->h.c);
	prefix_sent(&l->prefix, &l->h.view, "You are an agent.", NULL, 0, 0);
}

static void start(struct life *l)
{
	static const struct request_params params = {.system = "You are an agent.",
						     .temperature = -1};
	struct err e = ERR_INIT;

	*l = (struct life){.client = NULL};
	history_start(&l->h, WINDOW);
	l->h.model.provider = mem_strdup("anthropic");
	l->h.model.name = mem_strdup("m");
	if (client_new(&l->h.model, &params, &l->client, &e) < 0)
		fail_msg("%s", e.message);
	history_generate(&l->h, 7, ROUNDS);
}

static void stop(struct life *l)
{
	facts_release(&l->facts);
	prefix_release(&l->prefix);
	client_free(l->client);
	free(l->h.model.provider);
	free(l->h.model.name);
	history_end(&l->h);
}

static void print(const char *what, size_t used, size_t bytes, size_t messages)
{
	printf("{\"bench\":\"memory\",\"what\":\"%s\",\"rounds\":%d,\"messages\":%zu,\"text_"
	       "bytes\":%zu,"
	       "\"allocated\":%zu,\"ratio\":%.2f}\n",
	       what, ROUNDS, messages, bytes, used, (double)used / (double)bytes);
}

/* A head of 40 KB in the place of most of the view, as a compaction puts it there. */
static void compact(struct life *l)
{
	struct message *head = message_new(MESSAGE_USER);
	static char text[40000];

	memset(text, 'x', sizeof(text));
	message_add_text(head, ORIGIN_SUMMARY, text, sizeof(text));
	epoch_end(&l->h.view, &l->h.ledger, &l->h.c, 0, epoch_tail(&l->h.view, 0, 6, 1000), head,
		  false);
	history_generate(&l->h, 8, 10);
	take(l);
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* All of the view, as after an epoch's end; then one message more. */
static void measure_hashes(struct life *l)
{
	int64_t all[RUNS], one[RUNS];
	size_t bytes = 0;

	for (size_t i = 0; i < l->h.view.n; i++)
		bytes += l->h.view.list[i]->rendered_len;
	for (int i = 0; i < RUNS; i++) {
		struct prefix p = {.n = 0};
		int64_t began = now_ns();

		prefix_sent(&p, &l->h.view, "You are an agent.", NULL, 0, 0);
		all[i] = now_ns() - began;
		p.n -= 2;
		began = now_ns();
		prefix_sent(&p, &l->h.view, "You are an agent.", NULL, 0, 0);
		one[i] = now_ns() - began;
		prefix_release(&p);
	}
	qsort(all, RUNS, sizeof(all[0]), by_size);
	qsort(one, RUNS, sizeof(one[0]), by_size);
	printf("{\"bench\":\"prefix\",\"rendered_bytes\":%zu,\"all_us\":%.1f,\"round_us\":%.2f}\n",
	       bytes, (double)all[RUNS / 2] / 1e3, (double)one[RUNS / 2] / 1e3);
}

int main(void)
{
	size_t before = allocated(), bytes = 0, used;
	struct life l;

	start(&l);
	take(&l);
	used = allocated() - before;
	for (size_t i = 0; i < l.h.c.n; i++)
		bytes += bytes_of(l.h.c.messages[i]);
	print("conversation", used, bytes, l.h.c.n);
	measure_hashes(&l);
	for (int i = 0; i < COMPACTIONS; i++)
		compact(&l);
	bytes = 0;
	for (size_t i = 0; i < l.h.c.n; i++)
		bytes += bytes_of(l.h.c.messages[i]);
	print("compacted", allocated() - before, bytes, l.h.c.n);
	stop(&l);
	return 0;
}
