/* log: one printable line per call (I12), levels, nothing lost of errno. */
#include "test_base.h"

#include <errno.h>
#include <fcntl.h>

#include "base/log.h"
#include "base/text.h"

static int reader;

static int log_setup(void **state)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	reader = fds[0];
	*state = mem_dup(&fds[1], sizeof(int));
	log_init("agent a1", LOG_INFO);
	log_set_fd(fds[1]);
	return 0;
}

static int log_teardown(void **state)
{
	log_set_fd(2);
	close(reader);
	close(*(int *)*state);
	free(*state);
	return 0;
}

static void test_line(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	errno = EBUSY;
	log_warn("tool '%s' said %s", "x", "a\033[31mred\033[0m\nb\xff");
	assert_int_equal(errno, EBUSY);
	assert_true(buf_read(&text, reader, 4096) > 0);
	assert_true(text_ends(text.data, "Z agent a1 warning: tool 'x' said ared b\xef\xbf\xbd\n"));
	assert_int_equal(text_count_lines(text.data, text.len), 1);
}

static void test_level(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	assert_false(log_is_verbose());
	log_debug("not seen");
	assert_int_equal(buf_read(&text, reader, 4096), -1);
	log_info("seen");
	assert_true(buf_read(&text, reader, 4096) > 0);
}

/* A run's stderr.log has a cap: what does not fit is told once and not written. */
static void test_limit(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	log_set_limit(300);
	for (int i = 0; i < 100; i++)
		log_warn("line %d", i);
	log_set_limit(0);
	assert_true(buf_read(&text, reader, 65536) > 0);
	assert_true(text.len < 400);
	assert_true(
		text_ends(text.data, "(the log has reached its limit; no more of it is kept)\n"));
	log_warn("again without");
	assert_true(buf_read(&text, reader, 65536) > 0);
}

/* --verbose stands above what a process says about its level, whichever came first. */
static void test_verbose(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	log_be_verbose();
	log_init("agent a1", LOG_WARN);
	log_debug("seen");
	assert_true(buf_read(&text, reader, 4096) > 0);
}

static void test_long_line_is_cut(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *longer = mem_alloc(20001);
	for (int i = 0; i < 10000; i++)
		memcpy(longer + i * 2, "\xc3\xa9", 2);
	log_error("x%s", longer);
	assert_true(buf_read(&text, reader, 65536) > 4000);
	assert_true(text.len < 5000);
	assert_true(text_is_utf8(text.data, text.len));
	assert_int_equal(text.data[text.len - 1], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_line, log_setup, log_teardown),
		cmocka_unit_test_setup_teardown(test_level, log_setup, log_teardown),
		cmocka_unit_test_setup_teardown(test_long_line_is_cut, log_setup, log_teardown),
		cmocka_unit_test_setup_teardown(test_limit, log_setup, log_teardown),
		cmocka_unit_test_setup_teardown(test_verbose, log_setup, log_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
