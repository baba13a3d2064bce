/* buf: counted bytes, maximum, all or nothing. */
#include "test_base.h"

#include <errno.h>
#include <fcntl.h>

static void test_nul_bytes_are_data(void **state)
{
	AUTO_BUF struct buf buf = BUF_INIT;
	assert_string_equal(buf_str(&buf), "");
	buf_add(&buf, "a\0b", 3);
	buf_addc(&buf, '\0');
	assert_int_equal(buf.len, 4);
	assert_memory_equal(buf.data, "a\0b\0", 5);
}

static void test_append_is_all_or_nothing_at_the_maximum(void **state)
{
	AUTO_BUF struct buf buf = BUF_INIT_MAX(10);
	assert_int_equal(buf_adds(&buf, "12345678"), 0);
	assert_int_equal(buf_adds(&buf, "90x"), -1);
	assert_true(buf.overflow);
	assert_string_equal(buf.data, "12345678");
	assert_int_equal(buf_addf(&buf, "%d", 123), -1);
	assert_string_equal(buf.data, "12345678");
	assert_int_equal(buf_addf(&buf, "%d", 90), 0);
	assert_string_equal(buf.data, "1234567890");
	buf_clear(&buf);
	assert_false(buf.overflow);
	assert_int_equal(buf_add(&buf, "x", SIZE_MAX), -1);
}

static void test_formats_of_any_length(void **state)
{
	AUTO_BUF struct buf buf = BUF_INIT;
	for (int width = 250; width < 262; width++) {
		buf_clear(&buf);
		assert_int_equal(buf_addf(&buf, "%0*d", width, 7), 0);
		assert_int_equal(buf.len, width);
		assert_int_equal(buf.data[width - 1], '7');
		assert_int_equal(buf.data[width], 0);
	}
}

static void test_drop_and_truncate(void **state)
{
	AUTO_BUF struct buf buf = BUF_INIT;
	buf_drop(&buf, 3);
	buf_adds(&buf, "abcdef");
	buf_drop(&buf, 2);
	assert_string_equal(buf.data, "cdef");
	buf_truncate(&buf, 9);
	buf_truncate(&buf, 3);
	assert_string_equal(buf.data, "cde");
	buf_drop(&buf, 3);
	assert_string_equal(buf.data, "");
}

static void test_take_leaves_an_empty_buffer(void **state)
{
	AUTO_BUF struct buf buf = BUF_INIT_MAX(100);
	AUTO_FREE char *empty = buf_take(&buf);
	assert_string_equal(empty, "");
	buf_adds(&buf, "abc");
	AUTO_FREE char *taken = buf_take(&buf);
	assert_string_equal(taken, "abc");
	assert_int_equal(buf.len, 0);
	assert_int_equal(buf.max, 100);
	buf_adds(&buf, "def");
	assert_string_equal(taken, "abc");
}

static void test_read(void **state)
{
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	AUTO_BUF struct buf buf = BUF_INIT_MAX(6);
	assert_int_equal(write(fds[1], "abcdefgh", 8), 8);
	assert_int_equal(buf_read(&buf, fds[0], 4), 4);
	assert_int_equal(buf_read(&buf, fds[0], 4), 2); /* the maximum */
	assert_string_equal(buf.data, "abcdef");
	assert_int_equal(buf_read(&buf, fds[0], 4), -1);
	assert_int_equal(errno, EOVERFLOW);
	buf_clear(&buf);
	assert_int_equal(buf_read(&buf, fds[0], 4), 2);
	assert_int_equal(buf_read(&buf, fds[0], 4), -1);
	assert_int_equal(errno, EAGAIN);
	close(fds[1]);
	assert_int_equal(buf_read(&buf, fds[0], 4), 0);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nul_bytes_are_data),
		cmocka_unit_test(test_append_is_all_or_nothing_at_the_maximum),
		cmocka_unit_test(test_formats_of_any_length),
		cmocka_unit_test(test_drop_and_truncate),
		cmocka_unit_test(test_take_leaves_an_empty_buffer),
		cmocka_unit_test(test_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
