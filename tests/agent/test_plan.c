/*
 * test_plan.c - plan.md: what is an item, and that what was shown or written reads as the same plan (H18).
 */
#include "agent_fixture.h"

#include <string.h>

#include "agent/plan.h"
#include "base/memory.h"

static struct plan parse(const char *text)
{
	struct plan p = {.n = 0};
	struct err e = ERR_INIT;

	if (plan_parse(&p, text, strlen(text), &e) < 0)
		fail_msg("%s", e.message);
	return p;
}

static void assert_written(const struct plan *p, const char *text)
{
	AUTO_BUF struct buf out = BUF_INIT;

	plan_write(p, &out);
	assert_string_equal(buf_str(&out), text);
}

static void checkboxes_are_items_and_the_rest_is_kept(void **state)
{
	struct plan p =
		parse("# Plan\n\n* [X] find it  \n- note, no item\n  + [ ] mend\tit\n- [x]\n");

	assert_int_equal(p.items, 2);
	assert_int_equal(p.done, 1);
	assert_written(&p, "# Plan\n\n- [x] find it\n\n- note, no item\n\n  - [ ] mend\tit\n");
	plan_release(&p);
}

static void without_checkboxes_each_list_item_is_open(void **state)
{
	struct plan p = parse("Steps:\n1. find it\n2) mend it\n- test it\n");

	assert_int_equal(p.items, 3);
	assert_int_equal(p.done, 0);
	assert_written(&p, "Steps:\n\n- [ ] find it\n- [ ] mend it\n- [ ] test it\n");
	plan_release(&p);
}

/* The numbers are shown and are no part of the text, however often it goes round. */
static void what_is_shown_can_be_sent_back(void **state)
{
	struct plan p = parse("- [x] one\n- [ ] two\n"), again;
	AUTO_BUF struct buf shown = BUF_INIT;

	plan_show(&p, &shown);
	assert_string_equal(buf_str(&shown), "- [x] 1. one\n- [ ] 2. two\n");
	again = parse(buf_str(&shown));
	assert_written(&again, "- [x] one\n- [ ] two\n");
	plan_release(&p);
	plan_release(&again);
}

/* Trap 18: a plan that is written anew without checkboxes does not open what was done. */
static void trap_18_done_stays_done_when_it_is_written_anew(void **state)
{
	static const char bare[] = "1. one\n2. two\n3. new\n", boxed[] = "- [ ] one\n- [ ] two\n";
	struct plan before = parse("- [x] one\n- [ ] two\n");
	struct plan now = parse(bare), open = parse(boxed);

	assert_int_equal(plan_keep_done(&now, &before, bare, strlen(bare)), 1);
	assert_written(&now, "- [x] one\n- [ ] two\n- [ ] new\n");
	assert_int_equal(plan_keep_done(&open, &before, boxed, strlen(boxed)), 0);
	assert_int_equal(open.done, 0); /* it says so itself */
	plan_release(&before);
	plan_release(&now);
	plan_release(&open);
}

static void ticking_and_adding(void **state)
{
	struct plan p = parse("- [ ] one\ntext\n- [ ] two\n");
	struct err e = ERR_INIT;

	assert_int_equal(plan_add(&p, "three\nlines", 11, &e), 0);
	assert_int_equal(plan_tick(&p, (size_t[]){3, 1}, 2, true, &e), 0);
	assert_written(&p, "- [x] one\n\ntext\n\n- [ ] two\n- [x] three lines\n");
	assert_int_equal(plan_tick(&p, (size_t[]){1}, 1, false, &e), 0);
	assert_int_equal(p.done, 1);
	assert_int_equal(plan_tick(&p, (size_t[]){2, 4}, 2, true, &e), -1);
	assert_non_null(strstr(e.message, "no item 4"));
	assert_int_equal(p.done, 1); /* nothing of it was done */
	assert_int_equal(plan_tick(&p, (size_t[]){0}, 1, true, &e), -1);
	assert_int_equal(plan_add(&p, " \n", 2, &e), -1);
	plan_release(&p);
}

static void bounds(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct plan p = {.n = 0};
	struct err e = ERR_INIT;

	for (int i = 0; i <= PLAN_ENTRIES_MAX; i++)
		buf_adds(&text, "- [ ] a\n");
	assert_int_equal(plan_parse(&p, buf_str(&text), text.len, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(p.n, 0);
	buf_clear(&text);
	for (int i = 0; i <= PLAN_LINE_MAX; i++)
		buf_addc(&text, 'x');
	assert_int_equal(plan_parse(&p, buf_str(&text), text.len, &e), -1);
	assert_int_equal(plan_parse(&p, "", 0, &e), 0);
	assert_int_equal(p.n, 0);
}

/* I12: nothing for a terminal gets into a file that people look at. */
static void control_sequences_are_taken_out(void **state)
{
	struct plan p = parse("- [ ] a\x1b[31mred\x1b]0;t\x07 b\xff\n");

	assert_int_equal(p.items, 1);
	assert_null(strchr(p.list[0].text, 0x1b));
	assert_non_null(strstr(p.list[0].text, "ared b"));
	plan_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkboxes_are_items_and_the_rest_is_kept),
		cmocka_unit_test(without_checkboxes_each_list_item_is_open),
		cmocka_unit_test(what_is_shown_can_be_sent_back),
		cmocka_unit_test(trap_18_done_stays_done_when_it_is_written_anew),
		cmocka_unit_test(ticking_and_adding),
		cmocka_unit_test(bounds),
		cmocka_unit_test(control_sequences_are_taken_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
