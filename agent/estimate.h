/*
 * estimate.h - how many tokens a text has, before a provider says so (W6).
 *
 * A text is split by bytes into kinds that tokenizers treat differently; each kind has a rate in
 * tokens per byte that every usage of the provider corrects, within bounds. The rates belong to one
 * model: an estimator lives in one agent, whose model never changes.
 */
#ifndef BATON_AGENT_ESTIMATE_H
#define BATON_AGENT_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

enum text_kind {
	TEXT_PROSE,
	TEXT_CODE,
	TEXT_JSON,
	TEXT_CJK,   /* all that is not ASCII */
	TEXT_DENSE, /* hex, base64, digits: few bytes a token */
	TEXT_KINDS,
};

#define ESTIMATE_IMAGE 2000 /* W6 */

struct text_counts {
	int64_t bytes[TEXT_KINDS];
	int64_t images;
	int64_t overhead; /* tokens of the frame around texts: roles, ids, separators */
};

struct estimator {
	double rate[TEXT_KINDS]; /* tokens per byte */
};

void estimator_init(struct estimator *estimator);

/* Adds a text's bytes to counts, by kind. One pass. */
void estimate_count(struct text_counts *counts, const char *text, size_t n);
void estimate_merge(struct text_counts *counts, const struct text_counts *more);

/* Never less than an eighth of the bytes (X8). */
int64_t estimate_tokens(const struct estimator *estimator, const struct text_counts *counts);

/* The provider counted `actual` tokens for what was counted: the rates move towards it, each by its
 * share in the text, at most by half at a time and within 0.5 to 2.5 of where they began. Small
 * texts teach nothing. */
void estimator_learn(struct estimator *estimator, const struct text_counts *counts, int64_t actual);

#endif
