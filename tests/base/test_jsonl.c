/* jsonl: torn and bad lines (traps 138, 140), short writes, broken writers (I10). */
#include "test_base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/text.h"

enum { LINE_MAX_BYTES = 1 << 20 };

/* The linker leads the writer's fdatasync here (meson.build): no file system fails on request. */
int __wrap_fdatasync(int fd);
int __real_fdatasync(int fd);
static int failing_syncs, syncs;

int __wrap_fdatasync(int fd)
{
	syncs++;
	if (failing_syncs == 0)
		return __real_fdatasync(fd);
	failing_syncs--;
	errno = EIO;
	return -1;
}

static int64_t fixed_time(void *arg)
{
	return INT64_C(1796036272123);
}

static void read_all(const char *path, struct buf *out)
{
	buf_clear(out);
	assert_int_equal(file_read(AT_FDCWD, path, 1 << 24, out, NULL), 0);
}

static void append_raw(const char *path, const char *s, size_t n)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, s, n, NULL), 0);
}

struct seen {
	struct buf names; /* "name@offset " */
	int stop_at;
};

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct seen *seen = arg;
	buf_addf(&seen->names, "%s@%lld ", json_str(record, "type", "-"), (long long)offset);
	return --seen->stop_at == 0 ? 42 : 0;
}

static struct jsonl_writer *open_writer(const char *path)
{
	struct jsonl_writer *w = NULL;
	struct err err = ERR_INIT;
	if (jsonl_open(path, &w, &err) < 0)
		fail_msg("%s", err.message);
	return w;
}

static void add(struct jsonl_writer *w, const char *type)
{
	jsonl_begin(w, type);
	jsonl_end(w);
}

static void test_records_and_batches(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	AUTO_BUF struct buf text = BUF_INIT;
	clock_fake(NULL, fixed_time, NULL);
	struct jsonl_writer *w = open_writer(path);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	struct buf *out = jsonl_begin(w, "a\"b");
	buf_adds(out, ",\"n\":1");
	jsonl_end(w);
	AUTO_JSON struct json_object *members = json_object_new_object();
	json_set_str(members, "text", "x\ny");
	jsonl_add(w, "c", members);
	read_all(path, &text);
	assert_int_equal(text.len, 0); /* nothing before the flush */
	assert_true(jsonl_pending(w));
	assert_int_equal(jsonl_flush(w, true, NULL), 0);
	assert_false(jsonl_pending(w));
	read_all(path, &text);
	assert_string_equal(
		text.data,
		"{\"t\":\"2026-11-30T10:57:52.123Z\",\"type\":\"a\\\"b\",\"n\":1}\n"
		"{\"t\":\"2026-11-30T10:57:52.123Z\",\"type\":\"c\",\"text\":\"x\\ny\"}\n");
	assert_int_equal(jsonl_offset(w), text.len);
	add(w, "d");
	jsonl_begin(w, "unfinished"); /* is never written */
	jsonl_close(w);
	read_all(path, &text);
	assert_int_equal(text_count_lines(text.data, text.len), 3);
	assert_true(text_ends(text.data, "\"d\"}\n"));
	clock_fake(NULL, NULL, NULL);
}

/* Trap 138: line 40 of 100 is cut in the middle; 41 to 100 are loaded and the line is named. */
static void test_trap_138_bad_lines_are_isolated(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct seen seen = {.names = BUF_INIT};
	struct jsonl_stats stats;
	for (int i = 1; i <= 100; i++)
		append_raw(path, i == 40 ? "{\"type\":\"a\n" : "{\"type\":\"a\"}\n",
			   i == 40 ? 11 : 13);
	assert_int_equal(jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &seen, &stats, NULL), 0);
	assert_int_equal(stats.records, 99);
	assert_int_equal(stats.bad_lines, 1);
	assert_int_equal(stats.first_bad_line, 40);
	buf_release(&seen.names);
}

static void test_reader_finds_offsets_and_every_kind_of_bad_line(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct seen seen = {.names = BUF_INIT};
	struct jsonl_stats stats;
	static const char text[] = "{\"type\":\"a\"}\n"	  /* 0 */
				   "[1]\n"		  /* 13: no object */
				   "\0\0\0\0\n"		  /* 17: a crash's zeros */
				   "\n"			  /* 22: blank, not bad */
				   "{\"type\":\"b\"}\r\n" /* 23 */
				   "{\"type\":\"c\"}\n"	  /* 37 */
				   "{\"type\":\"d\"}";	  /* 50: torn */
	append_raw(path, text, sizeof(text) - 1);
	assert_int_equal(jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &seen, &stats, NULL), 0);
	assert_string_equal(seen.names.data, "a@0 b@23 c@37 ");
	assert_int_equal(stats.bad_lines, 3);
	assert_int_equal(stats.first_bad_line, 2);
	buf_clear(&seen.names);
	assert_int_equal(jsonl_read(path, 37, LINE_MAX_BYTES, on_record, &seen, &stats, NULL), 0);
	assert_string_equal(seen.names.data, "c@37 ");
	assert_int_equal(stats.bad_lines, 1);
	buf_clear(&seen.names);
	seen.stop_at = 2;
	assert_int_equal(jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &seen, NULL, NULL), 42);
	assert_string_equal(seen.names.data, "a@0 b@23 ");
	buf_release(&seen.names);
	struct err err = ERR_INIT;
	assert_int_equal(jsonl_read("/nonexistent/x", 0, 9, on_record, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static bool holds_b(const char *line, size_t n, void *arg)
{
	return memchr(line, 'b', n) != NULL;
}

static void test_search_parses_what_is_wanted(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct seen seen = {.names = BUF_INIT};
	struct jsonl_stats stats;
	static const char text[] =
		"{\"type\":\"a\"}\n{\"type\":\"b\"}\n{\"typ}\n{b}\n{\"type\":\"b2\"}\n";

	append_raw(path, text, sizeof(text) - 1);
	assert_int_equal(
		jsonl_search(path, LINE_MAX_BYTES, holds_b, on_record, &seen, &stats, NULL), 0);
	assert_string_equal(seen.names.data, "b@13 b2@37 ");
	assert_int_equal(stats.records, 2);
	assert_int_equal(stats.bad_lines, 1); /* of those that were wanted */
	assert_int_equal(stats.first_bad_line, 4);
	buf_release(&seen.names);
}

/* Lines longer than the maximum, longer than a read, and in between. */
static void test_long_lines(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	static const size_t sizes[] = {99, 100, 101, 70000, 200000};
	AUTO_BUF struct buf line = BUF_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		buf_clear(&line);
		buf_adds(&line, "{\"type\":\"");
		while (line.len < sizes[i] - 2)
			buf_addc(&line, 'x');
		buf_adds(&line, "\"}\n");
		append_raw(path, line.data, line.len);
	}
	append_raw(path, "{\"type\":\"end\"}\n", 15);
	static const struct {
		size_t max;
		int64_t good;
	} cases[] = {{99, 2}, {100, 3}, {101, 4}, {150000, 5}, {200000, 6}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct seen seen = {.names = BUF_INIT};
		struct jsonl_stats stats;
		assert_int_equal(jsonl_read(path, 0, cases[i].max, on_record, &seen, &stats, NULL),
				 0);
		assert_int_equal(stats.records, cases[i].good);
		assert_int_equal(stats.bad_lines, 6 - cases[i].good);
		assert_true(text_ends(seen.names.data, "end@270305 "));
		buf_release(&seen.names);
	}
}

/* Trap 140: the last record is cut in half at every byte; what is appended later is whole. */
static void test_trap_140_torn_last_line_is_ended(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	static const char record[] = "{\"type\":\"old\"}\n";
	for (size_t cut = 1; cut < sizeof(record); cut++) {
		unlink(path);
		append_raw(path, record, sizeof(record) - 1);
		append_raw(path, record, cut);
		struct jsonl_writer *w = open_writer(path);
		add(w, "new1");
		assert_int_equal(jsonl_flush(w, false, NULL), 0);
		add(w, "new2");
		jsonl_close(w);
		w = open_writer(path); /* a second resume finds a whole file */
		AUTO_BUF struct buf text = BUF_INIT;
		read_all(path, &text);
		assert_int_equal(jsonl_offset(w), text.len);
		jsonl_close(w);
		struct seen seen = {.names = BUF_INIT};
		struct jsonl_stats stats;
		jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &seen, &stats, NULL);
		bool whole = cut >= sizeof(record) - 2; /* with or without its newline */
		assert_int_equal(stats.records, whole ? 4 : 3);
		assert_int_equal(stats.bad_lines, whole ? 0 : 1);
		assert_non_null(strstr(seen.names.data, "new1@"));
		assert_non_null(strstr(seen.names.data, "new2@"));
		buf_release(&seen.names);
	}
}

/* I10: a short write is truncated back and reported; with room again, the batch follows in order.
 */
static void test_i10_short_write_is_taken_back(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct rlimit old, small;
	sigaction(SIGXFSZ, &ignore, &before);
	struct jsonl_writer *w = open_writer(path);
	add(w, "first");
	assert_int_equal(jsonl_flush(w, true, NULL), 0);
	int64_t whole = jsonl_offset(w);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = (rlim_t)whole + 10;
	add(w, "second");
	add(w, "third");
	struct err err = ERR_INIT;
	setrlimit(RLIMIT_FSIZE, &small);
	int rc = jsonl_flush(w, true, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
	assert_int_equal(err.sys, EFBIG); /* not the disk's fault */
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, whole); /* no half record */
	assert_int_equal(jsonl_offset(w), whole);
	assert_true(jsonl_pending(w));
	assert_int_equal(jsonl_flush(w, true, &err), 0);
	jsonl_close(w);
	struct seen seen = {.names = BUF_INIT};
	struct jsonl_stats stats;
	jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &seen, &stats, NULL);
	assert_int_equal(stats.records, 3);
	assert_int_equal(stats.bad_lines, 0);
	assert_true(text_starts(seen.names.data, "first@0 second@"));
	buf_release(&seen.names);
	sigaction(SIGXFSZ, &before, NULL);
}

/* I10: a failed sync is never repeated: the writer stays broken, though the next one would succeed.
 */
static void test_i10_failed_sync_breaks_the_writer(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct jsonl_writer *w = open_writer(path);
	struct err err = ERR_INIT;
	syncs = 0;
	add(w, "a");
	assert_int_equal(jsonl_flush(w, false, &err), 0);
	assert_int_equal(syncs, 0);
	add(w, "b");
	failing_syncs = 1;
	assert_int_equal(jsonl_flush(w, true, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(err.sys, EIO);
	add(w, "c");
	struct err again = ERR_INIT;
	assert_int_equal(jsonl_flush(w, true, &again), -1);
	assert_string_equal(again.message, err.message);
	assert_int_equal(jsonl_flush(w, false, NULL), -1);
	assert_int_equal(syncs, 1);
	jsonl_close(w);
	AUTO_BUF struct buf text = BUF_INIT;
	read_all(path, &text);
	assert_null(strstr(text.data, "\"c\""));
}

static void test_open_refuses_what_is_no_file(void **state)
{
	struct jsonl_writer *w = NULL;
	struct err err = ERR_INIT;
	AUTO_FREE char *missing = file_join(*state, "no/run.jsonl");
	assert_int_equal(jsonl_open(missing, &w, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(jsonl_open(*state, &w, &err), -1);
	AUTO_FREE char *link = file_join(*state, "link.jsonl");
	AUTO_FREE char *target = file_join(*state, "target");
	append_raw(target, "", 0);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(jsonl_open(link, &w, &err), -1);
	assert_int_equal(jsonl_open("/dev/full", &w, &err), -1);
	assert_null(w);
	jsonl_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(test_records_and_batches),
		folder_test(test_trap_138_bad_lines_are_isolated),
		folder_test(test_reader_finds_offsets_and_every_kind_of_bad_line),
		folder_test(test_search_parses_what_is_wanted),
		folder_test(test_long_lines),
		folder_test(test_trap_140_torn_last_line_is_ended),
		folder_test(test_i10_short_write_is_taken_back),
		folder_test(test_i10_failed_sync_breaks_the_writer),
		folder_test(test_open_refuses_what_is_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
