/*
 * resample.c - shingles, hits, order, room.
 *
 * A shingle is a window over the characters of a text: five letters, or two characters of a script that
 * writes a word in one or two of them. Words as the unit were tried first: with one word of six changed, two
 * log lines share nothing that could be counted. Case and runs of blanks do not count.
 *
 * Two texts are compared by their sets of hashed shingles. Sets are sketched by the smallest hash under each of
 * SKETCH mixings (MinHash), so that unlike pairs are told apart without their sets: of 1,000 texts that is
 * half a million pairs. What the sketch finds near is counted exactly.
 */
#include "agent/context/resample.h"

#include <ctype.h>
#include <limits.h>

#include "base/memory.h"
#include "base/text.h"

#define WINDOW	     5 /* letters of a shingle */
#define WIDE	     3 /* letters that one wide character stands for */
#define SKETCH	     32
#define SKETCH_SLACK 25 /* per cent: so far an estimate may be below the truth */

struct hashes {
	uint64_t *list;
	size_t n, cap;
};

static void add_hash(struct hashes *h, uint64_t hash)
{
	MEM_GROW(h->list, h->cap, h->n + 1);
	h->list[h->n++] = hash;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorted, each once. */
static void make_set(struct hashes *h)
{
	size_t kept = 0;

	if (h->n > 1)
		qsort(h->list, h->n, sizeof(*h->list), compare_hashes);
	for (size_t i = 0; i < h->n; i++)
		if (!kept || h->list[kept - 1] != h->list[i])
			h->list[kept++] = h->list[i];
	h->n = kept;
}

static size_t shared(const struct hashes *a, const struct hashes *b)
{
	size_t n = 0, i = 0, k = 0;

	while (i < a->n && k < b->n) {
		n += a->list[i] == b->list[k];
		if (a->list[i] <= b->list[k])
			k += a->list[i++] == b->list[k];
		else
			k++;
	}
	return n;
}

static int jaccard(const struct hashes *a, const struct hashes *b)
{
	size_t both = shared(a, b), all = a->n + b->n - both;

	return all ? (int)(both * 100 / all) : 100;
}

/* ---- shingles ---- */

/* Lower case, one blank for a run of them, none at the ends. */
static void plain_text(const char *text, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (!isspace(c))
			buf_addc(out, (char)tolower(c));
		else if (out->len && out->data[out->len - 1] != ' ')
			buf_addc(out, ' ');
	}
	if (out->len && out->data[out->len - 1] == ' ')
		buf_truncate(out, out->len - 1);
}

static size_t char_len(const char *s, size_t n, size_t at)
{
	return text_ceil(s, n, at + 1) - at;
}

static void make_shingles(const char *text, size_t n, struct hashes *ret)
{
	AUTO_BUF struct buf plain = BUF_INIT;
	size_t start = 0, end = 0;
	int letters = 0;

	*ret = (struct hashes){.list = NULL};
	plain_text(text, n, &plain);
	while (end < plain.len) {
		size_t len = char_len(plain.data, plain.len, end);

		end += len;
		letters += len > 2 ? WIDE : 1;
		if (letters < WINDOW)
			continue;
		add_hash(ret, text_hash(plain.data + start, end - start));
		while (letters >= WINDOW) {
			len = char_len(plain.data, plain.len, start);
			letters -= len > 2 ? WIDE : 1;
			start += len;
		}
	}
	if (!ret->n)
		add_hash(ret, text_hash(buf_str(&plain), plain.len));
	make_set(ret);
}

int resample_similarity(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct hashes x, y;

	make_shingles(a, n_a, &x);
	make_shingles(b, n_b, &y);
	int percent = jaccard(&x, &y);
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
	plain_text(text, n, &plain);
	for (size_t i = 0; i < plain.len;) {
		size_t k = i, len = char_len(plain.data, plain.len, i);

		while (k < plain.len && is_word((unsigned char)plain.data[k]))
			k++;
		if (k - i >= 3 && !is_idle(plain.data + i, k - i))
			add_hash(ret, text_hash(plain.data + i, k - i));
		size_t next = i + len < plain.len ? char_len(plain.data, plain.len, i + len) : 0;
		if (len > 2 && next > 2)
			add_hash(ret, text_hash(plain.data + i, len + next));
		i = MAX(k, i + len);
	}
	make_set(ret);
}

static void count_hits(struct resample_item *item, const struct hashes *task)
{
	struct hashes words;

	item->hits = 0;
	if (!task->n)
		return;
	make_words(item->text, item->n, &words);
	item->hits = (int)MIN(shared(&words, task), (size_t)RESAMPLE_HITS);
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
	return jaccard(&c->sets[i], &c->sets[k]) >= c->similar;
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
		make_shingles(items[i].text, items[i].n, &c.sets[i]);
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
