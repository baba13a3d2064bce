/*
 * test_breaker.c - when compaction gives up (H10).
 */
#include "tests/base/test_base.h"

#include "agent/context/breaker.h"

static void test_three_failures_in_a_row(void **state)
{
	struct breaker b;

	breaker_init(&b);
	breaker_failed(&b, "one");
	breaker_failed(&b, "two");
	breaker_succeeded(&b, 5);
	breaker_failed(&b, "one");
	breaker_failed(&b, "two");
	assert_int_equal(b.state, BREAKER_CLOSED);
	breaker_failed(&b, "the third");
	assert_int_equal(b.state, BREAKER_OPEN);
	assert_string_equal(b.why, "the third");
}

static void test_three_refills(void **state)
{
	struct breaker b;

	breaker_init(&b);
	breaker_wanted(&b, 10);
	breaker_succeeded(&b, 10);
	breaker_wanted(&b, 11); /* one */
	breaker_succeeded(&b, 11);
	breaker_wanted(&b, 20); /* long after: no refill */
	breaker_succeeded(&b, 20);
	for (int64_t round = 21; round < 23; round++) {
		breaker_wanted(&b, round);
		assert_int_equal(b.state, BREAKER_CLOSED);
		breaker_succeeded(&b, round);
	}
	breaker_wanted(&b, 23);
	assert_int_equal(b.state, BREAKER_OPEN);
	assert_non_null(strstr(b.why, "full again"));
}

/* X3, trap 1: judged by the next real usage. */
static void test_two_without_effect(void **state)
{
	struct breaker b;

	breaker_init(&b);
	breaker_judged(&b, true); /* nothing to judge */
	breaker_compacted(&b);
	breaker_judged(&b, true);
	breaker_judged(&b, true); /* only the first request counts */
	breaker_compacted(&b);
	breaker_judged(&b, false);
	breaker_compacted(&b);
	breaker_judged(&b, true);
	assert_int_equal(b.state, BREAKER_CLOSED);
	breaker_compacted(&b);
	breaker_judged(&b, true);
	assert_int_equal(b.state, BREAKER_OPEN);
}

/* Trap 1: one that we call a success and one that we call a failure are two in a row all the same. */
static void test_futile_counts_failures_too(void **state)
{
	struct breaker b;

	breaker_init(&b);
	breaker_succeeded(&b, 1);
	breaker_compacted(&b);
	breaker_judged(&b, true);
	breaker_failed(&b, "what is left is still above the threshold");
	breaker_compacted(&b);
	assert_int_equal(b.state, BREAKER_CLOSED);
	breaker_judged(&b, true);
	assert_int_equal(b.state, BREAKER_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_failures_in_a_row),
		cmocka_unit_test(test_three_refills),
		cmocka_unit_test(test_two_without_effect),
		cmocka_unit_test(test_futile_counts_failures_too),
	};
	return cmocka_run_group_tests_name("agent/breaker", tests, NULL, NULL);
}
