/*
 * Answers that betray an overflow by their numbers (wire.md 3, rows 16, 26, 39, 40; trap 84).
 */
#include "fixture.h"

#include "agent/model/overflow.h"

static struct stream_answer numbers(int64_t prompt, int64_t output, enum stop_reason stop)
{
	return (struct stream_answer){
		.stop = stop,
		.usage = {.input = prompt, .output = output, .known = true},
	};
}

static void test_rows(void **state)
{
	static const struct {
		int64_t prompt, output;
		enum stop_reason stop;
		int64_t window, estimate;
		bool want;
		int64_t learned;
	} rows[] = {
		/* row 16: above the window, no output */
		{9000, 0, STOP_END, 8192, 9100, true, 0},
		/* row 39: accepted silently; or said by the finish reason */
		{210000, 50, STOP_END, 204800, 209000, true, 0},
		{1000, 50, STOP_WINDOW, 204800, 1000, true, 0},
		/* row 40: cut to fill the window */
		{131000, 0, STOP_MAX_TOKENS, 131072, 131000, true, 0},
		{120000, 0, STOP_MAX_TOKENS, 131072, 131000, false, 0},
		/* row 26, trap 84 */
		{3900, 196, STOP_END, 32768, 9000, true, 4096},
		{3900, 197, STOP_END, 32768, 9000, false, 0},
		{3900, 196, STOP_END, 32768, 4000, false, 0}, /* the estimate agrees */
		/* ordinary ones */
		{9000, 300, STOP_END, 200000, 9100, false, 0},
		{9000, 300, STOP_END, 0, 0, false, 0},
		{9000, 0, STOP_END, 200000, 9100, false, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stream_answer a = numbers(rows[i].prompt, rows[i].output, rows[i].stop);
		int64_t learned = -1;
		bool hit = answer_hints_overflow(&a, rows[i].window, rows[i].estimate, &learned);
		if (hit != rows[i].want)
			fail_msg("row %zu", i);
		assert_int_equal(learned, rows[i].learned);
	}
}

static void test_no_usage_hints_nothing(void **state)
{
	struct stream_answer a = {.stop = STOP_END};
	int64_t learned;
	assert_false(answer_hints_overflow(&a, 100, 5000, &learned));
}

/* The cached part counts (trap 82). */
static void test_prompt_is_the_sum(void **state)
{
	struct stream_answer a = numbers(100, 5, STOP_END);
	int64_t learned;
	a.usage.cache_read = 9000;
	assert_true(answer_hints_overflow(&a, 8192, 9100, &learned));
	assert_false(answer_hints_overflow(&a, 16384, 9100, &learned));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_no_usage_hints_nothing),
		cmocka_unit_test(test_prompt_is_the_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
