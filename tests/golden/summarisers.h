/*
 * summarisers.h - three models that summarise, without a model.
 *
 *   good    all nine sections, made from the facts that are known at that time
 *   lazy    valid sections with nothing in them
 *   lying   drops a third of the facts, rewords a third, and lays rules in the user's mouth; seeded
 *
 * The same three keep the notes of a session. What a keeper is not shown it cannot note: facts are taken from the
 * bytes of the pass's own request.
 */
#ifndef TEST_SUMMARISERS_H
#define TEST_SUMMARISERS_H

#include "golden.h"

enum summariser { SUMMARISER_GOOD, SUMMARISER_LAZY, SUMMARISER_LYING, SUMMARISERS };
const char *summariser_name(enum summariser summariser);

/* Constraints that a lying summary made up, so that they can be sought; owned. */
struct lies {
	char **list;
	size_t n, cap;
};
void lies_release(struct lies *lies);

/* Appends the answer to a compaction request behind `round`. */
void summarise(enum summariser summariser, const struct golden *golden, int round, uint64_t *random,
	       struct lies *lies, struct buf *out);

/* Appends the answer to a pass of the notes whose request is `body`: all sections that it has something for. */
void take_notes(enum summariser keeper, const struct golden *golden, const char *body, size_t n,
		uint64_t *random, struct lies *lies, struct buf *out);

#endif
