/*
 * resample.c - likeness, hits, order, room.
 *
 * Two texts are compared by their sets of shingles (shingles.h). Sets are sketched by the smallest hash under each of
 * SKETCH mixings (MinHash), so that unlike pairs are told apart without their sets: of 1,000 texts that is
 * half a million pairs. What the sketch finds near is counted exactly.
 */
#include "agent/context/resample.h"

#include <ctype.h>
#include <limits.h>

#include "agent/context/shingles.h"
#include "base/memory.h"
#include "base/text.h"

#define SKETCH	     32
#define SKETCH_SLACK 25 /* per cent: so far an estimate may be below the truth */

int resample_similarity(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct hashes x, y;

	shingles_make(a, n_a, &x);
	shingles_make(b, n_b, &y);
	int percent = hashes_alike(&x, &y);
	free(x.list);
	free(y.list);
	return percent;
}

/* ---- sketches ---- */

static void make_sketch(const struct hashes *set, uint32_t sketch[SKETCH])
{
	for (size_t k = 0; k < SKETCH; k++)
		sketch[k] = UINT32_MAX;
	for (size_t i = 0; i < set->n; i++) {
		for (uint64_t k = 0; k < SKETCH; k++) {
			uint64_t mixed = (set->list[i] ^ (k * UINT64_C(0x9e3779b97f4a7c15))) *
					 UINT64_C(0xff51afd7ed558ccd);
			uint32_t top = (uint32_t)(mixed >> 32);

			sketch[k] = MIN(sketch[k], top);
		}
	}
}

static int sketch_similarity(const uint32_t *a, const uint32_t *b)
{
	int same = 0;

	for (size_t k = 0; k < SKETCH; k++)
		same += a[k] == b[k];
	return same * 100 / SKETCH;
}

/* ---- hits ---- */

static size_t char_len(const char *s, size_t n, size_t at)
{
	return text_ceil(s, n, at + 1) - at;
}

static bool is_word(unsigned char c)
{
	return isalnum(c) || c == '_';
}

/* They stand in every task and every text. */
static bool is_idle(const char *s, size_t n)
{
	static const char *const idle[] = {"the",  "and",  "for",  "with", "that", "this", "not",
					   "are",  "was",  "from", "but",  "its",  "has",  "have",
					   "all",  "can",  "you",  "your", "any",  "must", "should",
					   "when", "what", "then", "than", "into", "one",  "only"};

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		if (strlen(idle[i]) == n && !memcmp(idle[i], s, n))
			return true;
	return false;
}

/* Words of three letters and more, and pairs of wide characters. */
static void make_words(const char *text, size_t n, struct hashes *ret)
{
	AUTO_BUF struct buf plain = BUF_INIT;

	*ret = (struct hashes){.list = NULL};
	shingles_plain(text, n, &plain);
	for (size_t i = 0; i < plain.len;) {
		size_t k = i, len = char_len(plain.data, plain.len, i);

		while (k < plain.len && is_word((unsigned char)plain.data[k]))
			k++;
		if (k - i >= 3 && !is_idle(plain.data + i, k - i))
			hashes_add(ret, text_hash(plain.data + i, k - i));
		size_t next = i + len < plain.len ? char_len(plain.data, plain.len, i + len) : 0;
		if (len > 2 && next > 2)
			hashes_add(ret, text_hash(plain.data + i, len + next));
		i = MAX(k, i + len);
	}
	hashes_sort(ret);
}

static void count_hits(struct resample_item *item, const struct hashes *task)
{
	struct hashes words;

	item->hits = 0;
	if (!task->n)
		return;
	make_words(item->text, item->n, &words);
	item->hits = (int)MIN(hashes_shared(&words, task), (size_t)RESAMPLE_HITS);
	free(words.list);
}

/* ---- order ---- */

static int compare_items(const void *a, const void *b, void *arg)
{
	const struct resample_item *items = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct resample_item *x = &items[i], *y = &items[k];

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (x->hits != y->hits)
		return x->hits > y->hits ? -1 : 1;
	if (x->age != y->age)
		return x->age < y->age ? -1 : 1;
	return i < k ? -1 : i > k;
}

struct candidates {
	struct resample_item *items;
	struct hashes *sets;
	uint32_t (*sketches)[SKETCH];
	int similar;
};

/* Sets of very different size cannot be alike, whatever they hold. */
static bool alike(const struct candidates *c, size_t i, size_t k)
{
	size_t less = MIN(c->sets[i].n, c->sets[k].n), more = MAX(c->sets[i].n, c->sets[k].n);

	if (less * 100 < more * (size_t)c->similar ||
	    sketch_similarity(c->sketches[i], c->sketches[k]) < c->similar - SKETCH_SLACK)
		return false;
	return hashes_alike(&c->sets[i], &c->sets[k]) >= c->similar;
}

/* Keeps of `order` what says something that nothing before it says. */
static size_t drop_duplicates(const struct candidates *c, size_t *order, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t item = order[i], k = 0;

		while (k < kept && !alike(c, order[k], item))
			k++;
		c->items[item].like = k < kept ? order[k] : item;
		if (k == kept)
			order[kept++] = item;
	}
	return kept;
}

static size_t fit(const struct candidates *c, size_t *order, size_t n, int64_t tokens)
{
	int64_t left = tokens ? tokens : INT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (c->items[order[i]].tokens > left)
			continue;
		left -= c->items[order[i]].tokens;
		order[kept++] = order[i];
	}
	return kept;
}

static int64_t tokens_of(const struct resample_item *item, const struct ledger *ledger)
{
	if (!ledger)
		return (int64_t)(item->n / BYTES_PER_TOKEN) + 1;
	return ledger_estimate_text(ledger, item->text, item->n);
}

size_t resample(struct resample_item *items, size_t n, const struct resample_spec *spec,
		size_t *ret_order)
{
	struct candidates c = {.items = items,
			       .similar = spec->similar ? spec->similar : RESAMPLE_SIMILAR};
	struct hashes task = {.list = NULL};

	c.sets = mem_array(NULL, n + 1, sizeof(*c.sets));
	c.sketches = mem_array(NULL, n + 1, sizeof(*c.sketches));
	if (spec->task)
		make_words(spec->task, spec->task_len, &task);
	for (size_t i = 0; i < n; i++) {
		shingles_make(items[i].text, items[i].n, &c.sets[i]);
		make_sketch(&c.sets[i], c.sketches[i]);
		count_hits(&items[i], &task);
		items[i].tokens = tokens_of(&items[i], spec->ledger);
		ret_order[i] = i;
	}
	if (n > 1)
		qsort_r(ret_order, n, sizeof(*ret_order), compare_items, items);
	size_t kept = fit(&c, ret_order, drop_duplicates(&c, ret_order, n), spec->tokens);
	for (size_t i = 0; i < n; i++)
		free(c.sets[i].list);
	free(c.sets);
	free(c.sketches);
	free(task.list);
	return kept;
}
