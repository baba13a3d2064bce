/*
 * reset_life.h - a golden conversation lived in generations: at each cut a document is made, checked and handed on, and a
 * successor has to go on from it alone.
 */
#ifndef TEST_RESET_LIFE_H
#define TEST_RESET_LIFE_H

#include "golden_check.h"
#include "reset_world.h"

/* Whether the model adds its judgement to a document. */
enum reset_form { RESET_FACTS, RESET_JUDGED };
const char *reset_form_name(enum reset_form form);

/* Breaks of handoff_make: what it made, or what it is made from, is spoiled. */
enum reset_break {
	BREAK_NONE,
	BREAK_NO_OUTPUT,  /* failures without the lines that say what failed */
	BREAK_OLD_ACTION, /* the first action is the oldest failure's */
	BREAK_NO_CARRY,	  /* what earlier generations knew is forgotten */
	BREAK_NO_SAYINGS, /* what was said of decisions and of the next step is not taken */
	BREAK_NO_FILES,
	BREAK_NO_NAMES, /* functions and identifiers are not taken */
	BREAK_REWORDED, /* a constraint loses its last word */
	BREAKS,
};
const char *reset_break_name(enum reset_break spoilt);

struct reset_score {
	struct golden_score facts;
	size_t exits, all_exits; /* commands that stand there with their exit code */
	size_t tasks, all_tasks; /* open items of the plan */
	size_t resets;		 /* all of them */
	size_t accepted;	 /* documents that the check took */
	size_t green;		 /* successors that turned their test green */
	int64_t tokens;		 /* of the largest document */
};

struct reset_plan {
	enum reset_form form;
	enum reset_break spoilt;
	unsigned cuts; /* a mask of RESET_CUTS places */
};
#define RESET_CUTS 5

/* Lives it once, from the world's first commit on; adds to the score. */
void reset_live(const struct golden *golden, struct reset_world *world,
		const struct reset_plan *plan, struct reset_score *score);

#endif
