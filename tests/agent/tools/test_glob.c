/* glob: patterns, ignore rules, order, bounds (T11; trap 95). */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_time(struct fixture *f, const char *name, time_t when)
{
	AUTO_FREE char *path = in_tree(f, name);
	struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_newest_first_with_size_and_time(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "src/old.c", "1");
	puts_file(f, "src/new.c", "12345");
	puts_file(f, "src/x.h", "");
	set_time(f, "src/old.c", 1000000000);
	set_time(f, "src/new.c", 1700000000);
	assert_int_equal(call(f, "glob", "{'pattern':'src/*.c'}"), 0);
	assert_ok(f);
	assert_string_equal(said(f), "2023-11-14 22:13            5  src/new.c\n"
				     "2001-09-09 01:46            1  src/old.c\n");
}

static void test_depths_and_braces(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "a.c", "");
	puts_file(f, "x/b.c", "");
	puts_file(f, "x/y/c.h", "");
	puts_file(f, ".hidden/d.c", "");
	call(f, "glob", "{'pattern':'*.c'}");
	assert_says(f, "a.c\n");
	assert_says(f, "x/b.c\n");
	assert_says(f, ".hidden/d.c\n");
	call(f, "glob", "{'pattern':'x/**/*.{c,h}'}");
	assert_says(f, "x/b.c\n");
	assert_says(f, "x/y/c.h\n");
	assert_says_not(f, "a.c");
	call(f, "glob", "{'pattern':'*.h','path':'x/y'}");
	assert_says(f, "  x/y/c.h\n");
	call(f, "glob", "{'pattern':'%s/x/*.c'}", f->worktree);
	assert_says(f, "x/b.c\n");
	call(f, "glob", "{'pattern':'*.rs'}");
	assert_ok(f);
	assert_says(f, "no files match");
	call(f, "glob", "{'pattern':'*','path':'missing'}");
	assert_error(f);
}

static void test_ignored_files_are_left_out(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *info = mem_printf("%s/info", f->git_dir);
	assert_int_equal(mkdir(info, 0755), 0);
	puts_file(f, "../git/info/exclude", "*.private\n");
	puts_file(f, ".gitignore", "build/\n*.o\n");
	puts_file(f, "sub/.gitignore", "local\n!keep.o\n");
	puts_file(f, "build/out.c", "");
	puts_file(f, "sub/local", "");
	puts_file(f, "sub/keep.o", "");
	puts_file(f, "sub/drop.o", "");
	puts_file(f, "sub/deep/local", "");
	puts_file(f, "my.private", "");
	puts_file(f, "shown", "");
	puts_file(f, ".git", "gitdir: x\n");
	f->settings.git_dir = f->git_dir;
	fixture_restart(f);
	call(f, "glob", "{'pattern':'**'}");
	assert_says(f, "  shown\n");
	assert_says(f, "sub/keep.o\n");
	assert_says_not(f, "out.c");
	assert_says_not(f, "local");
	assert_says_not(f, "drop.o");
	assert_says_not(f, "private");
	assert_says_not(f, ".git\n");
	/* Started below, the rules above hold too. */
	call(f, "glob", "{'pattern':'**','path':'sub'}");
	assert_says(f, "keep.o");
	assert_says_not(f, "drop.o");
	/* An ignored folder that is asked for by name is searched. */
	call(f, "glob", "{'pattern':'*','path':'build'}");
	assert_says(f, "build/out.c");
	call(f, "glob", "{'pattern':'**','include_ignored':true}");
	assert_says(f, "out.c");
	assert_says(f, "drop.o");
}

static void test_bounded_with_the_number_of_all(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 250; i++) {
		AUTO_FREE char *name = mem_printf("many/f%03d", i);
		puts_file(f, name, "");
	}
	call(f, "glob", "{'pattern':'many/*'}");
	assert_int_equal(text_count_lines(said(f), f->result.text.len), 201);
	assert_says(f, "[the newest 200 of 250 files");
	call(f, "glob", "{'pattern':'many/*','limit':3}");
	assert_says(f, "[the newest 3 of 250 files");
}

static void test_trap_95_names_can_be_given_back(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "d/\xff.txt", "odd\n");
	call(f, "glob", "{'pattern':'*.txt'}");
	assert_says(f, "  d/\\xff.txt\n");
	assert_true(text_is_utf8(said(f), f->result.text.len));
	call(f, "read", "{'path':'d/\\\\xff.txt'}");
	assert_says(f, "odd");
	call(f, "grep", "{'pattern':'odd'}");
	assert_says(f, "d/\\xff.txt\n");
}

static void test_symlinks_are_not_followed(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *loop = in_tree(f, "loop");
	assert_int_equal(symlink(".", loop), 0);
	puts_file(f, "x", "1");
	call(f, "glob", "{'pattern':'**'}");
	assert_says(f, "  loop\n");
	assert_says_not(f, "loop/");
}

static void test_named_roots(void **state)
{
	struct fixture *f = *state;
	call(f, "shell", "{'command':'echo x'}");
	call(f, "glob", "{'pattern':'results:*.txt'}");
	assert_says(f, "  results:shell-1.txt\n");
	call(f, "glob", "{'pattern':'*','path':'results:'}");
	assert_says(f, "  results:shell-1.txt\n");
	call(f, "grep", "{'pattern':'x','path':'results:'}");
	assert_says(f, "results:shell-1.txt\n1:x\n");
}

static void test_cancel_stops_a_walk(void **state)
{
	struct fixture *f = *state;
	puts_file(f, "x", "1");
	f->waiter.cancel_at_ms = 1;
	assert_int_equal(call(f, "glob", "{'pattern':'**'}"), -1);
	assert_int_equal(f->err.code, ERR_CANCELLED);
	f->waiter.cancel_at_ms = 0;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_newest_first_with_size_and_time),
		T(test_depths_and_braces),
		T(test_ignored_files_are_left_out),
		T(test_bounded_with_the_number_of_all),
		T(test_trap_95_names_can_be_given_back),
		T(test_symlinks_are_not_followed),
		T(test_named_roots),
		T(test_cancel_stops_a_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
