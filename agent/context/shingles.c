/*
 * shingles.c - see shingles.h.
 */
#include "agent/context/shingles.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

#define WINDOW 5 /* letters of a shingle */
#define WIDE   3 /* letters that one wide character stands for */

void hashes_add(struct hashes *h, uint64_t hash)
{
	MEM_GROW(h->list, h->cap, h->n + 1);
	h->list[h->n++] = hash;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void hashes_sort(struct hashes *h)
{
	size_t kept = 0;

	if (h->n > 1)
		qsort(h->list, h->n, sizeof(*h->list), compare_hashes);
	for (size_t i = 0; i < h->n; i++)
		if (!kept || h->list[kept - 1] != h->list[i])
			h->list[kept++] = h->list[i];
	h->n = kept;
}

size_t hashes_shared(const struct hashes *a, const struct hashes *b)
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

int hashes_alike(const struct hashes *a, const struct hashes *b)
{
	size_t both = hashes_shared(a, b), all = a->n + b->n - both;

	return all ? (int)(both * 100 / all) : 100;
}

/* ---- shingles ---- */

void shingles_plain(const char *text, size_t n, struct buf *out)
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

void shingles_make(const char *text, size_t n, struct hashes *ret)
{
	AUTO_BUF struct buf plain = BUF_INIT;
	size_t start = 0, end = 0;
	int letters = 0;

	*ret = (struct hashes){.list = NULL};
	shingles_plain(text, n, &plain);
	while (end < plain.len) {
		size_t len = char_len(plain.data, plain.len, end);

		end += len;
		letters += len > 2 ? WIDE : 1;
		if (letters < WINDOW)
			continue;
		hashes_add(ret, text_hash(plain.data + start, end - start));
		while (letters >= WINDOW) {
			len = char_len(plain.data, plain.len, start);
			letters -= len > 2 ? WIDE : 1;
			start += len;
		}
	}
	if (!ret->n)
		hashes_add(ret, text_hash(buf_str(&plain), plain.len));
	hashes_sort(ret);
}
