/*
 * test_handoff_carry.c - what a generation hands on of the document that it began from (R1): all that its own records do not
 * overtake, and no more than there is room for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/handoff_carry.h"
#include "base/memory.h"

static struct fact_command ran[] = {{.command = (char *)"make check", .round = 4}};
static const struct facts facts = {.commands = ran, .n_commands = 1};

static struct handoff_statement *add(struct handoff *h, enum handoff_part_name part,
				     const char *text, const char *member)
{
	struct handoff_statement *s = handoff_add(h, part, HANDOFF_FROM_RECORD, text, strlen(text));

	if (part == HANDOFF_FILES)
		handoff_set(&s->file, member);
	else if (part == HANDOFF_TASKS)
		handoff_set(&s->id, member);
	else
		handoff_set(&s->command, member);
	return s;
}

/* The texts of a part in their order, one a line. */
static void expect(const struct handoff *h, enum handoff_part_name part, const char *want)
{
	AUTO_BUF struct buf got = BUF_INIT;

	for (size_t i = 0; i < h->parts[part].n; i++)
		buf_addf(&got, "%s\n", h->parts[part].list[i].text);
	assert_string_equal(buf_str(&got), want);
}

static void run_again_counts_as_it_ended_now(void **state)
{
	struct handoff *before = handoff_new(), *h = handoff_new();

	add(before, HANDOFF_FAILURES, "check fails", "make check");
	add(before, HANDOFF_FAILURES, "lint fails", "make lint");
	add(before, HANDOFF_DECISIONS, "no cache", NULL);
	handoff_set(&add(before, HANDOFF_FINISHED, "a commit", NULL)->commit, "1234");
	add(h, HANDOFF_FAILURES, "bench fails", "make bench");
	add(h, HANDOFF_DECISIONS, "no cache", NULL);
	handoff_carry(h, before, &facts);
	expect(h, HANDOFF_FAILURES, "lint fails\nbench fails\n");
	expect(h, HANDOFF_DECISIONS, "no cache\n");
	expect(h, HANDOFF_FINISHED, "");
	handoff_free(before);
	handoff_free(h);
}

/* Two files that were changed in one round are two files; what was changed and then read was changed. */
static void files_are_told_apart(void **state)
{
	struct handoff *before = handoff_new(), *h = handoff_new();

	add(before, HANDOFF_FILES, "changed in round 5", "a.c")->state = HANDOFF_CHANGED;
	add(before, HANDOFF_FILES, "changed in round 5", "b.c")->state = HANDOFF_CHANGED;
	add(before, HANDOFF_FILES, "changed in round 6", "c.c")->state = HANDOFF_CHANGED;
	add(h, HANDOFF_FILES, "changed in round 5", "d.c")->state = HANDOFF_CHANGED;
	add(h, HANDOFF_FILES, "read in round 7", "b.c")->state = HANDOFF_READ;
	handoff_carry(h, before, &facts);
	const struct handoff_part *files = &h->parts[HANDOFF_FILES];
	assert_int_equal(files->n, 4);
	assert_string_equal(files->list[0].file, "a.c");
	assert_string_equal(files->list[1].file, "c.c");
	assert_string_equal(files->list[3].file, "b.c");
	assert_int_equal(files->list[3].state, HANDOFF_CHANGED);
	handoff_free(before);
	handoff_free(h);
}

static void expect_next(const char *then, const char *now, const char *want)
{
	struct handoff *before = handoff_new(), *h = handoff_new();

	add(before, HANDOFF_TASKS, then, HANDOFF_NEXT_ID);
	if (now)
		add(h, HANDOFF_TASKS, now, HANDOFF_NEXT_ID);
	handoff_carry(h, before, &facts);
	expect(h, HANDOFF_TASKS, want);
	handoff_free(before);
	handoff_free(h);
}

static void the_announced_step_stays_until_it_is_done(void **state)
{
	expect_next("Next: `make lint`", NULL, "Next: `make lint`\n");
	expect_next("Next: `make lint`", "Next: b.c", "Next: b.c\n");
	expect_next("Next: `make check`", NULL, "");
	assert_true(handoff_was_done(&facts, "then `make check`", 3));
	assert_false(handoff_was_done(&facts, "then `make check`", 4));
}

static void names_are_put_together(void **state)
{
	struct handoff *before = handoff_new(), *h = handoff_new();

	add(before, HANDOFF_NAMES, "Functions spoken of: load load_all save", NULL);
	add(before, HANDOFF_NAMES, "Identifiers seen: SN-7QF2", NULL);
	add(h, HANDOFF_NAMES, "Functions spoken of: load_all", NULL);
	handoff_carry(h, before, &facts);
	expect(h, HANDOFF_NAMES,
	       "Functions spoken of: load_all load save\nIdentifiers seen: SN-7QF2\n");
	handoff_free(before);
	handoff_free(h);
}

/* A document does not grow with its generations; what goes is counted. */
static void the_oldest_go(void **state)
{
	struct handoff *before = handoff_new(), *h = handoff_new();
	char text[32];

	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "decision %d", i);
		add(before, HANDOFF_DECISIONS, text, NULL);
	}
	add(h, HANDOFF_DECISIONS, "the newest", NULL);
	handoff_carry(h, before, &facts);
	const struct handoff_part *list = &h->parts[HANDOFF_DECISIONS];
	assert_int_equal(list->n, 40);
	assert_string_equal(list->list[0].text, "decision 11");
	assert_string_equal(list->list[39].text, "the newest");
	expect(h, HANDOFF_MISSING,
	       "decisions: 11 older ones stand in the documents of earlier generations; `recall` "
	       "finds them\n");
	handoff_free(before);
	handoff_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_again_counts_as_it_ended_now),
		cmocka_unit_test(files_are_told_apart),
		cmocka_unit_test(the_announced_step_stays_until_it_is_done),
		cmocka_unit_test(names_are_put_together),
		cmocka_unit_test(the_oldest_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
