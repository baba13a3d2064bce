/* write: creation, replacement of what was seen, and only that (trap 108). */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_creates_with_folders(void **state)
{
	struct fixture *f = *state;
	size_t n;
	assert_int_equal(call(f, "write", "{'path':'src/new/a.c','content':'int a;\\n'}"), 0);
	assert_ok(f);
	assert_true(f->result.has_effects);
	assert_file(f, "src/new/a.c", "int a;\n");
	assert_string_equal(f->result.summary, "write src/new/a.c (+1 -0)");
	const char *const *touched = tool_context_touched(f->ctx, &n);
	assert_int_equal(n, 1);
	assert_string_equal(touched[0], "src/new/a.c");
}

static void test_bytes_are_kept_with_nul(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf now = BUF_INIT;
	call(f, "write", "{'path':'n','content':'a\\u0000b'}");
	assert_ok(f);
	get(f, "n", &now);
	assert_int_equal(now.len, 3);
	assert_memory_equal(now.data, "a\0b", 3);
}

static void test_unread_file_is_refused(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "precious\n");
	assert_int_equal(call(f, "write", "{'path':'a','content':'x'}"), 0);
	assert_error(f);
	assert_says(f, "read it first");
	assert_false(f->result.has_effects);
	assert_file(f, "a", "precious\n");
	call(f, "read", "{'path':'./a'}");
	call(f, "write", "{'path':'a','content':'x'}");
	assert_ok(f);
	assert_file(f, "a", "x");
	/* What was written counts as seen. */
	call(f, "write", "{'path':'a','content':'y'}");
	assert_ok(f);
	assert_string_equal(f->result.summary, "write a (+1 -1)");
}

static void test_trap_108_stale_write_is_refused(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a", "one\n");
	call(f, "read", "{'path':'a'}");
	puts_file(f, "a", "one\nanother agent's\n");
	call(f, "write", "{'path':'a','content':'one\\nmine\\n'}");
	assert_error(f);
	assert_says(f, "changed since it was read");
	assert_file(f, "a", "one\nanother agent's\n");
}

/* Same size, and the time set back: the bytes decide. */
static void test_trap_108_same_size_same_time(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *path = in_tree(f, "a");
	struct stat st;
	puts_file(f, "a", "one\n");
	call(f, "read", "{'path':'a'}");
	assert_int_equal(stat(path, &st), 0);
	puts_file(f, "a", "two\n");
	struct timespec times[2] = {st.st_atim, st.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	call(f, "write", "{'path':'a','content':'x'}");
	assert_error(f);
	assert_file(f, "a", "two\n");
}

static void test_touched_file_is_not_stale(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *path = in_tree(f, "a");
	struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	puts_file(f, "a", "one\n");
	call(f, "read", "{'path':'a'}");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	call(f, "write", "{'path':'a','content':'x'}");
	assert_ok(f);
}

static void test_mode_is_kept_whatever_the_umask(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *path = in_tree(f, "run.sh");
	struct stat st;
	puts_file(f, "run.sh", "#!/bin/sh\n");
	assert_int_equal(chmod(path, 0755), 0);
	mode_t old = umask(077);
	call(f, "read", "{'path':'run.sh'}");
	call(f, "write", "{'path':'run.sh','content':'#!/bin/sh\\ntrue\\n'}");
	umask(old);
	assert_ok(f);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

static void test_symlink_inside_is_written_through(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *link = in_tree(f, "link");
	struct stat st;
	puts_file(f, "real/file", "old");
	assert_int_equal(symlink("real/file", link), 0);
	call(f, "read", "{'path':'link'}");
	call(f, "write", "{'path':'link','content':'new'}");
	assert_ok(f);
	assert_file(f, "real/file", "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void test_dangling_symlink_and_folder_are_refused(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *link = in_tree(f, "link");
	assert_int_equal(symlink("nothing", link), 0);
	call(f, "write", "{'path':'link','content':'x'}");
	assert_error(f);
	puts_file(f, "d/x", "");
	call(f, "write", "{'path':'d','content':'x'}");
	assert_error(f);
	call(f, "write", "{'path':'.','content':'x'}");
	assert_error(f);
	call(f, "write", "{'path':'d/x/y','content':'x'}");
	assert_error(f);
}

static void test_rights_of_roots(void **state)
{
	struct fixture *f = *state;
	call(f, "write", "{'path':'results:1.txt','content':'x'}");
	assert_error(f);
	assert_says(f, "read-only");
	call(f, "write", "{'path':'scratch:t/1.txt','content':'x'}");
	assert_ok(f);
	call(f, "read", "{'path':'scratch:t/1.txt'}");
	assert_says(f, "     1\tx");
	f->settings.read_only = true;
	fixture_restart(f);
	call(f, "write", "{'path':'a','content':'x'}");
	assert_error(f);
	assert_says(f, "read-only");
}

static void test_worktree_that_is_not_ready(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *later = mem_printf("%s/later", f->top);
	struct err err = ERR_INIT;
	f->settings.worktree = later;
	fixture_restart(f);
	call(f, "write", "{'path':'a','content':'x'}");
	assert_error(f);
	assert_says(f, "not ready");
	assert_int_equal(tool_context_open_worktree(f->ctx, &err), -1);
	assert_int_equal(mkdir(later, 0755), 0);
	assert_int_equal(tool_context_open_worktree(f->ctx, &err), 0);
	call(f, "write", "{'path':'a','content':'x'}");
	assert_ok(f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_creates_with_folders),
		T(test_bytes_are_kept_with_nul),
		T(test_unread_file_is_refused),
		T(test_trap_108_stale_write_is_refused),
		T(test_trap_108_same_size_same_time),
		T(test_touched_file_is_not_stale),
		T(test_mode_is_kept_whatever_the_umask),
		T(test_symlink_inside_is_written_through),
		T(test_dangling_symlink_and_folder_are_refused),
		T(test_rights_of_roots),
		T(test_worktree_that_is_not_ready),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
