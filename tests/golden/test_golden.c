/*
 * test_golden.c - H19: what code guarantees to survive a compaction, measured without a model.
 *
 * Twelve conversations of 60 rounds, three summarisers, 1, 3 and 12 compactions by summary and by notes; then
 * each rung alone. After each the facts are sought in the bytes of the next request. The table is printed, and the bars are the
 * test: words and constraints of the user 100 %, files, commands and failures at least 95 %, functions 90 %,
 * identifiers 80 %, nothing invented.
 */
#include "golden_agent.h"
#include "golden_check.h"

#include "../agent/agent_fixture.h"

#include <stdio.h>

#include "base/memory.h"

static struct golden *goldens[GOLDENS];

#define ROUNDS 60
/* Compactions come when they are asked for, and by a summary. */
#define CONTEXT "{\"notes\":false}"

/* The same with a session's notes (H4) in the summary's place. */
#define WITH_NOTES "{\"notes\":true}"

static const int counts[] = {1, 3, 12};

/* ---- the data ---- */

/* Issue 3: at least 12 conversations of 60 rounds and 12 facts, two of them in Chinese. */
static void h19_the_conversations_are_what_they_must_be(void **state)
{
	size_t chinese = 0;

	for (size_t i = 0; i < GOLDENS; i++) {
		const struct golden *g = goldens[i];
		unsigned classes = 0;

		assert_true(g->rounds >= ROUNDS);
		assert_true(g->n_facts >= 12);
		assert_non_null(g->follow_up);
		for (size_t k = 0; k < g->n_facts; k++)
			classes |= 1u << g->facts[k].class;
		assert_int_equal(classes, (1u << FACT_CLASSES) - 1);
		chinese += !strcmp(g->language, "zh");
	}
	assert_true(GOLDENS >= 12);
	assert_true(chinese >= 2);
}

/* Without any compaction every fact stands in the request, so a fact that is sought can be found. */
static void h19_all_facts_are_in_the_whole_conversation(void **state)
{
	struct golden_options o = {.window = 400000, .context = CONTEXT};

	for (size_t i = 0; i < GOLDENS; i++) {
		struct golden_agent *ga = golden_agent_new(goldens[i], &o);
		struct golden_score score = {.invented = 0};

		golden_agent_play(ga, ROUNDS);
		golden_agent_request(ga, NULL, NULL);
		golden_check(goldens[i], ROUNDS, ga->body.data, ga->body.len, "whole", &score);
		if (score.missing.len)
			fail_msg("%s", buf_str(&score.missing));
		golden_score_release(&score);
		golden_agent_free(ga);
	}
}

/* ---- the table ---- */

static void print_head(void)
{
	print_message("%-17s %-6s %3s", "conversation", "by", "n");
	for (size_t i = 0; i < FACT_CLASSES; i++)
		print_message(" %6.6s", fact_class_name((enum fact_class)i));
	print_message(" %6s\n", "made up");
}

static void print_row(const char *name, const char *by, int n, const struct golden_score *s)
{
	print_message("%-17s %-6s %3d", name, by, n);
	for (size_t i = 0; i < FACT_CLASSES; i++)
		print_message(" %5d%%", golden_recall(s, 1u << i));
	print_message(" %6zu\n", s->invented);
}

static bool above_bars(const struct golden_score *s)
{
	return golden_recall(s, GOLDEN_WORDS) == 100 && golden_recall(s, GOLDEN_FILES) >= 95 &&
	       golden_recall(s, GOLDEN_COMMANDS) >= 95 && golden_recall(s, GOLDEN_FAILURES) >= 95 &&
	       !s->invented;
}

/* Names come back by rule where they were spoken of or stood in a result with few of them. Less can be promised. */
static void check_names(const struct golden_score *s)
{
	assert_true(golden_recall(s, 1u << FACT_FUNCTION) >= 90);
	assert_true(golden_recall(s, 1u << FACT_IDENTIFIER) >= 80);
}

static void check_bars(const struct golden_score *s)
{
	bool good = above_bars(s);

	if (good)
		return;
	for (const char *line = buf_str(&s->missing), *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		print_message("%.*s\n", (int)(end - line), line);
	}
	fail_msg("%s", "below the bars");
}

/* ---- compactions ---- */

/* Returns how many of them needed no summary call. */
static int64_t run_compactions(const struct golden *g, struct golden_options o, int n,
			       struct golden_score *score)
{
	AUTO_FREE char *who = mem_printf("%s/%d", summariser_name(o.summariser), n);
	struct golden_agent *ga;
	int64_t by_notes;

	/* Small enough for that many rounds to be more than the tail that stays. */
	o.window = n == 1 ? 100000 : n == 3 ? 48000 : 24000;
	o.seed = 1 + (uint64_t)n;
	ga = golden_agent_new(g, &o);
	for (int i = 1; i <= n; i++) {
		golden_agent_play(ga, ROUNDS * i / n);
		golden_agent_compact(ga);
	}
	assert_int_equal(ga->compactions, n);
	golden_agent_request(ga, NULL, NULL);
	golden_check(g, ROUNDS, ga->body.data, ga->body.len, who, score);
	golden_check_lies((const char *const *)ga->lies.list, ga->lies.n, ga->body.data,
			  ga->body.len, who, score);
	by_notes = ga->agent.counts.by_notes;
	golden_agent_free(ga);
	return by_notes;
}

/* All conversations with one summariser and number of compactions: rows of the table, and the bars. */
static int64_t run_all(enum summariser summariser, int n, const char *context)
{
	struct golden_options o = {.summariser = summariser, .context = context};
	struct golden_score sum = {.invented = 0};
	int64_t by_notes = 0;

	for (size_t i = 0; i < GOLDENS; i++) {
		struct golden_score one = {.invented = 0};

		by_notes += run_compactions(goldens[i], o, n, &one);
		print_row(goldens[i]->name, summariser_name(summariser), n, &one);
		golden_score_add(&sum, &one);
		golden_score_release(&one);
	}
	print_row("ALL", summariser_name(summariser), n, &sum);
	check_bars(&sum);
	check_names(&sum);
	golden_score_release(&sum);
	return by_notes;
}

static void h19_after_a_good_summary(void **state)
{
	print_head();
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
		run_all(SUMMARISER_GOOD, counts[k], CONTEXT);
}

static void h19_after_a_lazy_summary(void **state)
{
	print_head();
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
		run_all(SUMMARISER_LAZY, counts[k], CONTEXT);
}

static void h19_after_a_lying_summary(void **state)
{
	print_head();
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
		run_all(SUMMARISER_LYING, counts[k], CONTEXT);
}

/* H4: what a compaction puts there without a call is measured like a summary, and it is the notes that did it. */
static void h19_after_notes(void **state)
{
	print_head();
	for (int s = 0; s < SUMMARISERS; s++) {
		for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
			int64_t all = counts[k] * (int64_t)GOLDENS;
			int64_t by_notes = run_all((enum summariser)s, counts[k], WITH_NOTES);

			print_message("%lld of %lld compactions by notes, %s\n",
				      (long long)by_notes, (long long)all,
				      summariser_name((enum summariser)s));
			assert_true(by_notes * 10 >= all * 9);
		}
	}
}

/* What is broken on purpose must be seen: else the bars guard nothing. */
static void h19_mutants_are_noticed(void **state)
{
	static const char *const mutants[] = {"none", "no words", "words cut", "no facts",
					      "no check"};

	for (int m = MUTANT_NONE; m < MUTANTS; m++) {
		struct golden_options o = {.summariser = SUMMARISER_LYING,
					   .mutant = (enum golden_mutant)m,
					   .context = CONTEXT};
		struct golden_score score = {.invented = 0};

		for (size_t i = 0; i < 4; i++)
			run_compactions(goldens[i * 3 + 1], o, 3, &score);
		print_row(mutants[m], "lying", 3, &score);
		if (above_bars(&score) != (m == MUTANT_NONE))
			fail_msg("mutant '%s' was not noticed", mutants[m]);
		golden_score_release(&score);
	}
}

/* ---- rungs ---- */

static void run_rung(const struct rung *rung)
{
	struct golden_options o = {.window = 100000, .context = CONTEXT};
	struct golden_score sum = {.invented = 0};
	int64_t freed = 0;

	for (size_t i = 0; i < GOLDENS; i++) {
		struct golden_agent *ga = golden_agent_new(goldens[i], &o);

		golden_agent_play(ga, ROUNDS);
		freed += golden_agent_rung(ga, rung);
		golden_agent_request(ga, NULL, NULL);
		golden_check(goldens[i], ROUNDS, ga->body.data, ga->body.len, rung->name, &sum);
		golden_agent_free(ga);
	}
	print_row("ALL", rung->name, 1, &sum);
	print_message("%s freed %lld tokens of 12 conversations\n", rung->name, (long long)freed);
	check_bars(&sum);
	golden_score_release(&sum);
}

static void h19_after_each_rung(void **state)
{
	size_t n;
	const struct rung *table = rung_table(&n);

	print_head();
	for (size_t i = 0; i < n; i++)
		if (table[i].time == RUNG_REQUEST)
			run_rung(&table[i]);
}

static int load_all(void **state)
{
	struct err e = ERR_INIT;

	if (golden_load_all(GOLDEN, goldens, &e) < 0)
		fail_msg("%s", e.message);
	return 0;
}

static int free_all(void **state)
{
	golden_free_all(goldens);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h19_the_conversations_are_what_they_must_be),
		cmocka_unit_test(h19_all_facts_are_in_the_whole_conversation),
		cmocka_unit_test(h19_after_a_good_summary),
		cmocka_unit_test(h19_after_a_lazy_summary),
		cmocka_unit_test(h19_after_a_lying_summary),
		cmocka_unit_test(h19_after_notes),
		cmocka_unit_test(h19_mutants_are_noticed),
		cmocka_unit_test(h19_after_each_rung),
	};
	return cmocka_run_group_tests_name("golden", tests, load_all, free_all);
}
