/*
 * test_estimate.c - W6: kinds of text, and rates that learn. Trap 86: dense text is not four bytes
 * a token.
 */
#include "agent_fixture.h"

#include "agent/estimate.h"
#include "base/buf.h"
#include "base/memory.h"

static struct text_counts counts_of(const char *text)
{
	struct text_counts c = {.images = 0};

	estimate_count(&c, text, strlen(text));
	return c;
}

static enum text_kind main_kind(const char *text)
{
	struct text_counts c = counts_of(text);
	enum text_kind best = TEXT_PROSE;

	for (enum text_kind k = TEXT_PROSE; k < TEXT_KINDS; k++)
		if (c.bytes[k] > c.bytes[best])
			best = k;
	return best;
}

static void w6_kinds(void **state)
{
	assert_int_equal(main_kind("The tests fail because the parser reads one byte too many, and "
				   "nobody noticed until yesterday."),
			 TEXT_PROSE);
	assert_int_equal(
		main_kind("for (i = 0; i < n; i++) {\n\tif (!a[i].x)\n\t\treturn -1;\n}\n"),
		TEXT_CODE);
	assert_int_equal(
		main_kind("{\"a\":[1,2,{\"b\":\"c\"}],\"name\":\"x\",\"list\":[\"y\",\"z\"]}"),
		TEXT_JSON);
	assert_int_equal(main_kind("日本語のテキストはトークンが多い。"), TEXT_CJK);
	assert_int_equal(
		main_kind("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
		TEXT_DENSE);
	assert_int_equal(
		main_kind("00000010 7f 45 4c 46 02 01 01 00 00 00 00 00 03 00 3e 00 01 00"),
		TEXT_DENSE);
}

static void every_byte_is_counted_once(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct text_counts c = {.images = 0};
	int64_t sum = 0;

	for (int i = 0; i < 3000; i++)
		buf_addf(&text, "%d é {\"k\": \"%x%x%x%x%x\"} word\n", i, i, i * 7, i * 13, i * 17,
			 i);
	estimate_count(&c, text.data, text.len);
	for (size_t k = 0; k < TEXT_KINDS; k++) {
		assert_true(c.bytes[k] >= 0);
		sum += c.bytes[k];
	}
	assert_int_equal(sum, text.len);
}

/* Trap 86: at about 1.5 characters a token. */
static void trap_86_dense_and_cjk_are_not_underestimated(void **state)
{
	struct estimator e;
	struct text_counts hex =
		counts_of("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
			  "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752");
	struct text_counts cjk = counts_of("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字");

	estimator_init(&e);
	assert_true(estimate_tokens(&e, &hex) >= 128 * 10 / 18);
	assert_true(estimate_tokens(&e, &cjk) >= 20 * 10 / 15);
}

/* X8 */
static void never_below_an_eighth_of_the_bytes(void **state)
{
	struct estimator e;
	struct text_counts c = counts_of("some words in a row, nothing else to see here at all");

	estimator_init(&e);
	for (size_t k = 0; k < TEXT_KINDS; k++)
		e.rate[k] = 0.001;
	assert_int_equal(estimate_tokens(&e, &c), c.bytes[TEXT_PROSE] / 8);
}

static void w6_images_count_2000(void **state)
{
	struct estimator e;
	struct text_counts c = {.images = 3};

	estimator_init(&e);
	assert_int_equal(estimate_tokens(&e, &c), 6000);
}

static void w6_error_shrinks_with_each_usage(void **state)
{
	struct estimator e;
	struct text_counts c = {.bytes = {[TEXT_CODE] = 60000, [TEXT_JSON] = 20000}};
	int64_t truth = 34000, before, after;

	estimator_init(&e);
	before = llabs(estimate_tokens(&e, &c) - truth);
	estimator_learn(&e, &c, truth);
	after = llabs(estimate_tokens(&e, &c) - truth);
	assert_true(after < before);
	for (int i = 0; i < 20; i++)
		estimator_learn(&e, &c, truth);
	assert_true(llabs(estimate_tokens(&e, &c) - truth) < truth / 50);
}

static void learning_is_bounded(void **state)
{
	struct estimator e, fresh;
	struct text_counts c = {.bytes = {[TEXT_PROSE] = 10000}};
	struct text_counts little = {.bytes = {[TEXT_PROSE] = 50}};

	estimator_init(&e);
	estimator_init(&fresh);
	estimator_learn(&e, &little, 5000);
	assert_true(e.rate[TEXT_PROSE] <= fresh.rate[TEXT_PROSE]); /* too little to learn from */
	for (int i = 0; i < 100; i++)
		estimator_learn(&e, &c, 10000000);
	assert_true(e.rate[TEXT_PROSE] <= fresh.rate[TEXT_PROSE] * 2.51);
	for (int i = 0; i < 100; i++)
		estimator_learn(&e, &c, 1);
	assert_true(e.rate[TEXT_PROSE] >= fresh.rate[TEXT_PROSE] * 0.49);
	assert_true(e.rate[TEXT_CODE] <= fresh.rate[TEXT_CODE]); /* not in the text: not touched */
	assert_true(e.rate[TEXT_CODE] >= fresh.rate[TEXT_CODE]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w6_kinds),
		cmocka_unit_test(every_byte_is_counted_once),
		cmocka_unit_test(trap_86_dense_and_cjk_are_not_underestimated),
		cmocka_unit_test(never_below_an_eighth_of_the_bytes),
		cmocka_unit_test(w6_images_count_2000),
		cmocka_unit_test(w6_error_shrinks_with_each_usage),
		cmocka_unit_test(learning_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
