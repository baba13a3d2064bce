/*
 * test_report.c - what an agent's report must have, what is put right, and how it is cut (A4, X7,
 * T4).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "handoff/report.h"

static struct json_object *parse(const char *text)
{
	struct json_object *value = NULL;
	struct err err = ERR_INIT;
	if (json_parse(text, strlen(text), &value, &err) < 0)
		fail_msg("%s in %s", err.message, text);
	return value;
}

static void expect_report(const char *input, const char *want)
{
	AUTO_JSON struct json_object *value = parse(input);
	AUTO_JSON struct json_object *report = NULL;
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	if (report_check(value, NULL, &report, &err) < 0)
		fail_msg("%s: %s", input, err.message);
	json_write(&text, report);
	assert_string_equal(text.data, want);
}

static void expect_error(const char *input, const char *data_schema, const char *part)
{
	AUTO_JSON struct json_object *value = parse(input);
	AUTO_JSON struct json_object *schema = data_schema ? parse(data_schema) : NULL;
	struct json_object *report = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(report_check(value, schema, &report, &err), -1);
	assert_null(report);
	if (!strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
}

#define EMPTY_LISTS                                                                                \
	"\"findings\":[],\"changed_files\":[],\"commits\":[],\"tests\":[],\"questions\":[]"

static void test_lists_are_always_there(void **state)
{
	expect_report("{\"status\":\"done\",\"summary\":\"s\"}",
		      "{\"status\":\"done\",\"summary\":\"s\"," EMPTY_LISTS "}");
}

static void test_a_whole_report_is_unchanged(void **state)
{
	static const char text[] =
		"{\"status\":\"partial\",\"summary\":\"two of "
		"three\",\"findings\":[{\"file\":\"a.c\","
		"\"line\":12,\"severity\":\"high\",\"category\":\"bug\",\"claim\":\"c\","
		"\"evidence\":\"e\",\"suggestion\":\"s\"}],\"changed_files\":[\"a.c\",\"b.c\"],"
		"\"commits\":[\"0123abc\"],\"tests\":[{\"command\":\"make check\","
		"\"result\":\"passed\",\"note\":\"n\"}],\"questions\":[\"which?\"]}";
	expect_report(text, text);
}

/* What models really send: JSON in strings, one string for a list, null, quoted numbers, own words.
 */
static void test_what_is_plainly_meant_is_put_right(void **state)
{
	expect_report("{\"status\":\"Completed\",\"summary\":\"s\",\"findings\":null,"
		      "\"changed_files\":\"a.c\",\"commits\":\"\",\"tests\":null,\"questions\":[]}",
		      "{\"status\":\"done\",\"summary\":\"s\",\"changed_files\":[\"a.c\"],"
		      "\"commits\":[],\"questions\":[],\"findings\":[],\"tests\":[]}");
	expect_report(
		"{\"status\":\"done\",\"summary\":\"s\",\"findings\":\"[{\\\"claim\\\":\\\"c\\\","
		"\\\"line\\\":\\\"7\\\",\\\"severity\\\":\\\"HIGH\\\",\\\"file\\\":null}]\","
		"\"changed_files\":[],\"commits\":[],\"tests\":{\"command\":\"t\","
		"\"result\":\"PASS\"},\"questions\":[]}",
		"{\"status\":\"done\",\"summary\":\"s\",\"findings\":[{\"claim\":\"c\",\"line\":7,"
		"\"severity\":\"high\"}],\"changed_files\":[],\"commits\":[],"
		"\"tests\":[{\"command\":\"t\",\"result\":\"passed\"}],\"questions\":[]}");
}

static void test_members_unknown_to_us_are_kept(void **state)
{
	expect_report("{\"status\":\"done\",\"summary\":\"s\"," EMPTY_LISTS ",\"risk\":\"low\"}",
		      "{\"status\":\"done\",\"summary\":\"s\"," EMPTY_LISTS ",\"risk\":\"low\"}");
}

static void test_errors_name_the_field(void **state)
{
	expect_error("[]", NULL, "JSON object");
	expect_error("\"text\"", NULL, "JSON object");
	expect_error("{\"summary\":\"s\"}", NULL, "status");
	expect_error("{\"status\":\"done\"}", NULL, "summary");
	expect_error("{\"status\":\"done\",\"summary\":\" \\n\"}", NULL, "/summary");
	expect_error("{\"status\":\"great\",\"summary\":\"s\"}", NULL, "status");
	expect_error("{\"status\":\"done\",\"summary\":7}", NULL, "summary");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"findings\":[{\"file\":\"a\"}]}",
		     NULL, "claim");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"findings\":[\"text\"]}", NULL,
		     "findings/0");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"findings\":[{\"claim\":\"c\","
		     "\"line\":-3}]}",
		     NULL, "line");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"changed_files\":[1]}", NULL,
		     "changed_files/0");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"tests\":[{\"command\":\"t\","
		     "\"result\":\"maybe\"}]}",
		     NULL, "result");
}

#define DATA_SCHEMA                                                                                \
	"{\"type\":\"object\",\"properties\":{\"score\":{\"type\":\"integer\"}},"                  \
	"\"required\":[\"score\"]}"

static void test_data_is_checked_against_its_schema(void **state)
{
	expect_error("{\"status\":\"done\",\"summary\":\"s\"}", DATA_SCHEMA, "data");
	expect_error("{\"status\":\"done\",\"summary\":\"s\",\"data\":{\"score\":\"x\"}}",
		     DATA_SCHEMA, "score");
	AUTO_JSON struct json_object *schema = parse(DATA_SCHEMA);
	AUTO_JSON struct json_object *value =
		parse("{\"status\":\"done\",\"summary\":\"s\",\"data\":\"{\\\"score\\\":5}\"}");
	AUTO_JSON struct json_object *report = NULL;
	assert_int_equal(report_check(value, schema, &report, NULL), 0);
	assert_int_equal(json_i64(json_obj(report, "data"), "score", 0), 5);
	/* The input is the conversation's: it stays as the model wrote it. */
	assert_non_null(json_str(value, "data", NULL));
}

static void test_schema_is_what_is_checked(void **state)
{
	AUTO_FREE char *plain = report_schema(NULL);
	AUTO_JSON struct json_object *schema = parse(plain);
	assert_int_equal(json_len(json_arr(schema, "required")), 2);
	assert_false(json_has(json_obj(schema, "properties"), "data"));
	AUTO_JSON struct json_object *data = parse(DATA_SCHEMA);
	AUTO_FREE char *with_data = report_schema(data);
	AUTO_JSON struct json_object *schema2 = parse(with_data);
	assert_int_equal(json_len(json_arr(schema2, "required")), 3);
	assert_true(json_has(json_obj(json_obj(schema2, "properties"), "data"), "required"));
	AUTO_FREE char *again = report_schema(NULL); /* one call leaves nothing behind */
	assert_string_equal(again, plain);
}

/* ---- bounds ---- */

static struct json_object *large_report(int findings, size_t evidence)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *log = mem_alloc(evidence + 1);
	memset(log, 'e', evidence);
	buf_adds(&text, "{\"status\":\"done\",\"summary\":\"the summary\",\"findings\":[");
	for (int i = 0; i < findings; i++)
		buf_addf(&text,
			 "%s{\"file\":\"f%d.c\",\"line\":%d,\"claim\":\"c\",\"evidence\":\"%s\"}",
			 i ? "," : "", i, i, log);
	buf_adds(&text, "]}");
	return parse(text.data);
}

static size_t size_of(struct json_object *value)
{
	AUTO_BUF struct buf text = BUF_INIT;
	json_write(&text, value);
	return text.len;
}

static void test_a_report_that_fits_is_the_same(void **state)
{
	AUTO_JSON struct json_object *report = large_report(3, 10);
	AUTO_JSON struct json_object *bounded = report_bound(report, 2000, "report.json");
	assert_ptr_not_equal(report, bounded);
	assert_true(json_object_equal(report, bounded));
	assert_false(json_has(bounded, "truncated"));
}

static void test_every_shape_fits_its_bound(void **state)
{
	static const struct {
		int findings;
		size_t evidence, tokens;
	} cases[] = {{1, 100000, 2000}, {500, 20, 2000},  {40, 3000, 2000},
		     {40, 3000, 200},	{2000, 2000, 50}, {1, 100000, 100}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_JSON struct json_object *report =
			large_report(cases[i].findings, cases[i].evidence);
		AUTO_JSON struct json_object *bounded =
			report_bound(report, cases[i].tokens, "results:report.json");
		size_t most = MAX(cases[i].tokens * 4, (size_t)400);
		if (size_of(bounded) > most)
			fail_msg("case %zu: %zu bytes", i, size_of(bounded));
		assert_true(json_flag(bounded, "truncated", false));
		assert_string_equal(json_str(bounded, "whole", ""), "results:report.json");
		assert_string_equal(json_str(bounded, "summary", ""), "the summary");
		assert_string_equal(json_str(bounded, "status", ""), "done");
		assert_true(json_len(json_arr(report, "findings")) == (size_t)cases[i].findings);
	}
}

/* T4: head and tail are kept, of strings and of lists, and the loss is told. */
static void test_head_and_tail_are_kept(void **state)
{
	AUTO_JSON struct json_object *report = large_report(500, 20);
	AUTO_JSON struct json_object *bounded = report_bound(report, 1000, NULL);
	struct json_object *findings = json_arr(bounded, "findings");
	size_t n = json_len(findings);
	assert_true(n >= 2 && n < 500);
	assert_int_equal(json_i64(json_at(findings, 0), "line", -1), 0);
	assert_int_equal(json_i64(json_at(findings, n - 1), "line", -1), 499);
	assert_int_equal(json_i64(json_obj(bounded, "left_out"), "findings", 0), 500 - n);
	assert_false(json_has(bounded, "whole"));

	AUTO_BUF struct buf text = BUF_INIT;
	buf_adds(&text, "{\"status\":\"done\",\"summary\":\"HEAD ");
	for (int i = 0; i < 5000; i++)
		buf_adds(&text, "\xc3\xa4 word ");
	buf_adds(&text, "TAIL\"}");
	AUTO_JSON struct json_object *longer = parse(text.data);
	AUTO_JSON struct json_object *cut = report_bound(longer, 1000, "results:1");
	const char *summary = json_str(cut, "summary", "");
	assert_int_equal(strncmp(summary, "HEAD", 4), 0);
	assert_string_equal(summary + strlen(summary) - 4, "TAIL");
	assert_true(strlen(summary) > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_always_there),
		cmocka_unit_test(test_a_whole_report_is_unchanged),
		cmocka_unit_test(test_what_is_plainly_meant_is_put_right),
		cmocka_unit_test(test_members_unknown_to_us_are_kept),
		cmocka_unit_test(test_errors_name_the_field),
		cmocka_unit_test(test_data_is_checked_against_its_schema),
		cmocka_unit_test(test_schema_is_what_is_checked),
		cmocka_unit_test(test_a_report_that_fits_is_the_same),
		cmocka_unit_test(test_every_shape_fits_its_bound),
		cmocka_unit_test(test_head_and_tail_are_kept),
	};
	return cmocka_run_group_tests_name("handoff/report", tests, NULL, NULL);
}
