/*
 * test_estimate.c - W6: kinds of runs, rates that learn, and their bounds. Trap 86: dense text is
 * not four bytes a token. X8: nothing has eight bytes a token.
 */
#include "agent_fixture.h"

#include <math.h>

#include "agent/estimate.h"
#include "base/buf.h"
#include "base/memory.h"

static struct text_counts counts_of(const char *text)
{
	struct text_counts c = {.images = 0};

	estimate_count(&c, text, strlen(text));
	return c;
}

static void assert_bytes(const char *text, enum text_kind kind, int64_t bytes)
{
	struct text_counts c = counts_of(text);

	if (c.bytes[kind] != bytes)
		fail_msg("'%s': %d bytes of %s, not %d", text, (int)c.bytes[kind],
			 text_kind_name(kind), (int)bytes);
}

static void w6_kinds_of_runs(void **state)
{
	assert_bytes("The tests fail", TEXT_WORDS, 12);
	assert_bytes("The tests fail", TEXT_SPACE, 2);
	assert_bytes("json_object_get", TEXT_WORDS, 4);
	assert_bytes("json_object_get", TEXT_NAMES, 9);
	assert_bytes("json_object_get", TEXT_JOINTS, 2);
	assert_bytes("readHTTPHeader", TEXT_WORDS, 4);
	assert_bytes("readHTTPHeader", TEXT_CAPS, 4);
	assert_bytes("readHTTPHeader", TEXT_NAMES, 6);
	assert_bytes("12 of 345", TEXT_DIGITS, 5);
	assert_bytes("if (a) {\n\tb;\n}\n", TEXT_ENDS, 3);
	assert_bytes("a\n\n\tb\n", TEXT_SPACE, 4);
	assert_bytes("日本語のテキスト。", TEXT_HAN, 12);
	assert_bytes("日本語のテキスト。", TEXT_KANA, 15);
	assert_bytes("한국어", TEXT_HANGUL, 9);
	assert_bytes("größe, Привет", TEXT_LATIN, 4);
	assert_bytes("größe, Привет", TEXT_ALPHABETS, 12);
	assert_bytes("→ 🎉", TEXT_SYMBOLS, 7);
	assert_bytes("\x01\xff\xe6\x97", TEXT_SYMBOLS, 4);
}

static void w6_dense_runs(void **state)
{
	assert_bytes("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", TEXT_HEX,
		     64);
	assert_bytes("commit d9a2770f1b", TEXT_HEX, 10);
	assert_bytes("token sk9aQ2xLm4Zr8Tn1", TEXT_BASE64, 16);
	assert_bytes("shouldComponentUpdate2", TEXT_BASE64, 0);
	assert_bytes("/usr/share/python3/dist", TEXT_BASE64, 0);
	assert_bytes("20261130", TEXT_DIGITS, 8);
	assert_bytes("deadbeef", TEXT_WORDS, 8); /* may be a word */
}

static void every_byte_is_counted_once(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct text_counts c = {.images = 0};

	for (int i = 0; i < 3000; i++)
		buf_addf(&text, "%d é {\"k\": \"%x%x%x%x%x\"} word 漢\xe6 %c\n\n\t\t==== ABc\x7f",
			 i, i, i * 7, i * 13, i * 17, i, i % 255 + 1);
	estimate_count(&c, text.data, text.len);
	for (size_t k = 0; k < TEXT_KINDS; k++)
		assert_true(c.bytes[k] >= 0 && c.units[k] >= 0);
	assert_int_equal(estimate_bytes(&c), text.len);
}

static void a_cut_character_is_not_read_past_the_end(void **state)
{
	static const char *const cut[] = {"\xe6\x97", "\xf0\x9f\x8e", "\xc3", "\xe3\x80"};

	for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
		/* Exactly as large as the text, so that a sanitizer sees a byte too many. */
		size_t n = strlen(cut[i]);
		AUTO_FREE char *exact = mem_alloc(n);
		struct text_counts c = {.images = 0};

		memcpy(exact, cut[i], n);
		estimate_count(&c, exact, n);
		assert_int_equal(estimate_bytes(&c), n);
	}
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
static void x8_never_below_an_eighth_of_the_bytes(void **state)
{
	struct estimator e;
	struct text_counts c = counts_of("=========================================");

	estimator_init(&e);
	for (size_t k = 0; k < TEXT_KINDS; k++)
		e.rate[k] = 0.001;
	assert_int_equal(estimate_tokens(&e, &c), estimate_bytes(&c) / 8);
}

static void w6_images_count_2000(void **state)
{
	struct estimator e;
	struct text_counts c = {.images = 3};

	estimator_init(&e);
	assert_int_equal(estimate_tokens(&e, &c), 6000);
}

/* A text of two kinds in any proportion, and what a tokenizer with the given rates makes of it. */
static struct text_counts mixed(int64_t words, int64_t digits)
{
	struct text_counts c = {.bytes = {[TEXT_WORDS] = words * 5, [TEXT_DIGITS] = digits * 2}};

	c.units[TEXT_WORDS] = words * ESTIMATE_UNIT;
	c.units[TEXT_DIGITS] = digits * ESTIMATE_UNIT;
	return c;
}

static int64_t told(const struct text_counts *c, double words, double digits)
{
	return (int64_t)((double)c->units[TEXT_WORDS] * words +
			 (double)c->units[TEXT_DIGITS] * digits) /
	       ESTIMATE_UNIT;
}

static double error_of(const struct estimator *e, const struct text_counts *c, int64_t truth)
{
	return fabs((double)(estimate_tokens(e, c) - truth)) / (double)truth;
}

static void w6_error_shrinks_with_each_usage(void **state)
{
	struct estimator e;
	struct text_counts c = mixed(4000, 2000);
	int64_t truth = told(&c, 1.1, 1.5);
	double before;

	estimator_init(&e);
	before = error_of(&e, &c, truth);
	for (int i = 0; i < 5; i++) {
		double after;

		assert_true(estimator_learn(&e, &c, truth));
		after = error_of(&e, &c, truth);
		assert_true(after <= before);
		before = after;
	}
	assert_true(before < 0.005);
}

/* Two usages of different mixes tell whose rate is off; one alone cannot. */
static void w6_the_kind_that_is_off_learns(void **state)
{
	struct estimator e;
	struct text_counts much = mixed(500, 4000), little = mixed(5000, 200);

	estimator_init(&e);
	for (int i = 0; i < 4; i++) {
		estimator_learn(&e, &much, told(&much, 1.0, 1.7));
		estimator_learn(&e, &little, told(&little, 1.0, 1.7));
	}
	assert_true(fabs(e.rate[TEXT_WORDS] - 1.0) < 0.03);
	assert_true(fabs(e.rate[TEXT_DIGITS] - 1.7) < 0.06);
}

static void small_texts_teach_nothing(void **state)
{
	struct estimator e, fresh;
	struct text_counts little = mixed(150, 20);

	estimator_init(&e);
	estimator_init(&fresh);
	assert_false(estimator_learn(&e, &little, 500));
	assert_memory_equal(&e, &fresh, sizeof(e));
}

/* X8: more than 8 bytes a token, or less than one, is no text's. */
static void x8_a_usage_that_lies_teaches_nothing(void **state)
{
	struct estimator e, fresh;
	struct text_counts c = mixed(4000, 2000);
	const int64_t lies[] = {
		-5, 0, 1, estimate_bytes(&c) / 8 - 1, estimate_bytes(&c) + 1, INT64_MAX / 2};

	estimator_init(&e);
	estimator_init(&fresh);
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		assert_false(estimator_learn(&e, &c, lies[i]));
	assert_memory_equal(&e, &fresh, sizeof(e));
}

static void learning_is_bounded(void **state)
{
	struct estimator e;
	struct text_counts c = mixed(4000, 2000);

	estimator_init(&e);
	for (int i = 0; i < 200; i++)
		estimator_learn(&e, &c, estimate_bytes(&c));
	for (size_t k = 0; k < TEXT_KINDS; k++)
		assert_true(e.rate[k] <= ESTIMATE_RATE_HIGH);
	for (int i = 0; i < 200; i++)
		estimator_learn(&e, &c, estimate_bytes(&c) / 8 + 1);
	for (size_t k = 0; k < TEXT_KINDS; k++)
		assert_true(e.rate[k] >= ESTIMATE_RATE_LOW);
	/* And it is not stuck there. */
	for (int i = 0; i < 60; i++)
		estimator_learn(&e, &c, told(&c, 1, 1));
	assert_true(error_of(&e, &c, told(&c, 1, 1)) < 0.03);
}

/* One usage never moves an estimate by more than it was off, nor above twice. */
static void one_usage_moves_within_bounds(void **state)
{
	struct estimator e;
	struct text_counts c = mixed(4000, 2000);
	int64_t before;

	estimator_init(&e);
	before = estimate_tokens(&e, &c);
	estimator_learn(&e, &c, estimate_bytes(&c));
	assert_true(estimate_tokens(&e, &c) <= before * 2 + 2);
	estimator_init(&e);
	estimator_learn(&e, &c, estimate_bytes(&c) / 8 + 1);
	assert_true(estimate_tokens(&e, &c) >= before / 2 - 2);
}

static void w6_a_recalled_rate_counts_by_what_taught_it(void **state)
{
	struct estimator sure, unsure;

	estimator_init(&sure);
	estimator_init(&unsure);
	estimator_recall(&sure, TEXT_DIGITS, 1.6, 200000);
	estimator_recall(&unsure, TEXT_DIGITS, 1.6, 100);
	assert_true(fabs(sure.rate[TEXT_DIGITS] - 1.6) < 0.02);
	assert_true(unsure.rate[TEXT_DIGITS] < sure.rate[TEXT_DIGITS] - 0.1);
	estimator_recall(&sure, TEXT_HAN, 1e9, 200000);
	assert_true(sure.rate[TEXT_HAN] <= ESTIMATE_RATE_HIGH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w6_kinds_of_runs),
		cmocka_unit_test(w6_dense_runs),
		cmocka_unit_test(every_byte_is_counted_once),
		cmocka_unit_test(a_cut_character_is_not_read_past_the_end),
		cmocka_unit_test(trap_86_dense_and_cjk_are_not_underestimated),
		cmocka_unit_test(x8_never_below_an_eighth_of_the_bytes),
		cmocka_unit_test(w6_images_count_2000),
		cmocka_unit_test(w6_error_shrinks_with_each_usage),
		cmocka_unit_test(w6_the_kind_that_is_off_learns),
		cmocka_unit_test(small_texts_teach_nothing),
		cmocka_unit_test(x8_a_usage_that_lies_teaches_nothing),
		cmocka_unit_test(learning_is_bounded),
		cmocka_unit_test(one_usage_moves_within_bounds),
		cmocka_unit_test(w6_a_recalled_rate_counts_by_what_taught_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
