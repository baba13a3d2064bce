/*
 * history_fixture.h - conversations for the tests of the rungs: by hand, call by call, or generated from a
 * seed with all that a real one has (parallel calls, failures, repeats, images, thinking, people who
 * interrupt, news of baton).
 */
#ifndef TEST_HISTORY_FIXTURE_H
#define TEST_HISTORY_FIXTURE_H

#include "tests/base/test_base.h"

#include "agent/context/rungs.h"
#include "agent/transcript.h"

struct history {
	struct conversation c;
	struct view view;
	struct ledger ledger;
	struct window_budget budget;
	struct model model;
	struct context_knobs knobs;
	struct rung_input in;
	struct transcript *transcript; /* NULL unless history_record */
	int calls;
	uint64_t seed;
};

/* A model with explicit caching and prices, a first message of the user. */
void history_start(struct history *h, int64_t window);
/* Messages (those that are there too) and edits go to FOLDER/transcript.jsonl. */
void history_record(struct history *h, const char *folder);
void history_end(struct history *h);

void history_user(struct history *h, enum block_origin origin, const char *text);

struct history_call {
	const char *tool, *input, *result;
	bool is_error, image;
};
/* One round: an answer with this text (NULL: none) and these calls, and their results. */
void history_round(struct history *h, const char *text, const struct history_call *calls, size_t n);
/* The same with one call whose result is `words` words long. */
void history_call(struct history *h, const char *tool, const char *input, int words);

/* Rounds by chance, the same for the same seed. */
void history_generate(struct history *h, uint64_t seed, int rounds);
uint64_t history_random(struct history *h, uint64_t below);

/* The view takes what came; it passes the validator (I2), the ledger is the sum of the view. */
void history_sync(struct history *h);
void history_check(struct history *h);
/* Every block of this origin that the conversation has stands in the view, once each. */
void history_check_kept(const struct history *h, enum block_origin origin);
bool history_view_has(const struct history *h, const char *text);
/* The view that the transcript gives is this one, block for block. */
void history_check_rebuilt(struct history *h, const char *folder);

#endif
