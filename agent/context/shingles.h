/*
 * shingles.h - texts as sets of hashed pieces, and how much of them two texts share (H20).
 *
 * A shingle is a window over the characters of a text: five letters, or two characters of a script that
 * writes a word in one or two of them. Words as the unit were tried first: with one word of six changed, two
 * log lines share nothing that could be counted. Case and runs of blanks do not count. Bytes in, numbers out.
 */
#ifndef BATON_AGENT_CONTEXT_SHINGLES_H
#define BATON_AGENT_CONTEXT_SHINGLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct hashes { /* zeroed at first; the list is freed by whoever has it */
	uint64_t *list;
	size_t n, cap;
};

void hashes_add(struct hashes *h, uint64_t hash);
/* Sorted, each once: a set. The others want sets. */
void hashes_sort(struct hashes *h);
size_t hashes_shared(const struct hashes *a, const struct hashes *b);
/* Shared ones in per cent of all that the two have (Jaccard). */
int hashes_alike(const struct hashes *a, const struct hashes *b);

/* Lower case, one blank for a run of them, none at the ends. */
void shingles_plain(const char *text, size_t n, struct buf *out);
/* The set of a text; *ret is overwritten. */
void shingles_make(const char *text, size_t n, struct hashes *ret);

#endif
