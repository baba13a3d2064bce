/*
 * test_tail.c - whole lines of a file that grows, however its bytes arrive.
 */
#include "tests/base/test_base.h"

#include <fcntl.h>

#include "orchestrator/view/tail.h"

struct lines {
	struct buf text; /* each line and a '|' */
	int n;
};

static void on_line(const char *line, size_t n, void *arg)
{
	struct lines *lines = arg;

	buf_add(&lines->text, line, n);
	buf_addc(&lines->text, '|');
	lines->n++;
}

static void append(const char *path, const char *bytes, size_t n)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, n, NULL), 0);
}

static void read_all(struct tail *tail, struct lines *lines)
{
	struct err err = ERR_INIT;

	if (tail_read(tail, on_line, lines, &err) < 0)
		fail_msg("%s", err.message);
}

static void test_half_lines_wait(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct lines lines = {.text = BUF_INIT};
	struct tail tail;

	append(path, "one\ntw", 6);
	assert_int_equal(tail_open(&tail, path, NULL), 0);
	read_all(&tail, &lines);
	assert_string_equal(buf_str(&lines.text), "one|");
	read_all(&tail, &lines);
	assert_int_equal(lines.n, 1);
	append(path, "o", 1);
	read_all(&tail, &lines);
	assert_int_equal(lines.n, 1);
	append(path, "\n\nthree\n", 8);
	read_all(&tail, &lines);
	assert_string_equal(buf_str(&lines.text), "one|two||three|");
	tail_release(&tail);
	buf_release(&lines.text);
}

/* The lines are the same for every split of the bytes. */
static void test_any_split(void **state)
{
	static const char bytes[] = "{\"a\":1}\n\n{\"b\":\"\xc3\xa9\"}\nlast";
	size_t n = sizeof(bytes) - 1;

	for (size_t cut = 0; cut <= n; cut++) {
		AUTO_FREE char *path = mem_printf("%s/%zu", (char *)*state, cut);
		struct lines lines = {.text = BUF_INIT};
		struct tail tail;
		append(path, bytes, cut);
		assert_int_equal(tail_open(&tail, path, NULL), 0);
		read_all(&tail, &lines);
		append(path, bytes + cut, n - cut);
		read_all(&tail, &lines);
		assert_string_equal(buf_str(&lines.text), "{\"a\":1}||{\"b\":\"\xc3\xa9\"}|");
		tail_release(&tail);
		buf_release(&lines.text);
	}
}

static void test_long_and_many_lines(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct lines lines = {.text = BUF_INIT};
	struct tail tail;

	for (int i = 0; i < 200000; i++)
		buf_addc(&bytes, 'x');
	buf_addc(&bytes, '\n');
	for (int i = 0; i < 50000; i++)
		buf_addf(&bytes, "line %d\n", i);
	append(path, bytes.data, bytes.len);
	assert_int_equal(tail_open(&tail, path, NULL), 0);
	read_all(&tail, &lines);
	assert_int_equal(lines.n, 50001);
	assert_int_equal(lines.text.len, bytes.len);
	tail_release(&tail);
	buf_release(&lines.text);
}

static void test_missing_file(void **state)
{
	AUTO_FREE char *path = file_join(*state, "none");
	struct tail tail;
	struct err err = ERR_INIT;

	assert_int_equal(tail_open(&tail, path, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	tail_release(&tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(test_half_lines_wait),
		folder_test(test_any_split),
		folder_test(test_long_and_many_lines),
		folder_test(test_missing_file),
	};
	return cmocka_run_group_tests_name("orchestrator/tail", tests, NULL, NULL);
}
