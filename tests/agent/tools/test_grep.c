/* grep: modes, context, bounds, catastrophic patterns, odd bytes (T5, T6; traps 89, 91). */
#include "fixture.h"

#include "base/clock.h"

static void test_content_with_numbers(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.c", "one\ntwo\nthree two\n");
	puts_file(f, "b.c", "two\r\n");
	assert_int_equal(call(f, "grep", "{'pattern':'two'}"), 0);
	assert_ok(f);
	assert_string_equal(said(f), "a.c\n2:two\n3:three two\n\nb.c\n1:two\n");
	call(f, "grep", "{'pattern':'t[wh][or]','path':'a.c'}");
	assert_string_equal(said(f), "a.c\n2:two\n3:three two\n");
	call(f, "grep", "{'pattern':'nowhere'}");
	assert_ok(f);
	assert_string_equal(said(f), "no matches\n");
}

static void test_files_and_count(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "x\nx\n");
	puts_file(f, "b/c", "x\n");
	call(f, "grep", "{'pattern':'x','mode':'files'}");
	assert_string_equal(said(f), "a\nb/c\n");
	call(f, "grep", "{'pattern':'x','mode':'count'}");
	assert_string_equal(said(f), "a: 2\nb/c: 1\n");
}

static void test_context_lines(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "1\n2\nX\n4\n5\n6\n7\n8\nX\n10\n");
	call(f, "grep", "{'pattern':'X','before':1,'after':1}");
	assert_string_equal(said(f), "a\n2-2\n3:X\n4-4\n--\n8-8\n9:X\n10-10\n");
	call(f, "grep", "{'pattern':'X','context':3}");
	assert_string_equal(said(f), "a\n1-1\n2-2\n3:X\n4-4\n5-5\n6-6\n7-7\n8-8\n9:X\n10-10\n");
	puts_file(f, "a", "X\nX\n3\n");
	call(f, "grep", "{'pattern':'X','context':1}");
	assert_string_equal(said(f), "a\n1:X\n2:X\n3-3\n");
}

static void test_case_literal_glob(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.c", "Foo(1)\nfoo\n\xc3\x89t\xc3\xa9\n");
	puts_file(f, "a.h", "foo(1)\n");
	call(f, "grep", "{'pattern':'FOO','ignore_case':true,'glob':'*.c'}");
	assert_string_equal(said(f), "a.c\n1:Foo(1)\n2:foo\n");
	call(f, "grep", "{'pattern':'oo(1)','literal':true}");
	assert_string_equal(said(f), "a.c\n1:Foo(1)\n\na.h\n1:foo(1)\n");
	call(f, "grep", "{'pattern':'\\u00e9T\\u00c9','ignore_case':true}");
	assert_says(f, "3:\xc3\x89t\xc3\xa9");
	call(f, "grep", "{'pattern':'foo(','glob':'*.c'}");
	assert_error(f);
	assert_says(f, "not a valid regular expression");
}

/* A pattern stays in its line, except with multiline. */
static void test_lines_and_multiline(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "start {\n  x\n}\nend\n");
	call(f, "grep", "{'pattern':'\\\\{\\\\s+x'}");
	assert_says(f, "no matches");
	call(f, "grep", "{'pattern':'\\\\{.*?\\\\}','multiline':true}");
	assert_string_equal(said(f), "a\n1:start {\n2:  x\n3:}\n");
	call(f, "grep", "{'pattern':'^end$'}");
	assert_string_equal(said(f), "a\n4:end\n");
	call(f, "grep", "{'pattern':'x*','multiline':true,'mode':'count'}");
	assert_ok(f);
}

static void test_trap_91_minified_line_is_bounded(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	while (text.len < 350000)
		buf_adds(&text, "abcdefghi;");
	buf_adds(&text, "stats");
	while (text.len < 700000)
		buf_adds(&text, "abcdefghi;");
	put(f, "min.js", text.data, text.len);
	call(f, "grep", "{'pattern':'stats'}");
	assert_ok(f);
	assert_true(f->result.text.len < 4096);
	assert_says(f, "ghi;statsabc");
	assert_says(f, "1:[349850 bytes cut] ");
	assert_says(f, "bytes cut]\n");
}

/* A pattern that explodes ends soon, as an error that says why. */
static void test_catastrophic_pattern_ends(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	buf_adds(&text, "ok\n");
	for (int i = 0; i < 60; i++)
		buf_addc(&text, 'x');
	buf_adds(&text, "\n");
	put(f, "a", text.data, text.len);
	int64_t start = clock_mono_ms();
	assert_int_equal(call(f, "grep", "{'pattern':'(x+x+)+[yz]'}"), 0);
	assert_true(clock_mono_ms() - start < 5000);
	assert_error(f);
	assert_says(f, "too many steps");
	assert_says(f, "a: line 2");
}

static void test_binary_files_are_skipped_with_a_note(void **state)
{
	struct fixture *f = *state;
	put(f, "bin", "need\0le needle", 14);
	puts_file(f, "text", "needle\n");
	call(f, "grep", "{'pattern':'needle'}");
	assert_says(f, "text\n1:needle\n");
	assert_says(f, "[1 binary files skipped]");
}

/* Trap 89: texts that are no UTF-8 are searched too. */
static void test_trap_89_invalid_utf8_is_searched(void **state)
{
	struct fixture *f = *state;
	put(f, "latin", "caf\xe9 needle\n\xed\xa0\xbd needle\n", 22);
	call(f, "grep", "{'pattern':'ne+dle'}");
	assert_says(f, "latin\n1:caf\xe9 needle\n2:\xed\xa0\xbd needle\n");
}

static void test_ignored_files_and_bounds(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	for (int i = 0; i < 300; i++)
		buf_addf(&text, "x%d\n", i);
	put(f, "many", text.data, text.len);
	puts_file(f, "dist/out", "x\n");
	puts_file(f, ".gitignore", "dist\n");
	call(f, "grep", "{'pattern':'x'}");
	assert_says(f, "200:x199\n");
	assert_says_not(f, "201:");
	assert_says_not(f, "dist");
	assert_says(f, "[200 of 300 matching lines shown (300 lines in 1 files match)");
	call(f, "grep", "{'pattern':'x','head_limit':2}");
	assert_says(f, "[2 of 300 matching lines shown");
	call(f, "grep", "{'pattern':'x','mode':'files','include_ignored':true}");
	assert_says(f, "dist/out\n");
	call(f, "grep", "{'pattern':'x','path':'dist'}");
	assert_says(f, "dist/out\n1:x\n");
}

/* T5: files and counts. */
static void test_shortens_to_files_and_counts(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	for (int i = 0; i < 40; i++) {
		AUTO_FREE char *name = mem_printf("f%02d", i);
		puts_file(f, name, "12:match at some length to make it long\nmatch 2\n- no\n");
	}
	call(f, "grep", "{'pattern':'match'}");
	const struct tool *tool = tool_find("grep");
	assert_int_equal(tool->result_limit, 20000);
	tool->shorten(&f->result, 1000, "results:9.txt", &out);
	assert_true(out.len <= 1200);
	assert_non_null(strstr(out.data, "f00: 2\nf01: 2\n"));
	assert_non_null(strstr(out.data, "f39: 2\n"));
	assert_non_null(strstr(out.data, "results:9.txt"));
	buf_clear(&out);
	tool->shorten(&f->result, 600, NULL, &out);
	assert_non_null(strstr(out.data, "more files]"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_content_with_numbers),
		T(test_files_and_count),
		T(test_context_lines),
		T(test_case_literal_glob),
		T(test_lines_and_multiline),
		T(test_trap_91_minified_line_is_bounded),
		T(test_catastrophic_pattern_ends),
		T(test_binary_files_are_skipped_with_a_note),
		T(test_trap_89_invalid_utf8_is_searched),
		T(test_ignored_files_and_bounds),
		T(test_shortens_to_files_and_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
