/*
 * json: the reader's exact line between repairable and unfinished (traps 39, 89), getters, the
 * writer (traps 87, 89, 95), and the schema checker.
 */
#include "test_base.h"

#include <fcntl.h>
#include <math.h>

#include "base/json.h"
#include "base/text.h"

static struct json_object *parse(const char *s)
{
	struct json_object *doc = NULL;
	struct err err = ERR_INIT;
	if (json_parse(s, strlen(s), &doc, &err) < 0)
		fail_msg("'%s': %s", s, err.message);
	return doc;
}

static void check_round_trip(const char *in, const char *want)
{
	AUTO_JSON struct json_object *doc = parse(in);
	AUTO_BUF struct buf out = BUF_INIT;
	json_write(&out, doc);
	assert_string_equal(out.data, want);
}

static void check_refused(const char *in, size_t n, const char *message)
{
	struct json_object *doc = (struct json_object *)&doc;
	struct err err = ERR_INIT;
	assert_int_equal(json_parse(in, n, &doc, &err), -1);
	assert_ptr_equal(doc, &doc); /* set only on success */
	assert_int_equal(err.code, ERR_INVALID);
	if (!strstr(err.message, message))
		fail_msg("'%s' is not in '%s'", message, err.message);
}

#define refuse(in, message) check_refused(in, sizeof(in) - 1, message)

static void test_values(void **state)
{
	check_round_trip(" {\"a\" : [ 1 , -2.50 , true,false ,null, {} , [] ] }\r\n\t",
			 "{\"a\":[1,-2.50,true,false,null,{},[]]}");
	check_round_trip("null", "null");
	check_round_trip("0", "0");
	check_round_trip("-0.0", "-0.0");
	check_round_trip("1E+2", "1E+2");
	check_round_trip("9223372036854775807", "9223372036854775807");
	check_round_trip("-9223372036854775808", "-9223372036854775808");
	check_round_trip("18446744073709551615", "18446744073709551615");
	check_round_trip("123456789012345678901234567890", "123456789012345678901234567890");
	check_round_trip("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\"",
			 "\"\\\"\\\\/\\b\\f\\n\\r\\tA\xc3\xa9\"");
	check_round_trip("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"");
	check_round_trip("{\"a\":1,\"a\":2}", "{\"a\":2}");
}

static void test_trap_39_raw_controls_are_content(void **state)
{
	AUTO_JSON struct json_object *doc = parse("{\"command\":\"printf 'a\tb\nc\x01'\"}");
	assert_string_equal(json_str(doc, "command", ""), "printf 'a\tb\nc\x01'");
	AUTO_BUF struct buf out = BUF_INIT;
	json_write(&out, doc);
	assert_string_equal(out.data, "{\"command\":\"printf 'a\\tb\\nc\\u0001'\"}");
}

/* Every proper prefix of a document is refused: half a command never runs. */
static void test_trap_39_unfinished_values_are_refused(void **state)
{
	static const char whole[] =
		"{\"command\":\"rm -rf "
		"/srv/app/tmp\",\"n\":[1,{\"x\":null}],\"s\":\"\\ud83d\\ude00\\n\"}";
	struct json_object *doc = NULL;
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		assert_int_equal(json_parse(whole, n, &doc, NULL), -1);
	assert_int_equal(json_parse(whole, sizeof(whole) - 1, &doc, NULL), 0);
	json_object_put(doc);
	refuse("{\"command\":\"rm -rf /srv/app/tm", "unterminated string at byte 30");
	refuse("[1, 2", "unterminated value at byte 5");
	refuse("", "unterminated value at byte 0");
	refuse("\"a\\", "unterminated string");
}

static void test_what_json_is_not(void **state)
{
	refuse("{} x", "something follows the value at byte 3");
	refuse("{}{}", "something follows");
	refuse("[1,]", "unexpected character at byte 3");
	refuse("{\"a\":1,}", "expected a quoted key at byte 7");
	refuse("{a:1}", "expected a quoted key");
	refuse("{'a':1}", "expected a quoted key");
	refuse("{\"a\" 1}", "expected ':'");
	refuse("[1 2]", "expected ',' or ']'");
	refuse("{\"a\":1 \"b\":2}", "expected ',' or '}'");
	refuse("// x\n1", "unexpected character at byte 0");
	refuse("NaN", "unexpected character");
	refuse("-Infinity", "bad number");
	refuse("True", "unexpected character");
	refuse("tru", "unknown word");
	refuse("nulll", "something follows");
	refuse("01", "bad number");
	refuse("1.", "bad number");
	refuse(".5", "unexpected character");
	refuse("+1", "unexpected character");
	refuse("1e", "bad number");
	refuse("-", "bad number");
	refuse("\"\\x\"", "bad escape");
	refuse("\"\\u12g4\"", "bad \\u escape");
	refuse("\"\\u12", "bad \\u escape");
	refuse("1\0", "something follows");
	refuse("\"\\\0\"", "bad escape");
}

static void test_depth(void **state)
{
	AUTO_BUF struct buf deep = BUF_INIT;
	for (int depth = 64; depth <= 65; depth++) {
		struct json_object *doc = NULL;
		buf_clear(&deep);
		for (int i = 0; i < depth; i++)
			buf_addc(&deep, '[');
		for (int i = 0; i < depth; i++)
			buf_addc(&deep, ']');
		assert_int_equal(json_parse(deep.data, deep.len, &doc, NULL), depth == 64 ? 0 : -1);
		json_object_put(doc);
	}
	AUTO_BUF struct buf wide = BUF_INIT; /* siblings are not depth */
	buf_addc(&wide, '[');
	for (int i = 0; i < 200; i++)
		buf_adds(&wide, "[],{},");
	buf_adds(&wide, "1]");
	AUTO_JSON struct json_object *doc = parse(wide.data);
	assert_int_equal(json_len(doc), 401);
}

static void test_trap_89_lone_surrogates(void **state)
{
	check_round_trip("\"\\ud83d\"", "\"\xef\xbf\xbd\"");
	check_round_trip("\"\\ude00x\"", "\"\xef\xbf\xbdx\"");
	check_round_trip("\"\\ud83d\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\"");
	check_round_trip("\"\\ud83d\\n\"", "\"\xef\xbf\xbd\\n\"");
	check_round_trip("\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
					       "A\"");
	check_round_trip("\"\xed\xa0\xbd\"", "\"\xef\xbf\xbd\""); /* raw CESU-8 */
	check_round_trip("\"\xff\xc3\xa9\"", "\"\xef\xbf\xbd\xc3\xa9\"");
}

static void test_nul_in_strings_and_keys(void **state)
{
	AUTO_JSON struct json_object *doc = parse("{\"a\":\"x\\u0000y\",\"k\\u0000z\":1,\"k\":2}");
	assert_int_equal(json_str_len(doc, "a"), 3);
	assert_memory_equal(json_str(doc, "a", ""), "x\0y", 4);
	assert_int_equal(json_i64(doc, "k", 0), 2);
	assert_int_equal(json_i64(doc, "k\xef\xbf\xbdz", 0), 1);
}

static void test_lenient_getters(void **state)
{
	AUTO_JSON struct json_object *doc = parse("{\"s\":\"x\",\"i\":5,\"w\":5.0,\"d\":2.5,\"t\":"
						  "true,\"n\":null,\"o\":{},\"a\":[1]}");
	assert_string_equal(json_str(doc, "s", "d"), "x");
	assert_string_equal(json_str(doc, "i", "d"), "d");
	assert_null(json_str(NULL, "s", NULL));
	assert_string_equal(json_str(json_arr(doc, "a"), "s", "d"), "d");
	assert_int_equal(json_str_len(doc, "i"), 0);
	assert_int_equal(json_i64(doc, "i", 0), 5);
	assert_int_equal(json_i64(doc, "w", 0), 5);
	assert_int_equal(json_i64(doc, "d", -1), -1);
	assert_int_equal(json_i64(doc, "s", -1), -1);
	assert_true(json_double(doc, "i", 0) == 5.0);
	assert_true(json_double(doc, "d", 0) == 2.5);
	assert_true(json_double(doc, "t", 7) == 7);
	assert_true(json_flag(doc, "t", false));
	assert_true(json_flag(doc, "i", true));
	assert_true(json_has(doc, "n"));
	assert_null(json_get(doc, "n"));
	assert_false(json_has(doc, "zz"));
	assert_false(json_has(NULL, "zz"));
	assert_non_null(json_obj(doc, "o"));
	assert_null(json_obj(doc, "a"));
	assert_null(json_arr(doc, "o"));
	assert_int_equal(json_len(json_arr(doc, "a")), 1);
	assert_int_equal(json_len(NULL), 0);
	assert_int_equal(json_len(doc), 0);
	assert_null(json_at(json_arr(doc, "a"), 1));
	assert_non_null(json_at(json_arr(doc, "a"), 0));
}

static void test_strict_getters(void **state)
{
	AUTO_JSON struct json_object *doc =
		parse("{\"s\":\"x\",\"i\":5,\"n\":null,\"o\":{},\"a\":[]}");
	struct err err = ERR_INIT;
	const char *s;
	int64_t i;
	struct json_object *o;
	assert_int_equal(json_need_str(doc, "s", &s, &err), 0);
	assert_int_equal(json_need_i64(doc, "i", &i, &err), 0);
	assert_int_equal(json_need_obj(doc, "o", &o, &err), 0);
	assert_int_equal(json_need_arr(doc, "a", &o, &err), 0);
	assert_int_equal(json_need_str(doc, "zz", &s, &err), -1);
	assert_string_equal(err.message, "missing field 'zz'");
	assert_int_equal(json_need_str(doc, "i", &s, &err), -1);
	assert_string_equal(err.message, "field 'i' must be a string");
	assert_int_equal(json_need_i64(doc, "s", &i, &err), -1);
	assert_string_equal(err.message, "field 's' must be a whole number");
	assert_int_equal(json_need_obj(doc, "n", &o, &err), -1);
	assert_string_equal(err.message, "field 'n' must be an object");
	assert_int_equal(json_need_arr(NULL, "a", &o, &err), -1);
}

static void test_building_and_doubles(void **state)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();
	AUTO_BUF struct buf out = BUF_INIT;
	json_set_str(doc, "left_out", NULL);
	json_set_strn(doc, "s", "a\0b", 3);
	json_set_i64(doc, "i", INT64_MIN);
	json_set_bool(doc, "b", false);
	json_set(doc, "n", NULL);
	json_set_double(doc, "tenth", 0.1);
	json_set_double(doc, "third", 1.0 / 3);
	json_set_double(doc, "nan", NAN);
	json_set_double(doc, "inf", INFINITY);
	json_write(&out, doc);
	assert_string_equal(out.data, "{\"s\":\"a\xef\xbf\xbd"
				      "b\",\"i\":-9223372036854775808,\"b\":false,\"n\":null,"
				      "\"tenth\":0.1,\"third\":0.3333333333333333,\"nan\":null,"
				      "\"inf\":null}");
}

static void test_pretty(void **state)
{
	AUTO_JSON struct json_object *doc = parse("{\"a\":[1,{\"b\":2}],\"e\":[],\"o\":{}}");
	AUTO_BUF struct buf out = BUF_INIT;
	json_write_pretty(&out, doc);
	assert_string_equal(out.data, "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n"
				      "  \"e\": [],\n  \"o\": {}\n}\n");
}

/* Traps 87, 89, 95: whatever the bytes, the output is one valid JSON string in valid UTF-8. */
static void test_traps_87_89_95_written_strings_read_back(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;
	for (unsigned pair = 0; pair < 65536; pair++) {
		char s[4] = {'x', (char)(pair >> 8), (char)pair, '"'};
		struct json_object *doc = NULL;
		buf_clear(&out);
		buf_clear(&clean);
		json_write_string(&out, s, sizeof(s));
		text_sanitize(&clean, s, sizeof(s));
		assert_true(text_is_utf8(out.data, out.len));
		assert_int_equal(json_parse(out.data, out.len, &doc, NULL), 0);
		assert_string_equal(json_object_get_string(doc), clean.data);
		for (size_t i = 0; i < out.len; i++)
			assert_true((unsigned char)out.data[i] >= 0x20);
		json_object_put(doc);
	}
	buf_clear(&out);
	json_write_cstr(&out, "a/b\xe2\x80\xa8");
	assert_string_equal(out.data, "\"a/b\xe2\x80\xa8\"");
	buf_clear(&out);
	json_write_string(&out, NULL, 0);
	assert_string_equal(out.data, "\"\"");
}

static void test_file(void **state)
{
	AUTO_FREE char *path = file_join(*state, "x.json");
	struct err err = ERR_INIT;
	struct json_object *doc = NULL;
	assert_int_equal(json_parse_file(path, 100, &doc, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "{\"a\":1}\n", 8, 0600, NULL), 0);
	assert_int_equal(json_parse_file(path, 100, &doc, &err), 0);
	json_object_put(doc);
	assert_int_equal(json_parse_file(path, 7, &doc, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "{", 1, 0600, NULL), 0);
	assert_int_equal(json_parse_file(path, 100, &doc, &err), -1);
	assert_true(text_starts(err.message, path));
}

static void check_schema(const char *schema, const char *value, const char *want)
{
	AUTO_JSON struct json_object *s = parse(schema);
	AUTO_JSON struct json_object *v = parse(value);
	struct err err = ERR_INIT;
	int rc = json_check_schema(s, v, &err);
	if (want)
		assert_string_equal(err.message, want);
	assert_int_equal(rc, want ? -1 : 0);
}

static void test_schema_types(void **state)
{
	check_schema("{\"type\":\"string\"}", "\"x\"", NULL);
	check_schema("{\"type\":\"string\"}", "1", "at '/': expected string, got int");
	check_schema("{\"type\":\"integer\"}", "2.0", NULL);
	check_schema("{\"type\":\"integer\"}", "2.5", "at '/': expected integer, got double");
	check_schema("{\"type\":\"number\"}", "2", NULL);
	check_schema("{\"type\":[\"string\",\"null\"]}", "null", NULL);
	check_schema("{\"type\":[\"string\",\"null\"]}", "[]",
		     "at '/': expected string or null, got array");
	check_schema("{\"type\":\"unheard-of\"}", "1", NULL);
	check_schema("{}", "1", NULL);
	check_schema("true", "1", NULL);
}

static void test_schema_limits(void **state)
{
	check_schema("{\"minimum\":1}", "0", "at '/': expected at least 1");
	check_schema("{\"maximum\":1}", "1.5", "at '/': expected at most 1");
	check_schema("{\"minimum\":1,\"maximum\":1}", "1", NULL);
	check_schema("{\"minimum\":1}", "\"x\"", NULL);
	check_schema("{\"minLength\":2}", "\"\xc3\xa9\"", "at '/': expected at least 2 characters");
	check_schema("{\"maxLength\":1}", "\"\xc3\xa9\"", NULL);
	check_schema("{\"maxLength\":1}", "\"ab\"", "at '/': expected at most 1 characters");
	check_schema("{\"minItems\":1}", "[]", "at '/': expected at least 1 items");
	check_schema("{\"maxItems\":1}", "[1,2]", "at '/': expected at most 1 items");
	check_schema("{\"enum\":[\"low\",1,null]}", "null", NULL);
	check_schema("{\"enum\":[\"low\",1]}", "\"high\"", "at '/': expected one of \"low\", 1");
	check_schema("{\"const\":\"low\"}", "\"low\"", NULL);
	check_schema("{\"const\":\"low\"}", "1", "at '/': expected \"low\"");
}

static void test_schema_references(void **state)
{
#define LIST "{\"$defs\":{\"n\":{\"type\":\"integer\"}},\"items\":{\"$ref\":\"#/$defs/n\"}}"
	check_schema(LIST, "[1,2]", NULL);
	check_schema(LIST, "[1,\"x\"]", "at '/1': expected integer, got string");
	/* A tree of itself ends where the value ends; a reference to itself alone, by the limit. */
	check_schema("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[[],[[]]]", NULL);
	check_schema("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[[],[[1]]]",
		     "at '/1/0/0': expected array, got int");
	check_schema("{\"$ref\":\"#\"}", "1", "at '/': nesting deeper than 64");
	/* What leads nowhere, or out of the document, forbids nothing. */
	check_schema("{\"$ref\":\"#/$defs/none\"}", "1", NULL);
	check_schema("{\"$ref\":\"https://example.com/x.json\"}", "1", NULL);
	check_schema("{\"$ref\":1}", "1", NULL);
}

static void test_schema_places(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"required\":[\"findings\"],\"additionalProperties\":false,"
		"\"properties\":{\"findings\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
		"\"required\":[\"file\"],\"properties\":{\"file\":{\"type\":\"string\"},"
		"\"a/b~c\":{\"type\":\"integer\"}}}},\"summary\":{\"type\":\"string\"}}}";
	check_schema(schema, "{\"findings\":[{\"file\":\"x\"}]}", NULL);
	check_schema(schema, "{}", "at '/': missing field 'findings'");
	check_schema(schema, "{\"findings\":[{\"file\":\"x\"},{\"file\":2}]}",
		     "at '/findings/1/file': expected string, got int");
	check_schema(schema, "{\"findings\":[{}]}", "at '/findings/0': missing field 'file'");
	check_schema(schema, "{\"findings\":[{\"file\":\"x\",\"a/b~c\":\"y\"}]}",
		     "at '/findings/0/a~1b~0c': expected integer, got string");
	check_schema(schema, "{\"findings\":[],\"sumary\":\"x\"}",
		     "at '/': unknown field 'sumary'; did you mean 'summary'?");
	check_schema(schema, "{\"findings\":[],\"qqqqq\":1}", "at '/': unknown field 'qqqqq'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_trap_39_raw_controls_are_content),
		cmocka_unit_test(test_trap_39_unfinished_values_are_refused),
		cmocka_unit_test(test_what_json_is_not),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_trap_89_lone_surrogates),
		cmocka_unit_test(test_nul_in_strings_and_keys),
		cmocka_unit_test(test_lenient_getters),
		cmocka_unit_test(test_strict_getters),
		cmocka_unit_test(test_building_and_doubles),
		cmocka_unit_test(test_pretty),
		cmocka_unit_test(test_traps_87_89_95_written_strings_read_back),
		folder_test(test_file),
		cmocka_unit_test(test_schema_types),
		cmocka_unit_test(test_schema_limits),
		cmocka_unit_test(test_schema_references),
		cmocka_unit_test(test_schema_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
