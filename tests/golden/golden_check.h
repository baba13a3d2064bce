/*
 * golden_check.h - seeks the facts of a golden conversation in the bytes of a request, and keeps the score.
 *
 * The bytes are those that leave: a text is there as the JSON writer escapes it, or it is not. What a
 * summariser made up (summarisers.h) must not be there.
 */
#ifndef TEST_GOLDEN_CHECK_H
#define TEST_GOLDEN_CHECK_H

#include "golden.h"

struct golden_score {
	size_t found[FACT_CLASSES], all[FACT_CLASSES];
	size_t invented;    /* rules that nobody gave and that stand in the request */
	struct buf missing; /* a line each, for people */
};

/* Is `text` in the body, escaped as in JSON? */
bool golden_holds(const char *body, size_t n, const char *text);
/* Facts known up to `round` are added to the score; `who` goes before each line of what is missing. */
void golden_check(const struct golden *golden, int round, const char *body, size_t n,
		  const char *who, struct golden_score *score);
/* Each of the lines that must not be there. */
void golden_check_lies(const char *const *lies, size_t n_lies, const char *body, size_t n,
		       const char *who, struct golden_score *score);
void golden_score_add(struct golden_score *sum, const struct golden_score *score);
void golden_score_release(struct golden_score *score);
/* Per cent of these classes (a mask of 1 << class), rounded down; 100 where there are none. */
int golden_recall(const struct golden_score *score, unsigned classes);

#define GOLDEN_WORDS	(1u << FACT_WORDS | 1u << FACT_CONSTRAINT)
#define GOLDEN_FILES	(1u << FACT_FILE)
#define GOLDEN_COMMANDS (1u << FACT_COMMAND | 1u << FACT_NEXT)
#define GOLDEN_FAILURES (1u << FACT_FAILURE)

#endif
