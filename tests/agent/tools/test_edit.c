/* edit: exact, unique, line ends kept (traps 106, 108). */
#include "fixture.h"

static void test_replaces_once(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.c", "int a;\nint b;\nint c;\n");
	assert_int_equal(
		call(f, "edit",
		     "{'path':'a.c','old_string':'int b;','new_string':'long b;\\nlong d;'}"),
		0);
	assert_ok(f);
	assert_file(f, "a.c", "int a;\nlong b;\nlong d;\nint c;\n");
	assert_string_equal(f->result.summary, "edit a.c (+2 -1)");
	assert_says(f, "     2\tlong b;\n");
}

static void test_trap_106_crlf_stays(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.c", "one\r\ntwo\r\nthree\r\n");
	call(f, "edit", "{'path':'a.c','old_string':'two\\nthree','new_string':'2\\n2.5\\nthree'}");
	assert_ok(f);
	assert_file(f, "a.c", "one\r\n2\r\n2.5\r\nthree\r\n");
	call(f, "edit", "{'path':'a.c','old_string':'\\nthree','new_string':'\\n3'}");
	assert_file(f, "a.c", "one\r\n2\r\n2.5\r\n3\r\n");
	call(f, "edit", "{'path':'a.c','old_string':'2.5\\r\\n','new_string':''}");
	assert_file(f, "a.c", "one\r\n2\r\n3\r\n");
}

/* Trap 106 in a file with both: every other line keeps its own end. */
static void test_trap_106_mixed_line_ends(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "m", "a\r\nb\nc\r\nlone\rcr\nd\n");
	call(f, "edit", "{'path':'m','old_string':'b\\nc','new_string':'B\\nC'}");
	assert_ok(f);
	assert_file(f, "m", "a\r\nB\nC\r\nlone\rcr\nd\n");
	call(f, "edit", "{'path':'m','old_string':'a','new_string':'a1\\na2'}");
	assert_ok(f);
	assert_file(f, "m", "a1\r\na2\r\nB\nC\r\nlone\rcr\nd\n");
}

static void test_bom_is_kept(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "bom", "\xef\xbb\xbfint x;\nint y;\n");
	call(f, "edit", "{'path':'bom','old_string':'int x;','new_string':'int z;'}");
	assert_ok(f);
	assert_file(f, "bom", "\xef\xbb\xbfint z;\nint y;\n");
}

static void test_several_matches_are_refused_with_lines(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "x\ny\nx\n");
	call(f, "edit", "{'path':'a','old_string':'x','new_string':'z'}");
	assert_error(f);
	assert_says(f, "2 times, at lines 1, 3");
	assert_file(f, "a", "x\ny\nx\n");
	call(f, "edit", "{'path':'a','old_string':'x','new_string':'z','replace_all':true}");
	assert_ok(f);
	assert_says(f, "2 replacements");
	assert_file(f, "a", "z\ny\nz\n");
}

static void test_not_found_names_the_nearest_line(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "alpha\nint count_lines(void);\n\tindented();\n");
	call(f, "edit", "{'path':'a','old_string':'int count_line(void)','new_string':'z'}");
	assert_error(f);
	assert_says(f, "nearest line is 2: int count_lines(void);");
	call(f, "edit", "{'path':'a','old_string':'    indented();\\n','new_string':'z'}");
	assert_error(f);
	assert_says(f, "line 3");
	assert_says(f, "white space");
	call(f, "edit", "{'path':'a','old_string':'     1\\talpha','new_string':'z'}");
	assert_says(f, "line numbers");
	call(f, "edit", "{'path':'a','old_string':'qqqqqqq','new_string':'z'}");
	assert_says(f, "not in the file");
}

static void test_wrong_calls(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "x\n");
	call(f, "edit", "{'path':'a','old_string':'','new_string':'z'}");
	assert_error(f);
	call(f, "edit", "{'path':'a','old_string':'x','new_string':'x'}");
	assert_error(f);
	call(f, "edit", "{'path':'a','old_string':'x'}");
	assert_error(f);
	call(f, "edit", "{'path':'a'}");
	assert_error(f);
	call(f, "edit", "{'path':'missing','old_string':'x','new_string':'y'}");
	assert_error(f);
	assert_says(f, "use write");
	assert_file(f, "a", "x\n");
}

static void test_list_of_edits_is_all_or_none(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "1\n2\n3\n");
	call(f, "edit",
	     "{'path':'a','edits':[{'old_string':'1','new_string':'one'},"
	     "{'old_string':'one\\n2','new_string':'both'}]}");
	assert_ok(f);
	assert_file(f, "a", "both\n3\n");
	call(f, "edit",
	     "{'path':'a','edits':[{'old_string':'3','new_string':'three'},"
	     "{'old_string':'nine','new_string':'9'}]}");
	assert_error(f);
	assert_says(f, "edit 2 of 2");
	assert_file(f, "a", "both\n3\n");
}

static void test_trap_108_changed_file_is_refused(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "1\n2\n");
	call(f, "read", "{'path':'a'}");
	puts_file(f, "a", "1\n2\n3\n");
	call(f, "edit", "{'path':'a','old_string':'2','new_string':'x'}");
	assert_error(f);
	assert_says(f, "changed since");
	assert_file(f, "a", "1\n2\n3\n");
	call(f, "read", "{'path':'a'}");
	call(f, "edit", "{'path':'a','old_string':'2','new_string':'x'}");
	assert_ok(f);
	call(f, "edit", "{'path':'a','old_string':'3','new_string':'y'}");
	assert_ok(f);
	assert_file(f, "a", "1\nx\ny\n");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_replaces_once),
		T(test_trap_106_crlf_stays),
		T(test_trap_106_mixed_line_ends),
		T(test_bom_is_kept),
		T(test_several_matches_are_refused_with_lines),
		T(test_not_found_names_the_nearest_line),
		T(test_wrong_calls),
		T(test_list_of_edits_is_all_or_none),
		T(test_trap_108_changed_file_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
