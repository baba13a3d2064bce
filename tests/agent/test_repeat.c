/*
 * test_repeat.c - X13, trap 154: the same call with the same result is counted.
 */
#include "agent_fixture.h"

#include <stdio.h>

#include "agent/repeat.h"
#include "base/memory.h"

static int once(struct repeats *r, const char *args, const char *result, bool changed)
{
	return repeat_count(r, "shell", args, strlen(args), result, strlen(result), changed);
}

static void x13_equal_calls_are_counted(void **state)
{
	struct repeats r = {.n = 0};

	for (int i = 1; i <= REPEAT_STOP; i++)
		assert_int_equal(once(&r, "{\"command\":\"make\"}", "error", false), i);
}

static void x13_two_alternating_calls_are_a_loop_too(void **state)
{
	struct repeats r = {.n = 0};

	for (int i = 1; i <= 4; i++) {
		assert_int_equal(once(&r, "a", "1", false), i);
		assert_int_equal(once(&r, "b", "2", false), i);
	}
}

static void another_result_or_argument_is_another_call(void **state)
{
	struct repeats r = {.n = 0};

	assert_int_equal(once(&r, "a", "1", false), 1);
	assert_int_equal(once(&r, "a", "2", false), 1);
	assert_int_equal(once(&r, "b", "1", false), 1);
	assert_int_equal(once(&r, "ab", "", false), 1);
	assert_int_equal(once(&r, "", "ab", false), 1);
}

static void a_change_of_files_starts_afresh(void **state)
{
	struct repeats r = {.n = 0};

	assert_int_equal(once(&r, "make", "error", false), 1);
	assert_int_equal(once(&r, "make", "error", false), 2);
	assert_int_equal(once(&r, "edit 1", "done", true), 1);
	assert_int_equal(once(&r, "make", "error", false), 1);
	/* The same edit again is itself a repetition. */
	assert_int_equal(once(&r, "edit 1", "done", true), 2);
	assert_int_equal(once(&r, "make", "error", false), 2);
}

static void far_apart_is_no_repetition(void **state)
{
	struct repeats r = {.n = 0};
	char text[16];

	assert_int_equal(once(&r, "git status", "clean", false), 1);
	for (int i = 0; i < REPEAT_KEEP; i++) {
		snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(once(&r, text, "x", false), 1);
	}
	assert_int_equal(once(&r, "git status", "clean", false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x13_equal_calls_are_counted),
		cmocka_unit_test(x13_two_alternating_calls_are_a_loop_too),
		cmocka_unit_test(another_result_or_argument_is_another_call),
		cmocka_unit_test(a_change_of_files_starts_afresh),
		cmocka_unit_test(far_apart_is_no_repetition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
