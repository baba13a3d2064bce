/*
 * sentences.h - a message of a person as sentences, each a span of its bytes.
 *
 * Made for texts that people type at an agent: prose and lists, with code blocks, quoted lines, file
 * names and two languages in between. The spans are in order, do not overlap, start and end on whole
 * characters, have no blanks at their ends, and leave out nothing but blanks. Any bytes are accepted.
 */
#ifndef BATON_HANDOFF_SENTENCES_H
#define BATON_HANDOFF_SENTENCES_H

#include <stdbool.h>
#include <stddef.h>

/* Longer ones (a minified line, a log) are cut into pieces of at most this many bytes. */
#define SENTENCE_MAX 1000

enum sentence_kind {
	SENTENCE_PLAIN,
	SENTENCE_ITEM,	/* begins a list item, its bullet included */
	SENTENCE_QUOTE, /* a line with > before it: words of somebody else */
	SENTENCE_CODE,	/* a fenced block, fences included; never cut */
};

struct sentence {
	size_t at, n; /* bytes */
	enum sentence_kind kind;
	bool follows; /* no empty line between the one before and this one */
	bool piece;   /* the rest of an overlong sentence: belongs to the one before */
};

struct sentences {
	struct sentence *list;
	size_t n, cap;
};

void sentences_split(const char *text, size_t n, struct sentences *ret);
void sentences_release(struct sentences *sentences);

#endif
