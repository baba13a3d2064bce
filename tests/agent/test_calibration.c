/*
 * test_calibration.c - W6: what one agent learned helps the next one, and nothing odd harms it.
 */
#include "agent_fixture.h"

#include <math.h>

#include "agent/calibration.h"
#include "base/memory.h"

static struct json_object *parsed(const char *text)
{
	struct json_object *doc = NULL;

	assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
	return doc;
}

/* A log with many digits, and a tokenizer that takes each by itself. */
static struct text_counts digits(void)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct text_counts c = {.images = 0};

	for (int i = 0; i < 900; i++)
		buf_addf(&text, "%d:%d %d\n", i * 7919, i * 104729, i);
	estimate_count(&c, text.data, text.len);
	return c;
}

static void w6_what_was_learned_comes_back(void **state)
{
	struct estimator first, next, fresh;
	struct text_counts c = digits();
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_JSON struct json_object *rates = NULL;
	double truth, cold, warm;

	estimator_init(&first);
	estimator_init(&next);
	estimator_init(&fresh);
	truth = 1.5 * (double)estimate_tokens(&first, &c);
	for (int i = 0; i < 5; i++)
		estimator_learn(&first, &c, (int64_t)truth);
	calibration_write(&first, &out);
	rates = parsed(buf_str(&out));
	assert_int_equal(calibration_read(&next, rates), 0);
	cold = fabs((double)estimate_tokens(&fresh, &c) - truth) / truth;
	warm = fabs((double)estimate_tokens(&next, &c) - truth) / truth;
	assert_true(cold > 0.3 && warm < 0.05);
}

/* A rate that came from the file and met no text is not sent back: it would count twice. */
static void only_what_a_usage_taught_is_sent(void **state)
{
	struct estimator e;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_JSON struct json_object *rates = parsed("{\"han\":{\"rate\":1.2,\"tokens\":5000}}");
	struct text_counts c = digits();

	estimator_init(&e);
	assert_int_equal(calibration_read(&e, rates), 0);
	calibration_write(&e, &out);
	assert_string_equal(buf_str(&out), "{}");
	assert_true(estimator_learn(&e, &c, estimate_tokens(&e, &c)));
	buf_clear(&out);
	calibration_write(&e, &out);
	assert_null(strstr(buf_str(&out), "han"));
	assert_non_null(strstr(buf_str(&out), "\"digits\":{\"rate\":"));
}

static void entries_without_sense_are_passed_over(void **state)
{
	struct estimator e, fresh;
	AUTO_JSON struct json_object *rates = parsed(
		"{\"klingon\":{\"rate\":1.2,\"tokens\":5000},\"words\":7,\"names\":null,"
		"\"digits\":{\"rate\":\"much\",\"tokens\":10},\"hex\":{\"rate\":-1,\"tokens\":10},"
		"\"han\":{\"rate\":1.1,\"tokens\":0},\"kana\":{\"tokens\":10},\"caps\":[1]}");

	estimator_init(&e);
	estimator_init(&fresh);
	assert_int_equal(calibration_read(&e, rates), 8);
	assert_memory_equal(&e, &fresh, sizeof(e));
	assert_int_equal(calibration_read(&e, NULL), 0);
}

static void a_rate_out_of_bounds_is_bounded(void **state)
{
	struct estimator e;
	AUTO_JSON struct json_object *rates =
		parsed("{\"hex\":{\"rate\":1e300,\"tokens\":9223372036854775807},"
		       "\"han\":{\"rate\":1e-300,\"tokens\":100000}}");

	estimator_init(&e);
	calibration_read(&e, rates);
	for (size_t k = 0; k < TEXT_KINDS; k++)
		assert_true(e.rate[k] >= ESTIMATE_RATE_LOW && e.rate[k] <= ESTIMATE_RATE_HIGH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w6_what_was_learned_comes_back),
		cmocka_unit_test(only_what_a_usage_taught_is_sent),
		cmocka_unit_test(entries_without_sense_are_passed_over),
		cmocka_unit_test(a_rate_out_of_bounds_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
