/* read: lines, bounds, odd bytes, folders, images (T1, T6, T11, W6; traps 87, 89, 95). */
#include "fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_lines_are_numbered(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.txt", "one\ntwo\nthree");
	assert_int_equal(call(f, "read", "{'path':'a.txt'}"), 0);
	assert_ok(f);
	assert_string_equal(said(f), "     1\tone\n     2\ttwo\n     3\tthree\n");
	assert_int_equal(f->result.exit_code, -1);
	assert_false(f->result.has_effects);
}

static void test_offset_and_limit(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.txt", "1\n2\n3\n4\n5\n");
	call(f, "read", "{'path':'a.txt','offset':2,'limit':2}");
	assert_string_equal(said(f),
			    "     2\t2\n     3\t3\n[lines 2 to 3 of 5; use offset and limit to "
			    "read on]\n");
	call(f, "read", "{'path':'a.txt','offset':9}");
	assert_says(f, "has only 5 lines");
}

/* T6: 2,000 lines unless asked for more, and the number of all of them. */
static void test_default_is_2000_lines(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	for (int i = 1; i <= 2500; i++)
		buf_addf(&text, "line %d\n", i);
	put(f, "long", text.data, text.len);
	call(f, "read", "{'path':'long'}");
	assert_says(f, "  2000\tline 2000\n");
	assert_says_not(f, "line 2001");
	assert_says(f, "lines 1 to 2000 of 2500");
}

static void test_long_line_is_cut_at_a_character(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	for (int i = 0; i < 1999; i++)
		buf_addc(&text, 'x');
	buf_adds(&text, "\xc3\xa9zz\nnext\n");
	put(f, "wide", text.data, text.len);
	call(f, "read", "{'path':'wide'}");
	assert_says(f, "x [4 more bytes in this line]\n     2\tnext\n");
	assert_true(text_is_utf8(said(f), f->result.text.len));
}

/* W7: however large the file and the limit, one read is bounded. */
static void test_result_is_bounded(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	for (int i = 0; i < 60000; i++)
		buf_adds(&text, "0123456789012345678901234567890\n");
	put(f, "big", text.data, text.len);
	call(f, "read", "{'path':'big','limit':100000}");
	assert_true(f->result.text.len < 101000);
	assert_says(f, "of 60000; use offset and limit");
}

static void test_empty_file_and_bom(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "empty", "");
	call(f, "read", "{'path':'empty'}");
	assert_says(f, "[empty is empty]");
	puts_file(f, "bom", "\xef\xbb\xbfint x;\r\n");
	call(f, "read", "{'path':'bom'}");
	assert_string_equal(said(f), "     1\tint x;\n");
}

/* Trap 89 (CESU-8 bytes) and 95 (Latin-1): shown as U+FFFD with a note; the text is valid UTF-8. */
static void test_trap_89_95_bad_utf8_is_shown(void **state)
{
	struct fixture *f = *state;
	put(f, "latin", "caf\xe9\n\xed\xa0\xbd!\n", 10);
	call(f, "read", "{'path':'latin'}");
	assert_ok(f);
	assert_says(f, "     1\tcaf\xef\xbf\xbd\n     2\t\xef\xbf\xbd!\n");
	assert_says(f, "not UTF-8");
	assert_true(text_is_utf8(said(f), f->result.text.len));
}

/* Trap 87: a file with NUL bytes is described, not dumped. */
static void test_trap_87_binary_is_described(void **state)
{
	struct fixture *f = *state;
	put(f, "prog",
	    "\x7f"
	    "ELF\0\0\0\0",
	    8);
	call(f, "read", "{'path':'prog'}");
	assert_ok(f);
	assert_says(f, "binary file, 8 bytes, an ELF program");
	assert_null(memchr(said(f), '\0', f->result.text.len));
}

/* Trap 95: a name with byte 0xFF comes back escaped, and can be given back so. */
static void test_trap_95_odd_names_round_trip(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "d/caf\xff.txt", "found\n");
	puts_file(f, "d/a\\x41b", "literal\n");
	puts_file(f, "d/new\nline", "two\n");
	call(f, "read", "{'path':'d'}");
	assert_says(f, "caf\\xff.txt\n");
	assert_says(f, "a\\x5cx41b\n");
	assert_says(f, "new\\x0aline\n");
	call(f, "read", "{'path':'d/caf\\\\xff.txt'}");
	assert_says(f, "found");
	call(f, "read", "{'path':'d/a\\\\x5cx41b'}");
	assert_says(f, "literal");
	call(f, "read", "{'path':'d/a\\\\x41b'}");
	assert_says(f, "literal");
	call(f, "read", "{'path':'d/new\\\\x0aline'}");
	assert_says(f, "two");
}

/* T11 */
static void test_folder_shows_size_and_time(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *link = in_tree(f, "link");
	puts_file(f, "sub/x", "1");
	puts_file(f, "file", "1234567");
	puts_file(f, ".git", "gitdir: x\n");
	assert_int_equal(symlink("file", link), 0);
	call(f, "read", "{'path':'.'}");
	assert_ok(f);
	assert_says(f, "  sub/\n");
	assert_says(f, "             7  file\n");
	assert_says(f, "  link -> file\n");
	assert_says(f, "\n20"); /* a year */
	assert_says_not(f, ".git");
}

static void test_results_and_scratch_can_be_read(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *path = mem_printf("%s/7.txt", f->results);
	FILE *file = fopen(path, "w");
	fputs("stored\n", file);
	fclose(file);
	call(f, "read", "{'path':'results:7.txt'}");
	assert_says(f, "stored");
	call(f, "read", "{'path':'%s'}", path);
	assert_says(f, "stored");
	call(f, "read", "{'path':'results:8.txt'}");
	assert_error(f);
}

static void test_missing_file_is_an_error(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(call(f, "read", "{'path':'nowhere.c'}"), 0);
	assert_error(f);
	assert_says(f, "nowhere.c");
	call(f, "read", "{'path':'a\\u0000b'}");
	assert_error(f);
}

static const char png[] = "\x89PNG\r\n\x1a\n rest";

static void test_image_without_the_program_is_an_error(void **state)
{
	struct fixture *f = *state;
	put(f, "p.png", png, sizeof(png) - 1);
	call(f, "read", "{'path':'p.png'}");
	assert_error(f);
	assert_says(f, "baton-image");
}

/* W6: the file goes through the image program, which a script plays here. */
static void test_image_goes_through_the_program(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *program = mem_printf("%s/image", f->top);
	FILE *file = fopen(program, "w");
	fputs("#!/bin/sh\n[ \"$1\" = 2000 ] || exit 3\n"
	      "echo '{\"media_type\":\"image/png\",\"width\":3,\"height\":2,\"tokens\":1}'\n"
	      "head -c 4 | tr '\\211' 'X'\n",
	      file);
	fclose(file);
	assert_int_equal(chmod(program, 0755), 0);
	f->settings.image_program = program;
	fixture_restart(f);
	put(f, "p.png", png, sizeof(png) - 1);
	assert_int_equal(call(f, "read", "{'path':'p.png'}"), 0);
	assert_ok(f);
	assert_int_equal(f->result.n_images, 1);
	assert_string_equal(f->result.images[0].media_type, "image/png");
	assert_string_equal(f->result.images[0].base64, "WFBORw==");
	assert_int_equal(f->result.images[0].base64_len, 8);
	assert_says(f, "3 x 2 pixels");
	assert_int_equal(count_zombies(), 0);
	f->settings.image_program = "/bin/false";
	fixture_restart(f);
	call(f, "read", "{'path':'p.png'}");
	assert_error(f);
	assert_says(f, "cannot be");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_lines_are_numbered),
		T(test_offset_and_limit),
		T(test_default_is_2000_lines),
		T(test_long_line_is_cut_at_a_character),
		T(test_result_is_bounded),
		T(test_empty_file_and_bom),
		T(test_trap_89_95_bad_utf8_is_shown),
		T(test_trap_87_binary_is_described),
		T(test_trap_95_odd_names_round_trip),
		T(test_folder_shows_size_and_time),
		T(test_results_and_scratch_can_be_read),
		T(test_missing_file_is_an_error),
		T(test_image_without_the_program_is_an_error),
		T(test_image_goes_through_the_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
