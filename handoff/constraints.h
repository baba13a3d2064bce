/*
 * constraints.h - which sentences of a person are constraints: prohibitions, obligations, limits and
 * choices of technology, language or style (X2).
 *
 * By rule, in English and Chinese, without a model: what is doubtful is a constraint, because one that
 * is kept for nothing costs a line and one that is lost costs the work. So in a message that was typed
 * a sentence is one unless it is recognised as something else; in a long text, which was pasted, only
 * what a rule names is, or a constraint would no longer stand out. The rule for what counts is in
 * the head of tests/golden/constraints.tsv. Questions, code blocks and quoted lines are not marked by
 * themselves; a marked line that ends in a colon takes the list, block or quote that follows with it.
 */
#ifndef BATON_HANDOFF_CONSTRAINTS_H
#define BATON_HANDOFF_CONSTRAINTS_H

#include <stdbool.h>
#include <stddef.h>

/* Longer messages count as pasted. */
#define CONSTRAINT_TYPED_MAX 4000

struct text_span {
	size_t at, n; /* bytes */
};

struct constraints {
	struct text_span *list;
	size_t n, cap;
};

/* In order, without overlaps; each span is whole sentences of the text. */
void constraints_find(const char *text, size_t n, struct constraints *ret);
void constraints_release(struct constraints *constraints);

enum constraint_level {
	CONSTRAINT_NONE,
	CONSTRAINT_UNCLEAR, /* not recognised as anything: a task, a report, a question ... */
	CONSTRAINT_CLEAR,   /* a rule says so */
};

/* One sentence, bullet and all. */
enum constraint_level constraint_level(const char *sentence, size_t n);

/* The parts of it (constraint_english.c, constraint_chinese.c). `bare` is the sentence with what stands
 * in quotation marks and in `code` blanked out, in lower case. */
bool constraint_in_english(const char *bare, size_t n);
bool constraint_in_chinese(const char *bare, size_t n);
bool constraint_unclear_english(const char *bare, size_t n);
bool constraint_unclear_chinese(const char *bare, size_t n);
bool constraint_is_chinese(const char *bare, size_t n);

#endif
