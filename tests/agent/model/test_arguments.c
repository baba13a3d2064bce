/*
 * Arguments of tool calls: what is whole, what is refused (traps 37, 39, 43, 89).
 */
#include "fixture.h"

#include "agent/model/arguments.h"

static const struct {
	const char *text, *want; /* want NULL: refused */
} rows[] = {
	/* trap 43 */
	{"", "{}"},
	{" \n", "{}"},
	{"null", "{}"},
	{" null ", "{}"},
	/* strict text stays as it is */
	{"{\"a\": 1.0, \"b\":[1e3]}", "{\"a\": 1.0, \"b\":[1e3]}"},
	{" {\"a\":\"\\u00e9\"} ", "{\"a\":\"\\u00e9\"}"},
	/* trap 39: raw control characters */
	{"{\"a\":\"x\ty\nz\"}", "{\"a\":\"x\\ty\\nz\"}"},
	{"{\n\t\"a\": 1\n}", "{\"a\":1}"},
	/* trap 89: an unpaired surrogate never leaves */
	{"{\"a\":\"\\ud83d\"}", "{\"a\":\"\xef\xbf\xbd\"}"},
	{"{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}"},
	{"{\"a\":\"\xff\"}", "{\"a\":\"\xef\xbf\xbd\"}"},
	/* trap 39: unterminated in any way */
	{"{\"command\":\"rm -rf /srv/app/tm", NULL},
	{"{\"command\":\"ls\"", NULL},
	{"{\"command\":\"ls\"}}", NULL},
	{"{\"command\":", NULL},
	{"{\"command\"", NULL},
	{"{", NULL},
	/* no object */
	{"[1]", NULL},
	{"\"ls\"", NULL},
	{"3", NULL},
	{"true", NULL},
	/* glued (trap 33) */
	{"{\"a\":1}{\"b\":2}", NULL},
	/* repairs that other parsers do */
	{"{'a':1}", NULL},
	{"{\"a\":1,}", NULL},
	{"{\"a\":NaN}", NULL},
	{"{\"a\":1} // done", NULL},
};

static void test_normalise(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		bool whole = arguments_normalise(&out, rows[i].text, strlen(rows[i].text));
		if (whole != (rows[i].want != NULL))
			fail_msg("%s", rows[i].text);
		assert_string_equal(buf_str(&out), rows[i].want ? rows[i].want : "");
	}
}

/* No proper prefix of an object is ever taken for one. */
static void test_no_prefix_is_whole(void **state)
{
	static const char text[] =
		"{\"command\":\"printf '\\\"{}\\\\' [x] \\u00e9\",\"n\":[1,{\"k\":null}]}";
	AUTO_BUF struct buf out = BUF_INIT;
	struct arguments_scan scan = {.depth = 0};
	for (size_t n = 1; n < sizeof(text) - 1; n++) {
		arguments_scan(&scan, text + n - 1, 1);
		assert_false(scan.complete);
		assert_false(arguments_normalise(&out, text, n));
	}
	arguments_scan(&scan, text + sizeof(text) - 2, 1);
	assert_true(scan.complete);
	assert_true(arguments_normalise(&out, text, sizeof(text) - 1));
	assert_string_equal(out.data, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normalise),
		cmocka_unit_test(test_no_prefix_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
