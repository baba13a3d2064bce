/*
 * test_output_table.c - T11: of SQL and table output the first N rows and the total.
 */
#include "fixture.h"

#include "agent/tools/output.h"
#include "agent/tools/output_table.h"
#include "base/memory.h"
#include "base/text.h"

static struct buf in = BUF_INIT, out = BUF_INIT;

static int teardown(void **state)
{
	buf_release(&in);
	buf_release(&out);
	return 0;
}

/* Head, rows with their number for '#' and something for '@', end. */
static void make(const char *head, const char *row, int rows, const char *end)
{
	buf_clear(&in);
	buf_clear(&out);
	buf_adds(&in, head);
	for (int i = 1; i <= rows; i++)
		for (const char *c = row; *c; c++) {
			if (*c == '#' || *c == '@')
				buf_addf(&in, "%d", *c == '#' ? i : i * 7);
			else
				buf_addc(&in, *c);
		}
	buf_adds(&in, end);
}

static void shorten(void)
{
	assert_true(output_shorten_table(&out, buf_str(&in), in.len, 4000, "results:7.txt"));
}

static void shows(const char *text)
{
	if (!strstr(buf_str(&out), text))
		fail_msg("'%s' is not in:\n%s", text, buf_str(&out));
}

static void hides(const char *text)
{
	if (strstr(buf_str(&out), text))
		fail_msg("'%s' is in:\n%s", text, buf_str(&out));
}

static void is_no_table(void)
{
	assert_false(output_shorten_table(&out, buf_str(&in), in.len, 4000, NULL));
	assert_int_equal(out.len, 0);
}

static void t11_psql(void **state)
{
	make(" id | amount \n----+--------\n", " # | @\n", 1234, "(1234 rows)\n\n");
	shorten();
	assert_true(text_starts(buf_str(&out), " id | amount\n----+--------\n 1 | 7\n"));
	shows(" 20 | 140\n[the first 20 of 1234 rows; all of it is in results:7.txt]\n(1234 "
	      "rows)\n");
	hides(" 21 |");
}

static void t11_mysql_and_its_borders(void **state)
{
	make("+----+------+\n| id | sum  |\n+----+------+\n", "| # | @ |\n", 500,
	     "+----+------+\n500 rows in set (0.01 sec)\n");
	shorten();
	shows("| id | sum  |\n");
	shows("[the first 20 of 500 rows; ");
	shows("500 rows in set (0.01 sec)\n");
}

static void t11_sqlite_in_columns(void **state)
{
	make("id    name\n----  ----\n", "#     x@\n", 300, "");
	shorten();
	shows("1     x7\n");
	shows("[the first 20 of 300 rows; ");
}

static void t11_tabs_commas_and_boxes(void **state)
{
	make("id\tname\n", "#\tn@\n", 300, "");
	shorten();
	shows("id\tname\n1\tn7\n");
	shows("of 300 rows");
	make("id,name,note\n", "#,\"Smith, J. @\",x\n", 300, "");
	shorten();
	shows("of 300 rows");
	make("│ id │ n │\n├────┼───┤\n", "│ # │ @ │\n", 300, "└────┴───┘\n");
	shorten();
	shows("│ id │ n │\n├────┼───┤\n│ 1 │ 7 │\n");
	shows("of 300 rows");
}

static void t11_wide_rows_are_cut_and_few_fit(void **state)
{
	AUTO_BUF struct buf wide = BUF_INIT;

	for (int i = 0; i < 900; i++)
		buf_adds(&wide, "w");
	buf_adds(&wide, "|#|@\n");
	make("a|b|c\n", buf_str(&wide), 100, "");
	shorten();
	shows("w [4");
	assert_true(out.len < 4800);
	shows("[the first 7 of 100 rows; ");
}

/* What is no table keeps its head and its tail. */
static void t11_what_is_no_table(void **state)
{
	make("", "worker #: took @ ms, and went on, as it should\n", 300, "panic, at last\n");
	is_no_table();
	make("", "2024-05-17T01:12:09Z\tINFO\tworker #\ttook @ ms\n", 300, "");
	is_no_table();
	make("", "2024-05-17 01:12:09 | INFO | worker # - took @ ms\n", 300, "");
	is_no_table();
	make("a,b,c\n", "#,@,x\n", 100, "x\ny\nz\n1\n2\n3\n4\n5\n6\n7\n");
	is_no_table();
	make("Building\n------------\n", "CC file#.c (@)\n", 300, "");
	is_no_table();
	make("a | b\n", "# | @\n", 10, "");
	is_no_table();
	make("", "", 0, "");
	is_no_table();
}

/* Of a command that failed the errors count, whatever its form. */
static void t11_only_of_a_success(void **state)
{
	make("a | b\n--+--\n", "# | @\n", 400, "ERROR: connection lost\n");
	output_shorten(&out, buf_str(&in), in.len, 3, 1000, NULL);
	hides("of 400 rows");
	shows("ERROR: connection lost");
	buf_clear(&out);
	output_shorten(&out, buf_str(&in), in.len, 0, 1000, NULL);
	shows("of 401 rows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t11_psql),
		cmocka_unit_test(t11_mysql_and_its_borders),
		cmocka_unit_test(t11_sqlite_in_columns),
		cmocka_unit_test(t11_tabs_commas_and_boxes),
		cmocka_unit_test(t11_wide_rows_are_cut_and_few_fit),
		cmocka_unit_test(t11_what_is_no_table),
		cmocka_unit_test(t11_only_of_a_success),
	};
	return cmocka_run_group_tests_name("tools_output_table", tests, NULL, teardown);
}
