/*
 * summarisers.h - three models that summarise, without a model.
 *
 *   good    all nine sections, made from the facts that are known at that time
 *   lazy    valid sections with nothing in them
 *   lying   drops a third of the facts, rewords a third, and lays rules in the user's mouth; seeded
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

#endif
