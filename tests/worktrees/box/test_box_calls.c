/*
 * test_box_calls.c - the system calls that would reach round the box (facts F, L; X10).
 *
 * Each row that can succeed as an ordinary user is also tried without a box: a refusal that comes
 * from elsewhere shows nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "box_rig.h"
#include "worktrees/box/syscall_filter.h"

struct row {
	const char *words;  /* of box-try */
	const char *inside; /* what it prints in the box */
	const char
		*open; /* what it prints without one; NULL: depends on the machine and the user */
};

static void check_rows(struct box_rig *rig, const char *const *options, const struct row *rows,
		       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO_FREE char *script = mem_printf("$TRY %s", rows[i].words);
		AUTO_BUF struct buf out = BUF_INIT;

		box_run(rig, options, script, &out);
		if (!box_has_line(&out, rows[i].inside))
			fail_msg("in the box: '%s', not '%s'", buf_str(&out), rows[i].inside);
		if (!rows[i].open)
			continue;
		buf_clear(&out);
		box_run_open(rig, script, &out);
		if (!box_has_line(&out, rows[i].open))
			fail_msg("without a box: '%s', not '%s'", buf_str(&out), rows[i].open);
	}
}

static void test_calls_are_refused(void **state)
{
	static const struct row rows[] = {
		{"traceme", "traceme EPERM", "traceme ok"},
		{"attach $OUTSIDER", "attach EPERM", NULL},
		{"vm_readv", "vm_readv EPERM", "vm_readv ok"},
		{"pidfd_getfd", "pidfd_getfd EPERM", "pidfd_getfd ok"},
		{"io_uring", "io_uring EPERM", NULL},
		{"mount", "mount EPERM", NULL},
		{"unshare", "unshare EPERM", NULL},
		{"clone_user", "clone_user EPERM", NULL},
		{"clone_high", "clone_high EPERM", NULL},
		{"clone3", "clone3 ENOSYS", "clone3 ok"},
		{"setns", "setns EPERM", NULL},
		{"chroot", "chroot EPERM", NULL},
		{"open_tree", "open_tree EPERM", "open_tree ok"},
		{"handle", "handle EPERM", NULL},
		{"keyctl", "keyctl EPERM", NULL},
		{"userfaultfd", "userfaultfd EPERM", NULL},
		{"bpf", "bpf EPERM", NULL},
		{"perf", "perf EPERM", NULL},
		{"shmget", "shmget EPERM", "shmget ok"},
		{"prlimit $OUTSIDER", "prlimit EPERM", "prlimit ok"},
		{"tiocsti", "tiocsti EPERM", "tiocsti ENOTTY"},
		{"tiocsti_high", "tiocsti_high EPERM", "tiocsti_high ENOTTY"},
		{"unknown", "unknown ENOSYS", NULL},
		{"x32", "x32 ENOSYS", NULL},
	};

	check_rows(*state, NULL, rows, ARRAY_SIZE(rows));
}

/* The memory of everybody, which root may read and Landlock knows nothing of. */
static void test_kernel_memory_is_not_for_root(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	box_run(*state, NULL, "$TRY kcore", &out);
	assert_false(box_has_line(&out, "kcore ok"));
}

static void test_what_programs_need_is_allowed(void **state)
{
	static const struct row rows[] = {
		{"own_limit", "own_limit ok", NULL},
		{"kill_own", "kill_own ok", NULL},
		{"unix_pair", "unix_pair ok", NULL},
	};

	check_rows(*state, NULL, rows, ARRAY_SIZE(rows));
}

/* A table of calls of its own; a kernel without 32-bit programs ends the caller instead. */
static void test_32_bit_calls_are_refused(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	int code = box_run(*state, NULL, "exec $TRY int80", &out);

	assert_true(box_has_line(&out, "int80 ENOSYS") || code == 128 + SIGSEGV);
}

static void test_signals_stay_inside(void **state)
{
	struct box_rig *rig = *state;
	const struct row rows[] = {{"kill $OUTSIDER", "kill EPERM", NULL}};

	if (rig->facts.landlock_abi < 6)
		skip();
	check_rows(rig, NULL, rows, 1);
	AUTO_BUF struct buf out = BUF_INIT;
	box_run(rig, NULL, "kill -9 -1; kill -9 $OUTSIDER; kill -9 -$OUTSIDER; echo end", &out);
	assert_int_equal(waitpid(rig->outsider, NULL, WNOHANG), 0); /* alive */
	assert_int_equal(kill(rig->outsider, 0), 0);
}

/* The death signal that the parent gave (base/spawn.h) outlives the change of credentials. */
static void test_death_signal_survives(void **state)
{
	struct box_rig *rig = *state;
	const char *const loopback[] = {"--network", "loopback", NULL};
	AUTO_BUF struct buf out = BUF_INIT;

	box_run(rig, NULL, "exec $TRY death_signal", &out);
	assert_true(box_has_line(&out, "death_signal ok"));
	if (!rig->facts.user_namespaces)
		return;
	buf_clear(&out);
	box_run(rig, loopback, "exec $TRY death_signal", &out);
	assert_true(box_has_line(&out, "death_signal ok"));
}

static int refused_with(long rc, int error)
{
	return rc < 0 && errno == error;
}

/* In a process of its own: what the filter adds where Landlock is older than ABI 3. */
static int try_guard(const char *path)
{
	struct err err = ERR_INIT;
	uint64_t how[3] = {O_RDONLY};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall_filter_apply(BOX_NETWORK_NONE, true, &err) < 0)
		return 1;
	if (!refused_with(truncate(path, 0), EPERM))
		return 2;
	if (!refused_with(open(path, O_RDONLY | O_TRUNC | O_CLOEXEC), EPERM))
		return 3;
	if (!refused_with(open(path, O_ACCMODE | O_TRUNC | O_CLOEXEC), EPERM))
		return 4;
#ifdef SYS_open
	if (!refused_with(syscall(SYS_open, path, O_RDONLY | O_TRUNC), EPERM))
		return 5;
#endif
	if (!refused_with(syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how)), ENOSYS))
		return 6;
	if (open(path, O_RDONLY | O_CLOEXEC) < 0 || open(path, O_RDWR | O_CLOEXEC) < 0)
		return 7;
	struct stat st;
	if (stat(path, &st) < 0 || st.st_size == 0)
		return 8;
	/* whoever may write may empty: Landlock asks for that right at every ABI */
	return open(path, O_WRONLY | O_TRUNC | O_CLOEXEC) < 0 ? 9 : 0;
}

static void test_partial_level_guards_truncation(void **state)
{
	struct box_rig *rig = *state;
	AUTO_FREE char *path = file_join(rig->shown, "file");
	int status;

	if (SYSCALL_ARCH == 0)
		skip();
	pid_t pid = fork();
	if (pid == 0)
		_exit(try_guard(path));
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, box_rig_setup, box_rig_teardown)
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_calls_are_refused),
		BOX_TEST(test_kernel_memory_is_not_for_root),
		BOX_TEST(test_what_programs_need_is_allowed),
		BOX_TEST(test_32_bit_calls_are_refused),
		BOX_TEST(test_signals_stay_inside),
		BOX_TEST(test_death_signal_survives),
		BOX_TEST(test_partial_level_guards_truncation),
	};

	return box_suite_status() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
