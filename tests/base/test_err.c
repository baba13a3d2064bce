/* err: codes, errno, prefixes, cutting at a character. */
#include "test_base.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/text.h"

static void test_set_formats_and_returns_minus_one(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(err_set(&err, ERR_INVALID, "bad '%s' %d", "x", 7), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(err.sys, 0);
	assert_string_equal(err.message, "bad 'x' 7");
	assert_int_equal(err_set(NULL, ERR_INVALID, "x"), -1);
	assert_int_equal(err_sys(NULL, "x"), -1);
	assert_int_equal(err_prefix(NULL, "x"), -1);
}

static void test_io_keeps_errno_and_knows_full_disks(void **state)
{
	struct err err = ERR_INIT;
	errno = EIO;
	err_set(&err, ERR_IO, "cannot write");
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(err.sys, EIO);
	errno = ENOSPC;
	err_set(&err, ERR_IO, "cannot write");
	assert_int_equal(err.code, ERR_NO_SPACE);
	errno = EDQUOT;
	err_set(&err, ERR_IO, "cannot write");
	assert_int_equal(err.code, ERR_NO_SPACE);
}

static void test_sys_maps_errno(void **state)
{
	static const struct {
		int number;
		enum err_code code;
	} cases[] = {
		{ENOENT, ERR_NOT_FOUND}, {EEXIST, ERR_EXISTS},	 {EACCES, ERR_DENIED},
		{EPERM, ERR_DENIED},	 {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE},
		{EFBIG, ERR_NO_SPACE},	 {EIO, ERR_IO},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		errno = cases[i].number;
		assert_int_equal(err_sys(&err, "cannot open '%s'", "p"), -1);
		assert_int_equal(err.code, cases[i].code);
		assert_int_equal(err.sys, cases[i].number);
	}
	struct err err = ERR_INIT;
	errno = ENOENT;
	err_sys(&err, "cannot open '%s'", "p");
	assert_string_equal(err.message, "cannot open 'p': No such file or directory");
}

/* A limit of this process is named with its value and what raises it. */
static void test_limits_are_named(void **state)
{
	struct rlimit old, small;
	struct err err = ERR_INIT;

	getrlimit(RLIMIT_NOFILE, &old);
	small = old;
	small.rlim_cur = 77;
	setrlimit(RLIMIT_NOFILE, &small);
	errno = EMFILE;
	err_sys(&err, "cannot open '%s'", "p");
	setrlimit(RLIMIT_NOFILE, &old);
	assert_string_equal(err.message, "cannot open 'p': Too many open files (a process may have "
					 "77; 'ulimit -n' raises it)");
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 1024;
	setrlimit(RLIMIT_FSIZE, &small);
	errno = EFBIG;
	err_sys(&err, "cannot write");
	setrlimit(RLIMIT_FSIZE, &old);
	assert_string_equal(err.message, "cannot write: File too large (no file may be over 1024 "
					 "bytes; 'ulimit -f' raises it)");
	errno = ENFILE;
	err_sys(&err, "cannot open");
	assert_non_null(strstr(err.message, "fs.file-max"));
}

static void test_prefix_keeps_the_code(void **state)
{
	struct err err = ERR_INIT;
	errno = ENOENT;
	err_sys(&err, "inner");
	assert_int_equal(err_prefix(&err, "outer %d", 1), -1);
	assert_string_equal(err.message, "outer 1: inner: No such file or directory");
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_prefix(&err, "%s", err.message); /* quotes itself */
	assert_true(text_starts(err.message, "outer 1: inner"));
}

static void test_long_message_is_cut_at_a_character(void **state)
{
	for (size_t lead = 0; lead < 4; lead++) {
		AUTO_BUF struct buf text = BUF_INIT;
		for (size_t i = 0; i < lead; i++)
			buf_addc(&text, 'x');
		while (text.len < 700)
			buf_adds(&text, "\xe2\x82\xac");
		struct err err = ERR_INIT;
		err_set(&err, ERR_INVALID, "%s", text.data);
		assert_true(strlen(err.message) > 500);
		assert_true(text_is_utf8(err.message, strlen(err.message)));
		err_prefix(&err, "ab");
		assert_true(text_is_utf8(err.message, strlen(err.message)));
		assert_true(text_starts(err.message, "ab: "));
	}
}

static void test_every_code_has_a_name(void **state)
{
	for (int code = ERR_NONE; code <= ERR_NO_SPACE; code++)
		assert_string_not_equal(err_code_name((enum err_code)code), "unknown");
	assert_string_equal(err_code_name((enum err_code)999), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_formats_and_returns_minus_one),
		cmocka_unit_test(test_io_keeps_errno_and_knows_full_disks),
		cmocka_unit_test(test_sys_maps_errno),
		cmocka_unit_test(test_limits_are_named),
		cmocka_unit_test(test_prefix_keeps_the_code),
		cmocka_unit_test(test_long_message_is_cut_at_a_character),
		cmocka_unit_test(test_every_code_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
