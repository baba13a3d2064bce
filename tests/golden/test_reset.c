/*
 * test_reset.c - issue 4, "reset equivalence": is a handoff document enough to go on as if nothing had happened?
 *
 * Each golden conversation is lived in six generations: it is cut at five places, and each time a successor goes on from
 * the document alone (the transcript is deleted before it starts). At each cut something real is broken in a real
 * repository; the successor is scripted against the bytes of its first request (successor.h), has to find the command,
 * the test, the file, the function and the value there, and turns the test green. Then it lives on to the next cut.
 *
 * The documents are made by the product from records, once with a model's judgement and once without, completed as the
 * parent does it and checked with what git knows. Facts are sought in the bytes of the first request; the bars are
 * those of the issue: what the user said 100 %, everything else 95 %.
 */
#include "reset_life.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/memory.h"

static struct golden *goldens[GOLDENS];

#define PCT_WORDS   100
#define PCT_REST    95
#define ALL_CUTS    ((1u << RESET_CUTS) - 1)
#define MUTANT_CUTS (1u << 1 | 1u << 4) /* two, so that something has to be carried over */

/* ---- the score ---- */

static void score_add(struct reset_score *sum, const struct reset_score *one)
{
	golden_score_add(&sum->facts, &one->facts);
	sum->exits += one->exits;
	sum->all_exits += one->all_exits;
	sum->tasks += one->tasks;
	sum->all_tasks += one->all_tasks;
	sum->resets += one->resets;
	sum->accepted += one->accepted;
	sum->green += one->green;
	sum->tokens = MAX(sum->tokens, one->tokens);
}

static int percent(size_t found, size_t all)
{
	return all ? (int)(found * 100 / all) : 100;
}

static void print_head(void)
{
	print_message("%-17s %-10s", "conversation", "by");
	for (size_t i = 0; i < FACT_CLASSES; i++)
		print_message(" %6.6s", fact_class_name((enum fact_class)i));
	print_message("  exits  tasks resets  taken  green tokens\n");
}

static void print_row(const char *name, const char *by, const struct reset_score *s)
{
	print_message("%-17s %-10s", name, by);
	for (size_t i = 0; i < FACT_CLASSES; i++)
		print_message(" %5d%%", golden_recall(&s->facts, 1u << i));
	print_message(" %5d%% %5d%% %6zu %6zu %6zu %6lld\n", percent(s->exits, s->all_exits),
		      percent(s->tasks, s->all_tasks), s->resets, s->accepted, s->green,
		      (long long)s->tokens);
}

static bool above_bars(const struct reset_score *s)
{
	bool good = golden_recall(&s->facts, GOLDEN_WORDS) >= PCT_WORDS &&
		    percent(s->exits, s->all_exits) >= PCT_REST &&
		    percent(s->tasks, s->all_tasks) >= PCT_REST && s->accepted == s->resets &&
		    s->green == s->resets;

	for (size_t i = 0; i < FACT_CLASSES; i++)
		good = good && golden_recall(&s->facts, 1u << i) >= PCT_REST;
	return good;
}

/* ---- the tests ---- */

static void print_missing(const struct reset_score *s)
{
	for (const char *line = buf_str(&s->facts.missing), *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		print_message("%.*s\n", (int)(end - line), line);
	}
}

/* With a judgement two of the five cuts, other ones for each conversation; all with BATON_GOLDEN_ALL=1. */
static unsigned cuts_of(enum reset_form form, size_t i)
{
	if (form == RESET_FACTS || env_get("BATON_GOLDEN_ALL"))
		return ALL_CUTS;
	return 1u << i % RESET_CUTS | 1u << (i + 2) % RESET_CUTS;
}

static void resets_of(size_t i, struct reset_world *world, enum reset_form form,
		      struct reset_score *sum)
{
	const struct golden *g = goldens[i];
	struct reset_plan plan = {.form = form, .cuts = cuts_of(form, i)};
	struct reset_score one = {.resets = 0};

	reset_live(g, world, &plan, &one);
	print_row(g->name, reset_form_name(form), &one);
	score_add(sum, &one);
	golden_score_release(&one.facts);
}

static void check_bars(const struct reset_score *sum, enum reset_form form)
{
	print_row("ALL", reset_form_name(form), sum);
	print_missing(sum);
	if (!above_bars(sum))
		fail_msg("%s", "below the bars");
}

/* R1 to R4: with a model's judgement and with facts alone. */
static void r3_nothing_is_lost_in_a_reset(void **state)
{
	struct reset_score facts = {.resets = 0}, judged = {.resets = 0};

	print_head();
	for (size_t i = 0; i < GOLDENS; i++) {
		struct reset_world world;

		reset_world_make(&world, goldens[i]);
		resets_of(i, &world, RESET_FACTS, &facts);
		resets_of(i, &world, RESET_JUDGED, &judged);
		reset_world_free(&world);
	}
	check_bars(&facts, RESET_FACTS);
	check_bars(&judged, RESET_JUDGED);
	golden_score_release(&facts.facts);
	golden_score_release(&judged.facts);
}

/* What is broken in handoff_make on purpose must be seen: else the bars guard nothing. */
static void r3_mutants_are_noticed(void **state)
{
	struct reset_world world;

	reset_world_make(&world, goldens[0]);
	print_head();
	for (int i = BREAK_NONE; i < BREAKS; i++) {
		struct reset_plan plan = {.spoilt = (enum reset_break)i, .cuts = MUTANT_CUTS};
		const char *name = reset_break_name(plan.spoilt);
		struct reset_score score = {.resets = 0};

		reset_live(goldens[0], &world, &plan, &score);
		print_row(goldens[0]->name, name, &score);
		if (above_bars(&score) != (plan.spoilt == BREAK_NONE))
			fail_msg("mutant '%s' was not noticed", name);
		golden_score_release(&score.facts);
	}
	reset_world_free(&world);
}

/* In memory, where there is one: transcripts and git's objects are synced, and on a disk that takes minutes. */
static int load_all(void **state)
{
	struct err e = ERR_INIT;

	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);

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
		cmocka_unit_test(r3_nothing_is_lost_in_a_reset),
		cmocka_unit_test(r3_mutants_are_noticed),
	};
	return cmocka_run_group_tests_name("reset", tests, load_all, free_all);
}
