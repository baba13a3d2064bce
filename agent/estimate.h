/*
 * estimate.h - how many tokens a text has, before a provider says so (W6).
 *
 * A text is cut into runs that tokenizers treat alike (words, parts of names, digits, marks, hex,
 * Chinese ...). Each run is worth so many units: the tokens that it has on average over tokenizers.
 * Per kind of run a rate says how far the model's own tokenizer is from that, and every usage of
 * the provider corrects the rates, within bounds. The rates belong to one model: an estimator lives
 * in one agent, whose model never changes.
 */
#ifndef BATON_AGENT_ESTIMATE_H
#define BATON_AGENT_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of runs. The names (text_kind_name) are an interface: they stand in files and frames. */
enum text_kind {
	TEXT_WORDS,  /* ASCII words of prose: at a line's start or after a space */
	TEXT_NAMES,  /* parts of identifiers: after a mark, a digit or another part */
	TEXT_CAPS,   /* two or more capitals */
	TEXT_DIGITS, /* decimal digits */
	TEXT_MARKS,  /* punctuation and operators */
	TEXT_JOINTS, /* a single mark right before a letter: some tokenizers join the two */
	TEXT_SPACE,  /* ends of lines, indentation, columns */
	TEXT_ENDS,   /* ends of lines after a mark: some tokenizers join the two */
	TEXT_BASE64, /* letters and digits without sense: keys, tokens, encoded bytes */
	TEXT_HEX,
	TEXT_HAN,
	TEXT_KANA,
	TEXT_HANGUL,
	TEXT_LATIN,	/* Latin letters with diacritics */
	TEXT_ALPHABETS, /* letters of other alphabets */
	TEXT_SYMBOLS,	/* all other code points, emoji, control bytes, broken UTF-8 */
	TEXT_KINDS,
};

#define ESTIMATE_IMAGE	   2000 /* W6 */
#define ESTIMATE_UNIT	   1024 /* units of a token */
#define ESTIMATE_RATE_LOW  0.4	/* bounds of every rate */
#define ESTIMATE_RATE_HIGH 2.5

struct text_counts {
	int64_t bytes[TEXT_KINDS];
	int64_t units[TEXT_KINDS]; /* 1/ESTIMATE_UNIT token */
	int64_t images;
	int64_t overhead; /* tokens of the frame around texts: roles, ids, separators */
};

/* Rates and what is known of them: the covariance of a recursive least squares fit. */
struct estimator {
	double rate[TEXT_KINDS]; /* tokens per unit of tokens; 1 is the average tokenizer */
	double spread[TEXT_KINDS][TEXT_KINDS];
	int64_t learned[TEXT_KINDS]; /* tokens that taught the rate, by this estimator */
};

const char *text_kind_name(enum text_kind kind);

void estimator_init(struct estimator *estimator);
/* A rate from an earlier run, which `tokens` tokens taught: it is bounded, and the more taught it
 * the less a single usage moves it. */
void estimator_recall(struct estimator *estimator, enum text_kind kind, double rate,
		      int64_t tokens);

/* Adds a text's runs to counts, by kind. One pass; every byte is in exactly one kind. */
void estimate_count(struct text_counts *counts, const char *text, size_t n);
void estimate_merge(struct text_counts *counts, const struct text_counts *more);
int64_t estimate_bytes(const struct text_counts *counts);

/* Never less than an eighth of the bytes (X8). */
int64_t estimate_tokens(const struct estimator *estimator, const struct text_counts *counts);

/* The provider counted `actual` tokens for what was counted: the rates move towards it, each by its
 * share in the text and by how little is known of it. Returns false and learns nothing from a small
 * text, or from a figure that cannot be: below an eighth of the bytes, or above all bytes. */
bool estimator_learn(struct estimator *estimator, const struct text_counts *counts, int64_t actual);

#endif
