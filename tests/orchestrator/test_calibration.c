/*
 * test_calibration.c - W6: the file of what runs learned: merged, bounded, and never in the way.
 */
#include "config_rig.h"

#include <math.h>

#include "base/log.h"
#include "orchestrator/calibration.h"

#define FILE_NAME "state/baton/calibration.json"

static const struct model model = {.provider = (char *)"p", .name = (char *)"m"};

static struct json_object *parsed(const char *text)
{
	struct json_object *doc = NULL;

	assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
	return doc;
}

static void learn_and_save(const char *rates)
{
	struct calibration c = {.loaded = false};
	AUTO_JSON struct json_object *doc = parsed(rates);

	calibration_learn(&c, &model, doc);
	calibration_save(&c);
	calibration_release(&c);
}

/* The next run's view: -1 if the kind is not known. */
static double rate_of(const char *kind, int64_t *ret_tokens)
{
	struct calibration c = {.loaded = false};
	AUTO_JSON struct json_object *rates = calibration_recall(&c, &model);
	struct json_object *entry = json_obj(rates, kind);

	if (ret_tokens)
		*ret_tokens = json_i64(entry, "tokens", 0);
	calibration_release(&c);
	return json_double(entry, "rate", -1);
}

static void w6_rates_are_kept_for_the_next_run(void **state)
{
	int64_t tokens;

	assert_true(rate_of("digits", NULL) < 0);
	learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":3000}}");
	assert_true(fabs(rate_of("digits", &tokens) - 1.4) < 1e-9);
	assert_int_equal(tokens, 3000);
}

static void w6_runs_are_averaged_by_tokens(void **state)
{
	int64_t tokens;

	learn_and_save(
		"{\"digits\":{\"rate\":1.0,\"tokens\":3000},\"han\":{\"rate\":2,\"tokens\":9}}");
	learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":1000}}");
	assert_true(fabs(rate_of("digits", &tokens) - 1.1) < 1e-9);
	assert_int_equal(tokens, 4000);
	assert_true(fabs(rate_of("han", NULL) - 2) < 1e-9);
}

/* What is old has a bounded weight: a tokenizer that changed behind its name is followed. */
static void old_rates_do_not_weigh_for_ever(void **state)
{
	for (int i = 0; i < 50; i++)
		learn_and_save("{\"digits\":{\"rate\":1.0,\"tokens\":900000}}");
	for (int i = 0; i < 6; i++)
		learn_and_save("{\"digits\":{\"rate\":1.5,\"tokens\":90000}}");
	assert_true(rate_of("digits", NULL) > 1.45);
}

/* Another run may have ended since this one read the file. */
static void a_file_that_changed_meanwhile_is_merged_into(void **state)
{
	struct calibration c = {.loaded = false};
	AUTO_JSON struct json_object *doc = parsed("{\"hex\":{\"rate\":1.3,\"tokens\":500}}");

	json_object_put(calibration_recall(&c, &model));
	learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":3000}}");
	calibration_learn(&c, &model, doc);
	calibration_save(&c);
	calibration_release(&c);
	assert_true(rate_of("digits", NULL) > 1 && rate_of("hex", NULL) > 1);
}

static int64_t buffer_of(const char *role)
{
	struct calibration c = {.loaded = false};
	int64_t buffer = calibration_buffer(&c, &model, role);

	calibration_release(&c);
	return buffer;
}

/* Answers of 1 to n times `step` tokens. */
static void answer(const char *role, int n, int64_t step)
{
	struct calibration c = {.loaded = false};

	for (int i = 1; i <= n; i++)
		calibration_response(&c, &model, role, i * step);
	calibration_save(&c);
	calibration_release(&c);
}

/* W3, `auto`: the 99th percentile of a role's answers and 20 %, from the second run on. */
static void w3_the_buffer_is_learned(void **state)
{
	assert_int_equal(buffer_of("lead"), 0);
	answer("lead", 199, 10);
	assert_int_equal(buffer_of("lead"), 0); /* too few */
	answer("lead", 1, 10);
	assert_in_range(buffer_of("lead"), 1970 * 12 / 10, 1990 * 12 / 10 * 110 / 100);
	assert_int_equal(buffer_of("worker"), 0);
	answer("worker", 300, 100);
	assert_in_range(buffer_of("worker"), 29700 * 12 / 10, 30000 * 12 / 10 * 110 / 100);
	learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":3000}}");
	assert_true(buffer_of("worker") > 0 && rate_of("digits", NULL) > 1);
}

/* What is old weighs less: a role whose answers became short is followed. */
static void w3_old_answers_fade(void **state)
{
	answer("lead", 20000, 100);
	for (int i = 0; i < 8; i++)
		answer("lead", 20000, 0 + 1);
	assert_true(buffer_of("lead") < 100000);
	assert_true(buffer_of("lead") > 20000);
}

static void w3_lengths_of_a_damaged_file(void **state)
{
	rig_write(state, FILE_NAME,
		  "{\"version\":1,\"models\":{},\"responses\":{\"p/m\":{\"lead\":{\"-3\":900,"
		  "\"9999\":900,\"x\":900,\"8\":-4,\"16\":\"many\"},\"b\":7},\"q\":[1]}}");
	assert_int_equal(buffer_of("lead"), 0);
	answer("lead", 300, 10);
	assert_true(buffer_of("lead") > 3000);
}

static void damaged_files_are_passed_over_and_replaced(void **state)
{
	static const char *const damaged[] = {
		"",
		"{\"version\":1,\"models\"",
		"[1,2]",
		"7",
		"{\"models\":{}}",
		"{\"version\":1,\"models\":[]}",
		"\xff\xfe\x01",
		"{\"version\":1,\"models\":{\"p/m\":[3]}}",
		"{\"version\":1,\"models\":{\"p/m\":{\"digits\":\"x\"}}}",
	};

	log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		rig_write(state, FILE_NAME, damaged[i]);
		assert_true(rate_of("digits", NULL) < 0);
		learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":3000}}");
		assert_true(rate_of("digits", NULL) > 1.39);
	}
}

static void a_file_of_a_later_version_is_left_alone(void **state)
{
	static const char later[] = "{\"version\":2,\"models\":{\"p/m\":{\"a\":[1]}}}";
	AUTO_FREE char *path = rig_path(state, FILE_NAME);
	AUTO_BUF struct buf text = BUF_INIT;

	log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	rig_write(state, FILE_NAME, later);
	assert_true(rate_of("a", NULL) < 0);
	learn_and_save("{\"digits\":{\"rate\":1.4,\"tokens\":3000}}");
	assert_int_equal(file_read(AT_FDCWD, path, 1000, &text, NULL), 0);
	assert_string_equal(buf_str(&text), later);
}

/* The result document comes from a process that may be in anybody's hands. */
static void rates_without_sense_are_not_kept(void **state)
{
	AUTO_FREE char *path = rig_path(state, FILE_NAME);
	AUTO_BUF struct buf text = BUF_INIT;

	learn_and_save(
		"{\"digits\":{\"rate\":1e9,\"tokens\":3000},\"hex\":{\"rate\":1,\"tokens\":-4},"
		"\"Bad Name\":{\"rate\":1,\"tokens\":9},\"\":{\"rate\":1,\"tokens\":9},"
		"\"han\":[1],\"kana\":{\"rate\":1.25,\"tokens\":9223372036854775807}}");
	assert_true(rate_of("kana", NULL) > 1.2);
	assert_int_equal(file_read(AT_FDCWD, path, 4000, &text, NULL), 0);
	assert_null(strstr(buf_str(&text), "digits"));
	assert_null(strstr(buf_str(&text), "hex"));
	assert_null(strstr(buf_str(&text), "Bad"));
	assert_null(strstr(buf_str(&text), "han"));
}

static void kinds_and_models_are_bounded(void **state)
{
	struct calibration c = {.loaded = false};
	AUTO_FREE char *path = rig_path(state, FILE_NAME);
	AUTO_JSON struct json_object *file = NULL;

	for (int i = 0; i < 200; i++) {
		AUTO_FREE char *name = mem_printf("m%d", i);
		AUTO_FREE char *rates = mem_printf("{\"kind%d\":{\"rate\":1.1,\"tokens\":50}}", i);
		AUTO_JSON struct json_object *doc = parsed(rates);
		struct model other = {.provider = (char *)"p", .name = name};

		calibration_learn(&c, &other, doc);
		calibration_learn(&c, &model, doc);
	}
	calibration_save(&c);
	calibration_release(&c);
	assert_int_equal(json_parse_file(path, 1 << 20, &file, NULL), 0);
	struct json_object *models = json_obj(file, "models");
	assert_int_equal(json_object_object_length(models), 64);
	assert_int_equal(json_object_object_length(json_obj(models, "p/m")), 32);
	assert_non_null(json_obj(models, "p/m199")); /* the newest stay */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(w6_rates_are_kept_for_the_next_run),
		rig_test(w6_runs_are_averaged_by_tokens),
		rig_test(old_rates_do_not_weigh_for_ever),
		rig_test(a_file_that_changed_meanwhile_is_merged_into),
		rig_test(damaged_files_are_passed_over_and_replaced),
		rig_test(w3_the_buffer_is_learned),
		rig_test(w3_old_answers_fade),
		rig_test(w3_lengths_of_a_damaged_file),
		rig_test(a_file_of_a_later_version_is_left_alone),
		rig_test(rates_without_sense_are_not_kept),
		rig_test(kinds_and_models_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
