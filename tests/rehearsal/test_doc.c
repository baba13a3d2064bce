/*
 * test_doc.c - the strict JSON reader: what it accepts, what it refuses and where.
 */
#include "rehearsal_rig.h"

#include "rehearsal/doc.h"
#include "rehearsal/hash.h"

static int parse(struct doc *doc, char *bytes, const char *text, size_t n, struct doc_failure *f)
{
	memcpy(bytes, text, n);
	return doc_parse(doc, bytes, n, f);
}

static void decodes_in_place(void **state)
{
	static const char text[] =
		" {\"a\\u0041\": [1, -2.5e3, true, null], \"s\": \"x\\n\\ud83d\\ude00\\\\\"} ";
	struct doc doc = {.nodes = NULL};
	struct doc_failure failure;
	char bytes[200];

	assert_int_equal(parse(&doc, bytes, text, sizeof(text) - 1, &failure), 0);
	uint32_t list = doc_get(&doc, DOC_ROOT, "aA");
	assert_int_equal(doc_type(&doc, list), DOC_ARRAY);
	assert_int_equal(doc.nodes[list].count, 4);
	assert_int_equal(doc_i64(&doc, doc_first(list), 0), 1);
	assert_int_equal(doc_i64(&doc, doc_next(&doc, doc_first(list)), 7), 7); /* no integer */
	assert_true(doc_is(&doc, doc_get(&doc, DOC_ROOT, "s"), "x\n\xf0\x9f\x98\x80\\"));
	/* What is absent stays absent, however deep one asks. */
	assert_int_equal(doc_get(&doc, doc_get(&doc, DOC_ROOT, "no"), "s"), 0);
	doc_release(&doc);
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *what;
		size_t at;
	} cases[] = {
		{"", "unexpected end of data", 0},
		{"{\"a\":1", "unexpected end of data", 6},	  /* trap 87: a cut body */
		{"\"\\ud83d\"", "no low surrogate in string", 7}, /* trap 89 */
		{"\"\\ude00\"", "no high surrogate in string", 3},
		{"\"\xed\xa0\xbd\"", "str is not valid UTF-8: surrogates not allowed", 1},
		{"\"\xff\"", "str is not valid UTF-8: surrogates not allowed", 1},
		{"\"a\tb\"", "Invalid control character", 2},
		{"{\"a\":1}x", "Extra data", 7},
		{"[1,]", "unexpected character", 3},
		{"{a:1}", "Expecting property name enclosed in double quotes", 1},
		{"01", "unexpected character", 0},
		{"\"\\x\"", "Invalid \\escape", 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct doc doc = {.nodes = NULL};
		struct doc_failure failure = {.what = NULL};
		char bytes[100];

		assert_int_equal(parse(&doc, bytes, cases[i].text, strlen(cases[i].text), &failure),
				 -1);
		assert_string_equal(failure.what, cases[i].what);
		assert_int_equal(failure.at, cases[i].at);
		doc_release(&doc);
	}
}

/* Line ends that escapes put into strings are no lines of the source. */
static void failures_name_line_and_column(void **state)
{
	static const char text[] = "{\n \"a\": \"x\\ny\",\n  \"b\": ?}";
	struct doc doc = {.nodes = NULL};
	struct doc_failure failure;
	char bytes[100];

	assert_int_equal(parse(&doc, bytes, text, sizeof(text) - 1, &failure), -1);
	assert_int_equal(failure.line, 3);
	assert_int_equal(failure.column, 8);
	doc_release(&doc);
}

static void depth_is_bounded(void **state)
{
	struct doc doc = {.nodes = NULL};
	struct doc_failure failure;
	char bytes[400];

	memset(bytes, '[', sizeof(bytes));
	assert_int_equal(doc_parse(&doc, bytes, sizeof(bytes), &failure), -1);
	assert_string_equal(failure.what, "recursion limit exceeded");
	doc_release(&doc);
}

static uint64_t hash_of(const char *text)
{
	struct doc doc = {.nodes = NULL};
	struct doc_failure failure;
	char bytes[200];

	assert_int_equal(parse(&doc, bytes, text, strlen(text), &failure), 0);
	uint64_t hash = doc_hash(&doc, DOC_ROOT, HASH_SEED, "cache_control");
	doc_release(&doc);
	return hash;
}

/* The marker of caching moves, the prefix stays. */
static void hash_skips_markers(void **state)
{
	uint64_t plain = hash_of("{\"type\":\"text\",\"text\":\"ab\"}");

	assert_true(plain == hash_of("{\"type\":\"text\", \"text\":\"a\\u0062\","
				     "\"cache_control\":{\"type\":\"ephemeral\"}}"));
	assert_false(plain == hash_of("{\"type\":\"text\",\"text\":\"ac\"}"));
	assert_false(plain == hash_of("{\"text\":\"ab\",\"type\":\"text\"}"));
	assert_false(hash_of("[[1],2]") == hash_of("[[1,2]]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_in_place),
		cmocka_unit_test(refuses),
		cmocka_unit_test(failures_name_line_and_column),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(hash_skips_markers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
