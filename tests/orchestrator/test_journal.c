/*
 * test_journal.c - group commit, what waits for it, and a disk that is full (I5, I10).
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/jsonl.h"
#include "orchestrator/journal.h"

/* Counts syncs; the real call is made all the same. */
static int syncs;

int fdatasync(int fd)
{
	syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

static char *content(const char *path)
{
	struct buf out = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &out, NULL), 0);
	return out.data ? buf_take(&out) : mem_strdup("");
}

static struct journal *open_journal(void **state, char **ret_path)
{
	struct journal *j = NULL;
	struct err err = ERR_INIT;

	*ret_path = file_join(*state, "run.jsonl");
	if (journal_open(*ret_path, &j, &err) < 0)
		fail_msg("%s", err.message);
	return j;
}

static int keep_record(struct json_object *record, int64_t offset, void *arg)
{
	json_object_array_add(arg, json_object_get(record));
	return 0;
}

static struct json_object *records(const char *path)
{
	struct json_object *list = json_object_new_array();
	struct jsonl_stats stats = {0};

	assert_int_equal(jsonl_read(path, 0, 1 << 20, keep_record, list, &stats, NULL), 0);
	assert_int_equal(stats.bad_lines, 0);
	return list;
}

static void test_kinds_of_fields(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);
	AUTO_JSON struct json_object *tree = json_object_new_object();

	json_set_i64(tree, "k", 1);
	journal_add(j, RECORD_RUN_BASE, "text:s none:s n:i cost:d yes:b no:b tree:j null:j",
		    "a\"\n\x01\xff", NULL, INT64_MIN, 0.25, 1, 0, tree, NULL);
	journal_add(j, RECORD_RUN_STOPPING, "");
	journal_close(j);
	AUTO_JSON struct json_object *list = records(path);
	struct json_object *r = json_at(list, 0);
	assert_int_equal(json_len(list), 2);
	assert_string_equal(json_str(r, "type", ""), "run.base");
	assert_string_equal(json_str(r, "text", ""), "a\"\n\x01\xef\xbf\xbd");
	assert_false(json_has(r, "none"));
	assert_true(json_i64(r, "n", 0) == INT64_MIN);
	assert_true(json_double(r, "cost", 0) == 0.25);
	assert_true(json_flag(r, "yes", false));
	assert_false(json_flag(r, "no", true));
	assert_int_equal(json_i64(json_obj(r, "tree"), "k", 0), 1);
	assert_false(json_has(r, "null"));
}

static void test_nothing_is_written_before_the_commit(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);

	assert_false(journal_pending(j));
	journal_add(j, RECORD_RUN_STOPPING, "");
	journal_add(j, RECORD_RUN_STOPPING, "");
	assert_true(journal_pending(j));
	AUTO_FREE char *before = content(path);
	assert_string_equal(before, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_false(journal_pending(j));
	AUTO_JSON struct json_object *list = records(path);
	assert_int_equal(json_len(list), 2);
	journal_close(j);
}

/* One sync for a turn with a durable record, none for a turn of mere events. */
static void test_group_commit(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);

	syncs = 0;
	for (int i = 0; i < 10; i++)
		journal_add(j, RECORD_RUN_STOPPING, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(syncs, 0);
	journal_add(j, RECORD_RUN_BASE, "");
	for (int i = 0; i < 10; i++)
		journal_add(j, RECORD_RUN_STOPPING, "");
	journal_add(j, RECORD_RUN_BASE, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(syncs, 1);
	journal_add(j, RECORD_RUN_STOPPING, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(syncs, 1);
	journal_close(j);
}

/* ---- what waits ---- */

struct waiter {
	struct journal *journal;
	const char *path;
	int order, syncs_seen;
	size_t records_seen;
	bool again;
};
static int next_order;

static void on_safe(void *arg)
{
	struct waiter *w = arg;
	AUTO_JSON struct json_object *list = records(w->path);

	w->order = ++next_order;
	w->syncs_seen = syncs;
	w->records_seen = json_len(list);
	if (w->again) {
		w->again = false;
		journal_add(w->journal, RECORD_RUN_BASE, "");
		journal_defer(w->journal, on_safe, w);
	}
}

/* The answer to an agent leaves when its record is on the disk, in the order of the requests. */
static void test_deferred_after_durable(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);
	struct waiter first = {j, path}, second = {j, path};

	syncs = next_order = 0;
	journal_add(j, RECORD_RUN_BASE, "");
	journal_defer(j, on_safe, &first);
	journal_defer(j, on_safe, &second);
	assert_true(journal_pending(j));
	assert_int_equal(first.order, 0);
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(first.order, 1);
	assert_int_equal(second.order, 2);
	assert_int_equal(first.syncs_seen, 1);
	assert_int_equal(first.records_seen, 1);
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(first.order, 1); /* once */
	journal_close(j);
}

static void test_deferred_calls_may_add(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);
	struct waiter w = {j, path, .again = true};

	next_order = 0;
	journal_defer(j, on_safe, &w);
	assert_true(journal_pending(j));
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(w.order, 1);
	assert_int_equal(w.records_seen, 0);
	assert_true(journal_pending(j)); /* what it added goes into the next commit */
	assert_int_equal(journal_commit(j, NULL), 0);
	assert_int_equal(w.order, 2);
	assert_int_equal(w.records_seen, 1);
	journal_close(j);
}

static void test_close_commits(void **state)
{
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);
	struct waiter w = {j, path};

	journal_add(j, RECORD_RUN_BASE, "");
	journal_defer(j, on_safe, &w);
	journal_close(j);
	assert_true(w.order > 0);
	AUTO_JSON struct json_object *list = records(path);
	assert_int_equal(json_len(list), 1);
	journal_close(NULL);
}

/* ---- a full disk ---- */

/* A record that cannot be written: no effect may follow it, and nothing is promised any more. */
static void test_full_disk_breaks_the_journal(void **state)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	struct rlimit before, small = {400, 400};
	AUTO_FREE char *path = NULL;
	struct journal *j = open_journal(state, &path);
	struct waiter w = {j, path};
	struct err err = ERR_INIT;

	sigaction(SIGXFSZ, &ignore, &old);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	journal_add(j, RECORD_RUN_BASE, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	AUTO_FREE char *whole = content(path);
	for (int i = 0; i < 20; i++)
		journal_add(j, RECORD_RUN_BASE, "n:i", (int64_t)i);
	journal_defer(j, on_safe, &w);
	setrlimit(RLIMIT_FSIZE, &small);
	int rc = journal_commit(j, &err);
	setrlimit(RLIMIT_FSIZE, &before);
	sigaction(SIGXFSZ, &old, NULL);
	assert_int_equal(rc, -1);
	assert_int_equal(w.order, 0);
	/* The short write is taken back, so what is there is whole (I10). */
	AUTO_FREE char *after = content(path);
	assert_string_equal(after, whole);
	/* There is room again, and still nothing is promised. */
	assert_false(journal_pending(j));
	journal_add(j, RECORD_RUN_BASE, "commit:s", "late");
	assert_int_equal(journal_commit(j, &err), -1);
	journal_close(j);
	assert_int_equal(w.order, 0);
	AUTO_FREE char *end = content(path);
	assert_null(strstr(end, "late"));
}

/* In a file system of its own, of 2 MB. 77: not allowed here. */
static int fill_a_disk(void *arg)
{
	AUTO_FREE char *path = file_join(arg, "run.jsonl");
	AUTO_FREE char *reserve = file_join(arg, "run.jsonl.reserve");
	AUTO_FREE char *junk = file_join(arg, "junk");
	struct journal *j;
	struct stat st;
	static char block[65536];

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", arg, "tmpfs", 0, "size=2m") < 0)
		return 77;
	if (journal_open(path, &j, NULL) < 0 || stat(reserve, &st) < 0 || st.st_blocks == 0)
		return 1;
	AUTO_FD int fd = open(junk, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, block, sizeof(block)) > 0)
		;
	for (int i = 0; i < 200; i++)
		journal_add(j, RECORD_RUN_BASE, "text:s",
			    "more than the rest of a page holds in the end, surely");
	if (journal_commit(j, NULL) < 0 || !journal_low(j) || !strstr(journal_low(j), path))
		return 2;
	journal_add(j, RECORD_RUN_BASE, "");
	if (journal_commit(j, NULL) < 0 || stat(reserve, &st) == 0)
		return 3;
	journal_close(j);
	AUTO_JSON struct json_object *list = records(path);
	return json_len(list) == 201 ? 0 : 4;
}

/* The end of a run is written although the disk is full, and no record is half. */
static void test_the_reserve_is_for_the_end(void **state)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fill_a_disk(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A process that dies between the last record and its own end leaves no reserve behind. */
static void test_no_reserve_behind_the_last_record(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	AUTO_FREE char *reserve = file_join(*state, "run.jsonl.reserve");
	struct journal *j = NULL;

	assert_int_equal(journal_open(path, &j, NULL), 0);
	assert_true(file_exists(reserve));
	journal_last(j);
	assert_false(file_exists(reserve));
	journal_add(j, RECORD_RUN_FINISHED, "");
	assert_int_equal(journal_commit(j, NULL), 0);
	journal_close(j);
}

static void test_folder_that_is_missing(void **state)
{
	AUTO_FREE char *path = file_join(*state, "none/run.jsonl");
	struct journal *j = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(journal_open(path, &j, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_null(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(test_kinds_of_fields),
		folder_test(test_nothing_is_written_before_the_commit),
		folder_test(test_group_commit),
		folder_test(test_deferred_after_durable),
		folder_test(test_deferred_calls_may_add),
		folder_test(test_close_commits),
		folder_test(test_full_disk_breaks_the_journal),
		folder_test(test_the_reserve_is_for_the_end),
		folder_test(test_no_reserve_behind_the_last_record),
		folder_test(test_folder_that_is_missing),
	};
	return cmocka_run_group_tests_name("orchestrator/journal", tests, NULL, NULL);
}
