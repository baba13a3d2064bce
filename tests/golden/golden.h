/*
 * golden.h - a golden conversation as data: what happens in it, and the facts that are planted there (H19).
 *
 * conversations/NAME.yaml holds the task, what the user says in between, and the rounds: an answer of the
 * model with one call, and its result. Rounds that carry facts are written by hand; `filler: N` stands for N rounds
 * of reads and commands that are made from the file's own lines by its seed, the same each time.
 * facts/NAME.yaml holds what must not be lost. Nothing but golden_check reads it: neither the agent nor
 * a summary (but the good summariser, which is told what to remember).
 */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum fact_class {
	FACT_GOAL,
	FACT_WORDS, /* each message of the user, whole */
	FACT_CONSTRAINT,
	FACT_DECISION,
	FACT_REJECTED,
	FACT_FILE,
	FACT_FUNCTION,
	FACT_FAILURE,
	FACT_COMMAND,
	FACT_NEXT, /* the next command */
	FACT_IDENTIFIER,
	FACT_CLASSES,
};
const char *fact_class_name(enum fact_class class);

#define FACT_TEXTS 4

struct fact {
	enum fact_class class;
	int at;			       /* round behind which it is known; 0: the task */
	const char *texts[FACT_TEXTS]; /* all of them must be there */
	size_t n;
	const char *why; /* of a decision; NULL: none */
};

struct golden_step {
	const char *user; /* words between two rounds; NULL: this is a round */
	const char *say, *tool;
	char *arguments; /* JSON */
	struct buf result;
	int exit_code; /* of shell; -1 else */
};

struct golden {
	const char *name, *language, *task,
		*instructions; /* instructions: NULL if there are none */
	struct golden_step *steps;
	size_t n_steps, cap_steps;
	int rounds;
	struct fact *facts;
	size_t n_facts, cap_facts;
	const char *follow_up; /* a question that the facts answer */
	struct fact answer;    /* what must stand in its answer */
	struct yaml_doc *conversation_doc, *facts_doc;
	char **owned;
	size_t n_owned, cap_owned;
};

/* folder: that of conversations/ and facts/. The caller frees. */
int golden_load(const char *folder, const char *name, struct golden **ret, struct err *err);
void golden_free(struct golden *golden); /* NULL allowed */

/* All of them, in the order in which they are printed. */
#define GOLDENS 12
int golden_load_all(const char *folder, struct golden *ret[GOLDENS], struct err *err);
void golden_free_all(struct golden *goldens[GOLDENS]);

/* Pseudo-random numbers that are the same on every machine. */
uint64_t golden_random(uint64_t *state);

#endif
