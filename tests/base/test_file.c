/* file: whole reads and replacements, folders, removal of hostile trees, paths. */
#include "test_base.h"
#include "wrap_syscall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"

static void put(const char *path, const char *s)
{
	assert_int_equal(file_write_atomic(AT_FDCWD, path, s, strlen(s), 0644, NULL), 0);
}

static size_t count_entries(const char *path)
{
	size_t n = 0;
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char list[4096];
	ssize_t got;
	while ((got = getdents64(fd, list, sizeof(list))) > 0)
		for (ssize_t at = 0; at < got; at += ((struct dirent64 *)(list + at))->d_reclen)
			n++;
	return n - 2;
}

static void test_read(void **state)
{
	AUTO_FREE char *path = file_join(*state, "x");
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	buf_adds(&out, "before ");
	assert_int_equal(file_read(AT_FDCWD, path, 10, &out, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	put(path, "0123456789");
	assert_int_equal(file_read(AT_FDCWD, path, 10, &out, &err), 0);
	assert_string_equal(out.data, "before 0123456789");
	assert_int_equal(file_read(AT_FDCWD, path, 9, &out, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_string_equal(out.data, "before 0123456789");
	AUTO_FD int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(file_read(dir, "x", 10, &out, &err), 0);
	/* Files whose size is not told beforehand. */
	buf_clear(&out);
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &out, &err), 0);
	assert_true(out.len > 100);
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/status", 10, &out, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void test_read_refuses_what_is_no_file(void **state)
{
	AUTO_FREE char *fifo = file_join(*state, "fifo");
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(file_read(AT_FDCWD, fifo, 10, &out, &err), -1); /* and does not hang */
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(file_read(AT_FDCWD, *state, 10, &out, &err), -1);
	assert_int_equal(file_read(AT_FDCWD, "/dev/zero", 10, &out, &err), -1);
	/* A buffer's own maximum counts as well. */
	AUTO_FREE char *path = file_join(*state, "x");
	put(path, "0123456789");
	AUTO_BUF struct buf small = BUF_INIT_MAX(4);
	assert_int_equal(file_read(AT_FDCWD, path, 10, &small, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void test_write_replaces_with_the_mode_as_given(void **state)
{
	AUTO_FREE char *path = file_join(*state, "x");
	AUTO_BUF struct buf out = BUF_INIT;
	mode_t mask = umask(077);
	put(path, "old");
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "new\0", 4, 0755, NULL), 0);
	umask(mask);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	file_read(AT_FDCWD, path, 10, &out, NULL);
	assert_int_equal(out.len, 4);
	assert_int_equal(count_entries(*state), 1); /* nothing is left beside it */
}

static void test_failed_write_keeps_the_old_file(void **state)
{
	AUTO_FREE char *path = file_join(*state, "x");
	AUTO_FREE char *large = mem_alloc(100000);
	AUTO_BUF struct buf out = BUF_INIT;
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct rlimit old, small;
	struct err err = ERR_INIT;
	put(path, "old");
	sigaction(SIGXFSZ, &ignore, &before);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 1000;
	setrlimit(RLIMIT_FSIZE, &small);
	int rc = file_write_atomic(AT_FDCWD, path, large, 100000, 0600, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	sigaction(SIGXFSZ, &before, NULL);
	assert_int_equal(rc, -1);
	assert_int_equal(err.sys, EFBIG);
	file_read(AT_FDCWD, path, 10, &out, NULL);
	assert_string_equal(out.data, "old");
	assert_int_equal(count_entries(*state), 1);
	assert_int_equal(file_write_atomic(AT_FDCWD, "/nonexistent/x", "a", 1, 0600, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(file_write_atomic(AT_FDCWD, "x/", "a", 1, 0600, &err), -1);
}

static void test_write_all_reports_a_full_device(void **state)
{
	struct err err = ERR_INIT;
	AUTO_FD int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, "x", 1, &err), -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
}

static void test_mkdirs(void **state)
{
	AUTO_FREE char *deep = file_join(*state, "a//b/c/");
	AUTO_FREE char *file = file_join(*state, "f");
	AUTO_FREE char *below = file_join(*state, "f/x");
	struct err err = ERR_INIT;
	assert_int_equal(file_mkdirs(deep, 0700, &err), 0);
	assert_true(file_is_dir(deep));
	assert_int_equal(file_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(file_mkdirs("/", 0700, &err), 0);
	put(file, "x");
	assert_int_equal(file_mkdirs(below, 0700, &err), -1);
	assert_int_equal(file_mkdirs(file, 0700, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_true(file_exists(file));
	assert_false(file_is_dir(file));
}

/* The tree of an agent: links out of it, closed folders, and nesting that no path can name. */
static void remove_hostile_tree(void **state)
{
	AUTO_FREE char *outside = file_join(*state, "outside");
	AUTO_FREE char *precious = file_join(*state, "outside/precious");
	AUTO_FREE char *tree = file_join(*state, "tree");
	AUTO_FREE char *link = file_join(*state, "tree/link");
	AUTO_FREE char *closed = file_join(*state, "tree/closed/inner");
	AUTO_FREE char *closed_file = file_join(*state, "tree/closed/inner/x");
	assert_int_equal(file_mkdirs(outside, 0700, NULL), 0);
	put(precious, "x");
	assert_int_equal(file_mkdirs(closed, 0700, NULL), 0);
	put(closed_file, "x");
	assert_int_equal(chmod(closed, 0), 0);
	assert_int_equal(symlink(outside, link), 0);

	int dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 0; depth < 3000; depth++) {
		assert_int_equal(mkdirat(dir, "dddd", 0700), 0);
		int next = openat(dir, "dddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	close(openat(dir, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(dir);

	struct err err = ERR_INIT;
	if (file_remove_tree(tree, &err) < 0)
		fail_msg("%s", err.message);
	assert_false(file_exists(tree));
	assert_true(file_exists(precious));
}

static void test_remove_hostile_tree(void **state)
{
	remove_hostile_tree(state);
}

static void test_remove_hostile_tree_without_openat2(void **state)
{
	missing_call = SYS_openat2; /* before Linux 5.6 */
	remove_hostile_tree(state);
	missing_call = -1;
}

static char *mount_parent; /* of the folder in which the next test works */

/* In a mount namespace of its own: outside is also seen at tree/mnt. 77: not allowed here. */
static int remove_tree_with_mount(void)
{
	AUTO_FREE char *outside = file_join(mount_parent, "outside");
	AUTO_FREE char *precious = file_join(mount_parent, "outside/precious");
	AUTO_FREE char *tree = file_join(mount_parent, "tree");
	AUTO_FREE char *mnt = file_join(mount_parent, "tree/mnt");
	struct err err = ERR_INIT;
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 77;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(outside, mnt, NULL, MS_BIND, NULL) < 0)
		return 77;
	if (file_remove_tree(tree, &err) == 0 || err.sys != EXDEV)
		return 1;
	missing_call = SYS_openat2;
	if (file_remove_tree(tree, &err) == 0 || err.sys != EXDEV)
		return 2;
	return file_exists(precious) ? 0 : 3;
}

static void test_remove_does_not_cross_mounts(void **state)
{
	AUTO_FREE char *precious = file_join(*state, "outside/precious");
	AUTO_FREE char *outside = file_join(*state, "outside");
	AUTO_FREE char *mnt = file_join(*state, "tree/mnt");
	assert_int_equal(file_mkdirs(outside, 0700, NULL), 0);
	assert_int_equal(file_mkdirs(mnt, 0700, NULL), 0);
	put(precious, "x");
	mount_parent = *state;
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(remove_tree_with_mount());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static void test_remove_other_things(void **state)
{
	AUTO_FREE char *dir = file_join(*state, "d");
	AUTO_FREE char *link = file_join(*state, "l");
	AUTO_FREE char *missing = file_join(*state, "m");
	struct err err = ERR_INIT;
	assert_int_equal(file_mkdirs(dir, 0700, NULL), 0);
	assert_int_equal(symlink(dir, link), 0);
	assert_int_equal(file_remove_tree(link, &err), 0);
	assert_false(file_exists(link));
	assert_true(file_exists(dir));
	assert_int_equal(file_remove_tree(missing, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	AUTO_FREE char *dot = file_join(*state, ".");
	AUTO_FREE char *slash = file_join(*state, "d/");
	assert_int_equal(file_remove_tree(dot, &err), -1);
	assert_int_equal(file_remove_tree(slash, &err), -1);
	assert_int_equal(file_remove_tree("/", &err), -1);
	/* More entries than one reading of the folder gives. */
	for (int i = 0; i < 3000; i++) {
		AUTO_FREE char *path = mem_printf("%s/%d", dir, i);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	assert_int_equal(file_remove_tree(dir, &err), 0);
	assert_false(file_exists(dir));
}

static void check_join(const char *a, const char *b, const char *want)
{
	AUTO_FREE char *path = file_join(a, b);
	assert_string_equal(path, want);
}

static void check_dir(const char *path, const char *want)
{
	AUTO_FREE char *dir = file_dir(path);
	assert_string_equal(dir, want);
}

/* What a killed file_write_atomic leaves goes; names that only look alike are somebody's. */
static void test_drop_temporaries(void **state)
{
	static const char *const left[] = {".a.txt.0123456789abcdef", ".a.txt.fedcba9876543210"};
	static const char *const others[] = {"a.txt",
					     ".a.txt.0123456789abcde",
					     ".a.txt.0123456789abcdef0",
					     ".a.txt.0123456789ABCDEF",
					     ".b.txt.0123456789abcdef",
					     ".a.txt.bak"};

	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(file_write_atomic(AT_FDCWD, left[i], "x", 1, 0600, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(file_write_atomic(AT_FDCWD, others[i], "x", 1, 0600, NULL), 0);
	AUTO_FD int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file_drop_temporaries(dir, "a.txt");
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_false(file_exists(left[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(file_exists(others[i]));
}

static void test_paths(void **state)
{
	check_join("a", "b", "a/b");
	check_join("a/", "b", "a/b");
	check_join("a//", "b/c", "a/b/c");
	check_join("/", "b", "/b");
	check_join("a", "/b", "/b");
	check_join("", "b", "b");
	assert_string_equal(file_base("/a/b"), "b");
	assert_string_equal(file_base("b"), "b");
	assert_string_equal(file_base("a/"), "");
	check_dir("/a/b", "/a");
	check_dir("/a", "/");
	check_dir("a", ".");
	check_dir("a//b", "a");
	check_dir("//a", "/");
}

static void test_programs(void **state)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *self = file_self_dir();
	assert_true(file_is_dir(self));
	AUTO_FREE char *found = file_find_program("test_base_file", &err);
	assert_non_null(found);
	assert_true(text_starts(found, self));
	AUTO_FREE char *missing = file_find_program("baton-no-such-program", &err);
	assert_null(missing);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	AUTO_FREE char *no_program = file_find_program("test_base_file.p", &err); /* a folder */
	assert_null(no_program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		folder_test(test_read),
		folder_test(test_read_refuses_what_is_no_file),
		folder_test(test_write_replaces_with_the_mode_as_given),
		folder_test(test_failed_write_keeps_the_old_file),
		folder_test(test_write_all_reports_a_full_device),
		folder_test(test_mkdirs),
		folder_test(test_remove_hostile_tree),
		folder_test(test_remove_hostile_tree_without_openat2),
		folder_test(test_remove_does_not_cross_mounts),
		folder_test(test_remove_other_things),
		folder_test(test_drop_temporaries),
		folder_test(test_paths),
		folder_test(test_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
