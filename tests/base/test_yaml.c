/* yaml: scalars, lines, duplicate keys, limits (depth, size, nodes, alias bombs), front matter. */
#include "test_base.h"

#include <fcntl.h>

#include "base/yaml.h"

static struct yaml_doc *parse(const char *s)
{
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	if (yaml_parse(s, strlen(s), "f.yaml", 1, &doc, &err) < 0)
		fail_msg("%s", err.message);
	return doc;
}

static void check_json(const char *yaml, const char *want)
{
	struct yaml_doc *doc = parse(yaml);
	AUTO_BUF struct buf out = BUF_INIT;
	json_write(&out, yaml_root(doc));
	assert_string_equal(out.data, want);
	yaml_free(doc);
}

static void check_refused(const char *s, size_t n, const char *want)
{
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(yaml_parse(s, n, "f.yaml", 1, &doc, &err), -1);
	assert_null(doc);
	if (want)
		assert_string_equal(err.message, want);
}

#define refuse(s, want) check_refused(s, sizeof(s) - 1, want)

static void test_scalars_by_the_json_schema(void **state)
{
	check_json("[1, -2, 1.5, 1e3, true, false, null, ~, ]",
		   "[1,-2,1.5,1e3,true,false,null,null]");
	check_json(
		"[True, yes, no, on, 007, 0x1f, 1_000, .5, +1, .inf, 1., 12:30:45]",
		"[\"True\",\"yes\",\"no\",\"on\",\"007\",\"0x1f\",\"1_000\",\".5\",\"+1\",\".inf\","
		"\"1.\",\"12:30:45\"]");
	check_json("['1', \"true\", \"~\", 'null', \"\"]", "[\"1\",\"true\",\"~\",\"null\",\"\"]");
	check_json("a:\nb: \nc: ''\n", "{\"a\":null,\"b\":null,\"c\":\"\"}");
	check_json("!!str 5", "\"5\"");
	check_json("! 5", "\"5\"");
	check_json("\"\\u00e9\\t\\\"\"", "\"\xc3\xa9\\t\\\"\"");
	check_json("9223372036854775807", "9223372036854775807");
	check_json("", "null");
	check_json("# only a comment\n", "null");
	check_json("---\n", "null");
}

static void test_structures(void **state)
{
	check_json("a:\n  - 1\n  - b: c\n    d: e\nf: {g: [h]}\n",
		   "{\"a\":[1,{\"b\":\"c\",\"d\":\"e\"}],\"f\":{\"g\":[\"h\"]}}");
	check_json("a: |\n  one\n  two\nb: >\n  one\n  two\n",
		   "{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\\n\"}");
	check_json("1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}");
	check_json("a: &x [1, 2]\nb: *x\nc: [*x]\n", "{\"a\":[1,2],\"b\":[1,2],\"c\":[[1,2]]}");
	check_json("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
	check_json("<<: 1\n", "{\"<<\":1}");
	check_json("a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}");
}

/* A copy, not the same object: a reader may change what it got. */
static void test_aliases_are_copies(void **state)
{
	struct yaml_doc *doc = parse("a: &x {k: 1}\nb: *x\n");
	json_set_i64(json_obj(yaml_root(doc), "b"), "k", 2);
	assert_int_equal(json_i64(json_obj(yaml_root(doc), "a"), "k", 0), 1);
	yaml_free(doc);
}

static void test_lines(void **state)
{
	struct yaml_doc *doc = parse("# comment\n"
				     "name: x\n"
				     "context:\n"
				     "  max_rounds: 5\n"
				     "\n"
				     "  'a/b~c':\n"
				     "    - one\n"
				     "    - two: 2\n"
				     "      three: 3\n"
				     "base: &x\n"
				     "  deep: 1\n"
				     "copy: *x\n"
				     "empty:\n");
	static const struct {
		const char *pointer;
		int line;
	} cases[] = {
		{"", 2},
		{"/name", 2},
		{"/context", 3},
		{"/context/max_rounds", 4},
		{"/context/a~1b~0c", 6},
		{"/context/a~1b~0c/0", 7},
		{"/context/a~1b~0c/1", 8},
		{"/context/a~1b~0c/1/three", 9},
		{"/base/deep", 11},
		{"/copy", 12},
		{"/copy/deep", 11},
		{"/empty", 13},
		{"/nope", 0},
		{"/name/x", 0},
		{"/context/a~1b~0c/2", 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(yaml_line(doc, cases[i].pointer), cases[i].line);
	assert_string_equal(yaml_name(doc), "f.yaml");
	yaml_free(doc);
	assert_int_equal(yaml_parse("a: 1\nb: 2\n", 10, "x.md", 2, &doc, NULL), 0);
	assert_int_equal(yaml_line(doc, "/b"), 3);
	yaml_free(doc);
	yaml_free(NULL);
}

static void test_errors_name_file_and_line(void **state)
{
	refuse("a: 1\nb: 2\na: 3\n", "f.yaml:3: duplicate key 'a'");
	refuse("x:\n  a: 1\n  b: 2\n  'a': 3\n", "f.yaml:4: duplicate key 'a'");
	refuse("x: {a: 1, a: 2}\n", "f.yaml:1: duplicate key 'a'");
	refuse("a: 1\nb: *nope\n", "f.yaml:2: unknown anchor 'nope'");
	refuse("a: 1\n---\nb: 2\n", "f.yaml:2: more than one document");
	refuse("? [a]\n: b\n", "f.yaml:1: a key must be plain text");
	refuse("? {a: b}\n: c\n", "f.yaml:1: a key must be plain text");
	refuse("a: &x b\n*x : c\n", "f.yaml:2: a key must be plain text");
	refuse("a: 1\nb: !python/object x\n", "f.yaml:2: unknown tag '!python/object'");
	refuse("a: &x [1, *x]\n", "f.yaml:1: alias 'x' is inside its own anchor");
	refuse("a: 1\nb: \xff\n", "f.yaml:2: invalid UTF-8");
	refuse("a: 1\nb: \0\n", "f.yaml:2: a NUL byte");
	refuse("\"a\\0b\": 1\n", "f.yaml:1: a NUL in a key");
	refuse("a: [1\nb: 2\n", NULL);
	refuse("a: 'b\n", NULL);
	refuse("a: b: c\n", NULL);
	refuse("a: b\n\tc: d\n", NULL);
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(yaml_parse("a: 1\na: 2\n", 10, "roles/x.md", 12, &doc, &err), -1);
	assert_string_equal(err.message, "roles/x.md:13: duplicate key 'a'");
	assert_int_equal(yaml_parse("a: 1\nb: [\n", 10, "roles/x.md", 12, &doc, &err), -1);
	assert_non_null(strstr(err.message, "roles/x.md:1"));
}

static void test_depth(void **state)
{
	for (int depth = 64; depth <= 65; depth++) {
		AUTO_BUF struct buf flow = BUF_INIT;
		struct yaml_doc *doc = NULL;
		for (int i = 0; i < depth; i++)
			buf_addc(&flow, '[');
		for (int i = 0; i < depth; i++)
			buf_addc(&flow, ']');
		int rc = yaml_parse(flow.data, flow.len, "f", 1, &doc, NULL);
		assert_int_equal(rc, depth == 64 ? 0 : -1);
		yaml_free(doc);
	}
	AUTO_BUF struct buf endless = BUF_INIT;
	for (int i = 0; i < 500000; i++)
		buf_addc(&endless, '[');
	check_refused(endless.data, endless.len, NULL);
	/* Aliases stack depth as well: 40 levels, put 40 levels deep. */
	AUTO_BUF struct buf alias = BUF_INIT;
	for (int level = 0; level < 2; level++) {
		buf_addf(&alias, "%c: &%c ", 'a' + level, 'a' + level);
		for (int i = 0; i < 40; i++)
			buf_addc(&alias, '[');
		buf_adds(&alias, level ? "*a" : "1");
		for (int i = 0; i < 40; i++)
			buf_addc(&alias, ']');
		buf_addc(&alias, '\n');
	}
	check_refused(alias.data, alias.len, "f.yaml:2: nesting deeper than 64");
}

/* Nine levels of nine aliases: 400 million nodes if they were expanded. */
static void test_alias_bomb(void **state)
{
	AUTO_BUF struct buf bomb = BUF_INIT;
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	buf_adds(&bomb, "a: &a [x, x, x, x, x, x, x, x, x]\n");
	for (char c = 'b'; c < 'j'; c++)
		buf_addf(&bomb, "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c,
			 c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1);
	assert_int_equal(yaml_parse(bomb.data, bomb.len, "f", 1, &doc, &err), -1);
	assert_non_null(strstr(err.message, "larger than 100000 nodes"));
}

static void test_node_anchor_and_size_limits(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	struct yaml_doc *doc = NULL;
	buf_addc(&text, '[');
	for (int i = 0; i < 100001; i++)
		buf_adds(&text, "1,");
	buf_addc(&text, ']');
	assert_int_equal(yaml_parse(text.data, text.len, "f", 1, &doc, &err), -1);
	assert_string_equal(err.message, "f:1: more than 100000 nodes");
	buf_clear(&text);
	for (int i = 0; i < 1001; i++)
		buf_addf(&text, "- &a%d x\n", i);
	assert_int_equal(yaml_parse(text.data, text.len, "f", 1, &doc, &err), -1);
	assert_string_equal(err.message, "f:1001: more than 1000 anchors");
	buf_clear(&text);
	while (text.len <= 1 << 20)
		buf_adds(&text, "# a comment, to be too long\n");
	assert_int_equal(yaml_parse(text.data, text.len, "f", 1, &doc, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	/* Many keys in one mapping are not searched one by one. */
	buf_clear(&text);
	for (int i = 0; i < 49000; i++)
		buf_addf(&text, "k%d: %d\n", i, i);
	assert_int_equal(yaml_parse(text.data, text.len, "f", 1, &doc, &err), 0);
	assert_int_equal(yaml_line(doc, "/k48999"), 49000);
	yaml_free(doc);
}

static void check_front(const char *s, const char *yaml, const char *body, int line)
{
	const char *y, *b;
	size_t yn, bn;
	assert_int_equal(yaml_front_matter(s, strlen(s), &y, &yn, &b, &bn), line);
	if (!yaml) {
		assert_null(y);
		assert_int_equal(yn, 0);
	} else {
		assert_int_equal(yn, strlen(yaml));
		assert_memory_equal(y, yaml, yn);
	}
	assert_int_equal(bn, strlen(body));
	assert_memory_equal(b, body, bn);
}

static void test_front_matter(void **state)
{
	check_front("---\na: 1\n---\nbody\n", "a: 1\n", "body\n", 4);
	check_front("---\na: 1\nb: 2\n---\n", "a: 1\nb: 2\n", "", 5);
	check_front("---\na: 1\n---", "a: 1\n", "", 4);
	check_front("---\n---\nbody", "", "body", 3);
	check_front("--- \r\na: 1\r\n---\r\nbody", "a: 1\r\n", "body", 4);
	check_front("\xef\xbb\xbf---\na: 1\n---\nbody", "a: 1\n", "body", 4);
	check_front("body\n---\n", NULL, "body\n---\n", 1);
	check_front("---\nno end\n", NULL, "---\nno end\n", 1);
	check_front("---- \nx\n---\n", NULL, "---- \nx\n---\n", 1);
	check_front("---\na: |\n  --- x\n---\nb", "a: |\n  --- x\n", "b", 5);
	check_front("", NULL, "", 1);
}

static void test_file(void **state)
{
	AUTO_FREE char *path = file_join(*state, "x.yaml");
	struct yaml_doc *doc = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(yaml_parse_file(path, &doc, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "a: 1\n", 5, 0600, NULL), 0);
	assert_int_equal(yaml_parse_file(path, &doc, &err), 0);
	assert_string_equal(yaml_name(doc), path);
	assert_int_equal(json_i64(yaml_root(doc), "a", 0), 1);
	yaml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars_by_the_json_schema),
		cmocka_unit_test(test_structures),
		cmocka_unit_test(test_aliases_are_copies),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_errors_name_file_and_line),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_alias_bomb),
		cmocka_unit_test(test_node_anchor_and_size_limits),
		cmocka_unit_test(test_front_matter),
		folder_test(test_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
