/*
 * resample.h - what of many texts is worth its room (H20): near-duplicates go, the rest is put in order.
 *
 * For whoever injects much at once: memory, search results, files, reports, commands. Texts in, a choice
 * out: which of them, in which order, how many fit. Nothing is rewritten, nothing is allocated for the
 * caller, and the same input gives the same choice on every machine.
 */
#ifndef BATON_AGENT_CONTEXT_RESAMPLE_H
#define BATON_AGENT_CONTEXT_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/ledger.h"

#define RESAMPLE_SIMILAR 80 /* per cent of shared shingles from which two texts are the same one */

struct resample_item {
	const char *text; /* borrowed, any bytes */
	size_t n;
	int64_t age;	/* in the caller's units; 0 is the newest */
	int64_t weight; /* the caller's own view: goes before hits and age; 0: none */

	/* Filled in. */
	int64_t tokens;
	size_t like; /* index of the better item that says the same; its own index: none */
	int hits;    /* distinct words of the task that stand in it, up to RESAMPLE_HITS */
};

#define RESAMPLE_HITS 20

struct resample_spec {
	const char *task; /* words that count as hits: task, failing test, focus; NULL: none */
	size_t task_len;
	int64_t tokens;		     /* that all chosen items may take; 0: no limit */
	int similar;		     /* per cent; 0: RESAMPLE_SIMILAR */
	const struct ledger *ledger; /* estimates; NULL: by bytes */
};

/* Writes the indices of the chosen items into `ret_order` (room for n), most important first, and returns
 * their number. Order: weight, then hits, then age, then place in the list. Of near-duplicates the first
 * in this order stays. An item that does not fit is left out, and smaller ones behind it may still come in. */
size_t resample(struct resample_item *items, size_t n, const struct resample_spec *spec,
		size_t *ret_order);

/* Shared shingles of two texts in per cent of all that they have (Jaccard). */
int resample_similarity(const char *a, size_t n_a, const char *b, size_t n_b);

#endif
