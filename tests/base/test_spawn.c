/*
 * spawn: the after-fork steps one by one, failures before exec, and that nothing outlives its owner
 * (I9; traps 98, 104). The children are this program in another role (`roles` below).
 */
#include "test_base.h"
#include "wrap_syscall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "base/text.h"

enum { PATIENCE_MS = 20000 };

/* --- roles of the child --- */

/* "umask group-leader session-leader first-unexpected-fd nofile cwd" */
static int role_show(const char *arg)
{
	struct rlimit nofile;
	char cwd[4096];
	int leaked = -1;
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	while ((entry = readdir(d))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && fd > 4 && fd != dirfd(d))
			leaked = fd;
	}
	closedir(d);
	getrlimit(RLIMIT_NOFILE, &nofile);
	printf("%o %d %d %d %ld %s\n", umask(0), getpgid(0) == getpid(), getsid(0) == getpid(),
	       leaked, (long)nofile.rlim_cur, getcwd(cwd, sizeof(cwd)));
	return 0;
}

/* Lines of /proc/self/status about signals. */
static int role_signals(const char *arg)
{
	AUTO_BUF struct buf text = BUF_INIT;
	file_read(AT_FDCWD, "/proc/self/status", 1 << 16, &text, NULL);
	char *blocked = strstr(text.data, "SigBlk:"), *ignored = strstr(text.data, "SigIgn:");
	printf("%.16s %.16s\n", blocked + 8, ignored + 8);
	return 0;
}

/* Descriptor i must be the file that holds arg[i]; '-' means closed. */
static int role_fds(const char *arg)
{
	for (int i = 0; arg[i]; i++) {
		char c = '-';
		if (pread(i, &c, 1, 0) != 1)
			c = '-';
		if (c != arg[i])
			return 10 + i;
	}
	return 0;
}

static int role_pause(const char *arg)
{
	for (;;)
		pause();
	return 0;
}

static void ignore_all(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (int sig = 1; sig < 32; sig++)
		sigaction(sig, &ignore, NULL);
}

/* Three that left the session, ignore every signal, and tell on 3 that they are there. */
static int role_stubborn(const char *arg)
{
	ignore_all();
	for (int i = 0; i < 2; i++) {
		if (fork() == 0) {
			setsid();
			if (fork() != 0)
				_exit(0);
			break;
		}
	}
	if (write(3, "x", 1) != 1)
		return 1;
	return role_pause(arg);
}

/* Forks on and on, the old one dying at once: never the same process for two moments. */
static int role_hop(const char *arg)
{
	ignore_all();
	if (write(3, "x", 1) != 1)
		return 1;
	for (;;)
		if (fork() > 0)
			_exit(0);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *arg);
} roles[] = {
	{"show", role_show},   {"signals", role_signals},   {"fds", role_fds},
	{"pause", role_pause}, {"stubborn", role_stubborn}, {"hop", role_hop},
};

/* --- helpers --- */

static struct spawn_opts options(const char *const *argv)
{
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	opts.path = "/proc/self/exe";
	opts.argv = argv;
	opts.fd_err = 2;
	return opts;
}

/* Starts this program as argv[1] and returns what it wrote to its stdout, without the newline. */
static char *output_of(struct spawn_opts opts, int *ret_status)
{
	int fds[2];
	pid_t pid;
	struct err err = ERR_INIT;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	opts.fd_out = fds[1];
	if (spawn_process(&opts, &pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	close(fds[1]);
	AUTO_BUF struct buf out = BUF_INIT;
	while (buf_read(&out, fds[0], 4096) > 0)
		;
	close(fds[0]);
	assert_int_equal(waitpid(pid, ret_status, 0), pid);
	if (out.len && out.data[out.len - 1] == '\n')
		buf_truncate(&out, out.len - 1);
	return buf_take(&out);
}

static void check_output(struct spawn_opts opts, const char *want)
{
	int status;
	AUTO_FREE char *out = output_of(opts, &status);
	assert_string_equal(out, want);
	assert_int_equal(status, 0);
}

/* Runs fn in a forked copy of the test, for what would spoil the rest; returns its exit code. */
static int in_fork(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static bool no_children(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void wait_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static long nofile_now(void)
{
	struct rlimit nofile;
	getrlimit(RLIMIT_NOFILE, &nofile);
	return (long)nofile.rlim_cur;
}

/* --- the steps --- */

static void test_umask_group_session_folder(void **state)
{
	static const char *const argv[] = {"x", "show", NULL};
	struct spawn_opts opts = options(argv);
	AUTO_FREE char *want = mem_printf("77 1 0 -1 %ld /", nofile_now());
	opts.cwd = "/";
	check_output(opts, want);
	opts.new_session = true;
	AUTO_FREE char *want_session = mem_printf("77 1 1 -1 %ld %s", nofile_now(), (char *)*state);
	AUTO_FD int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	opts.cwd_fd = dir; /* wins over cwd */
	check_output(opts, want_session);
	assert_int_not_equal(umask(022), 077); /* ours is untouched */
}

static void test_environment_is_exactly_as_given(void **state)
{
	static const char *const argv[] = {"env", NULL};
	static const char *const envp[] = {"A=1", "B=2", NULL};
	struct spawn_opts opts = options(argv);
	opts.path = "/usr/bin/env";
	opts.envp = envp;
	check_output(opts, "A=1\nB=2");
	opts.envp = NULL;
	check_output(opts, "");
}

static void test_no_descriptor_leaks(void **state)
{
	static const char *const argv[] = {"x", "show", NULL};
	struct spawn_opts opts = options(argv);
	int fds[100];
	for (int i = 0; i < 100; i++) /* not CLOEXEC, on purpose */
		fds[i] = open("/dev/null", O_RDONLY);
	int high = fcntl(0, F_DUPFD, 900);
	int status;
	AUTO_FREE char *out = output_of(opts, &status);
	assert_true(text_starts(out, "77 1 0 -1 "));
	missing_call = SYS_close_range; /* before Linux 5.9 */
	AUTO_FREE char *old_kernel = output_of(opts, &status);
	missing_call = -1;
	assert_string_equal(old_kernel, out);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	close(high);
}

static void test_signals_are_reset(void **state)
{
	static const char *const argv[] = {"x", "signals", NULL};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t all, old, now;
	sigfillset(&all);
	sigaction(SIGUSR1, &ignore, &before);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	check_output(options(argv), "0000000000000000 0000000000000000");
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	assert_int_equal(sigismember(&now, SIGUSR2), 1); /* ours is as it was */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	sigaction(SIGUSR1, &before, NULL);
}

/* Five sources that stand on the five targets themselves, in orders that overwrite one another. */
static int all_arrangements(void)
{
	static const char *const orders[] = {"abcde", "edcba", "bcdea", "eabcd", "badce", "decab",
					     "cdeab", "acbed", "aaaaa", "eeeee", "ddcee"};
	char letters[] = "abcde";
	for (int i = 0; i < 5; i++) {
		char path[] = "/tmp/baton-test-XXXXXX";
		int fd = mkostemp(path, O_CLOEXEC);
		unlink(path);
		if (fd < 0 || write(fd, &letters[i], 1) != 1)
			return 1;
		int moved = fcntl(fd, F_DUPFD_CLOEXEC, 20 + i);
		close(fd);
		if (moved != 20 + i)
			return 2;
	}
	for (int i = 0; i < 5; i++)
		dup2(20 + i, i);
	for (size_t n = 0; n < ARRAY_SIZE(orders); n++) {
		const char *want = orders[n];
		const char *const argv[] = {"x", "fds", want, NULL};
		struct spawn_opts opts = options(argv);
		opts.fd_in = want[0] - 'a';
		opts.fd_out = want[1] - 'a';
		opts.fd_err = want[2] - 'a';
		opts.fd_channel = want[3] - 'a';
		opts.fd_extra = want[4] - 'a';
		pid_t pid;
		int status = -1;
		if (spawn_process(&opts, &pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) != pid)
			return 3;
		if (status)
			return 100 + WEXITSTATUS(status);
	}
	return 0;
}

static void test_descriptors_move_safely(void **state)
{
	assert_int_equal(in_fork(all_arrangements), 0);
}

static void test_channel_and_extra_are_optional(void **state)
{
	AUTO_FREE char *path = file_join(*state, "a");
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "a", 1, 0600, NULL), 0);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	static const struct {
		const char *want;
		bool channel, extra;
	} cases[] = {{"---a-", true, false},
		     {"----a", false, true},
		     {"---aa", true, true},
		     {"-----", false, false}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const argv[] = {"x", "fds", cases[i].want, NULL};
		struct spawn_opts opts = options(argv);
		opts.fd_err = -1;
		opts.fd_channel = cases[i].channel ? fd : -1;
		opts.fd_extra = cases[i].extra ? fd : -1;
		pid_t pid;
		int status = -1;
		assert_int_equal(spawn_process(&opts, &pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static int nofile_is_restored(void)
{
	static const char *const argv[] = {"x", "show", NULL};
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 128)
		return 1;
	limit.rlim_cur = 100;
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(spawn_raise_nofile(3, NULL), 0);
	assert_int_equal(spawn_raise_nofile(3, NULL),
			 0); /* the second call must not forget the first value */
	if (nofile_now() != (long)limit.rlim_max)
		return 2;
	struct spawn_opts opts = options(argv);
	int status;
	AUTO_FREE char *raised = output_of(opts, &status);
	opts.restore_nofile = true;
	AUTO_FREE char *restored = output_of(opts, &status);
	AUTO_FREE char *want = mem_printf(" %ld ", (long)limit.rlim_max);
	if (!strstr(raised, want))
		return 3;
	return strstr(restored, " 100 ") ? 0 : 4;
}

static void test_nofile_is_restored(void **state)
{
	assert_int_equal(in_fork(nofile_is_restored), 0);
}

static void test_pidfd(void **state)
{
	static const char *const argv[] = {"x", "pause", NULL};
	struct spawn_opts opts = options(argv);
	pid_t pid;
	AUTO_FD int pidfd = -1;
	assert_int_equal(spawn_process(&opts, &pid, &pidfd, NULL), 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	wait_readable(pidfd);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The death signal: its parent is gone, so is the child. */
static int spawn_and_die(void)
{
	static const char *const argv[] = {"x", "pause", NULL};
	struct spawn_opts opts = options(argv);
	opts.death_signal = SIGKILL;
	opts.fd_channel = 3; /* a pipe of the test's: its end is the child's end */
	return spawn_process(&opts, NULL, NULL, NULL) < 0;
}

static void test_death_signal(void **state)
{
	int fds[2], saved = fcntl(3, F_DUPFD_CLOEXEC, 30);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	int reader = fcntl(fds[0], F_DUPFD_CLOEXEC, 30),
	    writer = fcntl(fds[1], F_DUPFD_CLOEXEC, 30);
	close(fds[0]);
	close(fds[1]);
	dup3(writer, 3, O_CLOEXEC);
	close(writer);
	assert_int_equal(in_fork(spawn_and_die), 0);
	close(3);
	if (saved >= 0)
		dup3(saved, 3, O_CLOEXEC);
	wait_readable(reader);
	char c;
	assert_int_equal(read(reader, &c, 1), 0);
	close(reader);
	if (saved >= 0)
		close(saved);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* --- failures before exec --- */

static void check_failure(struct spawn_opts opts, enum err_code code, const char *want)
{
	pid_t pid = 77;
	int pidfd = 88;
	struct err err = ERR_INIT;
	assert_int_equal(spawn_process(&opts, &pid, &pidfd, &err), -1);
	assert_string_equal(err.message, want);
	assert_int_equal(err.code, code);
	assert_int_equal(pid, 77);
	assert_int_equal(pidfd, 88);
	assert_true(no_children());
}

static void test_failures_name_the_step(void **state)
{
	static const char *const argv[] = {"x", NULL};
	struct spawn_opts opts = options(argv);
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(before);
	opts.path = "/nonexistent/program";
	check_failure(opts, ERR_NOT_FOUND,
		      "cannot start '/nonexistent/program': exec: No such file or directory");
	opts.path = "/etc/passwd";
	check_failure(opts, ERR_DENIED, "cannot start '/etc/passwd': exec: Permission denied");
	opts.path = "/bin/true";
	opts.cwd = "/nonexistent";
	check_failure(opts, ERR_NOT_FOUND,
		      "cannot start '/bin/true': change folder to '/nonexistent': "
		      "No such file or directory");
	opts.cwd = NULL;
	opts.cwd_fd = 987;
	check_failure(opts, ERR_IO, "cannot start '/bin/true': change folder: Bad file descriptor");
	opts.cwd_fd = -1;
	opts.fd_channel = 987;
	check_failure(opts, ERR_IO,
		      "cannot start '/bin/true': set descriptors: Bad file descriptor");
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before); /* no descriptor was lost */
	close(after);
}

/* --- no process lives on --- */

/* Starts a role with the writing end of a pipe on 3; returns the reading end. */
static int start_with_pipe(const char *role, pid_t *ret_pid)
{
	const char *const argv[] = {"x", role, NULL};
	struct spawn_opts opts = options(argv);
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	opts.fd_channel = fds[1];
	opts.fd_err = -1;
	assert_int_equal(spawn_process(&opts, ret_pid, NULL, NULL), 0);
	close(fds[1]);
	return fds[0];
}

static void read_bytes(int fd, int count)
{
	char c;
	for (int i = 0; i < count; i++) {
		wait_readable(fd);
		assert_int_equal(read(fd, &c, 1), 1);
	}
}

/* Nobody holds the other end any more. */
static void check_all_dead(int fd)
{
	char c[64];
	ssize_t n;
	do {
		wait_readable(fd);
		n = read(fd, c, sizeof(c));
	} while (n > 0);
	assert_int_equal(n, 0);
	close(fd);
}

static void test_i9_stubborn_daemons_are_killed(void **state)
{
	pid_t pid;
	int fd = start_with_pipe("stubborn", &pid);
	read_bytes(fd, 3);
	assert_in_range(spawn_kill_descendants(NULL, 0, clock_mono_ms() + PATIENCE_MS), 3, 5);
	assert_true(no_children()); /* trap 104: no zombies either */
	check_all_dead(fd);
}

static void test_i9_hopping_process_is_killed(void **state)
{
	pid_t pid;
	int fd = start_with_pipe("hop", &pid);
	read_bytes(fd, 1);
	assert_true(spawn_kill_descendants(NULL, 0, clock_mono_ms() + PATIENCE_MS) >= 1);
	assert_true(no_children());
	check_all_dead(fd);
}

static void test_kept_children_are_spared(void **state)
{
	pid_t kept, other;
	int kept_fd = start_with_pipe("stubborn", &kept);
	read_bytes(kept_fd, 3);
	/* What left the kept child is ours by now and is not spared; what is below it is. */
	int fd = start_with_pipe("stubborn", &other);
	read_bytes(fd, 3);
	assert_true(spawn_kill_descendants(&kept, 1, clock_mono_ms() + PATIENCE_MS) >= 3);
	check_all_dead(fd);
	assert_int_equal(waitpid(kept, NULL, WNOHANG), 0); /* alive, and not stopped: */
	AUTO_FREE char *stat_path = mem_printf("/proc/%d/stat", (int)kept);
	AUTO_BUF struct buf stat = BUF_INIT;
	assert_int_equal(file_read(AT_FDCWD, stat_path, 4096, &stat, NULL), 0);
	assert_int_equal(strrchr(stat.data, ')')[2], 'S');
	assert_true(spawn_kill_descendants(NULL, 0, clock_mono_ms() + PATIENCE_MS) >= 1);
	check_all_dead(kept_fd);
	assert_true(no_children());
}

static void test_without_children_nothing_is_done(void **state)
{
	assert_true(no_children());
	assert_int_equal(spawn_kill_descendants(NULL, 0, 0), 0);
}

static int group_setup(void **state)
{
	return spawn_become_subreaper(NULL);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(roles); i++)
		if (strcmp(argv[1], roles[i].name) == 0)
			return roles[i].run(argv[2]);
	const struct CMUnitTest tests[] = {
		folder_test(test_umask_group_session_folder),
		cmocka_unit_test(test_environment_is_exactly_as_given),
		cmocka_unit_test(test_no_descriptor_leaks),
		cmocka_unit_test(test_signals_are_reset),
		cmocka_unit_test(test_descriptors_move_safely),
		folder_test(test_channel_and_extra_are_optional),
		cmocka_unit_test(test_nofile_is_restored),
		cmocka_unit_test(test_pidfd),
		cmocka_unit_test(test_death_signal),
		cmocka_unit_test(test_failures_name_the_step),
		cmocka_unit_test(test_i9_stubborn_daemons_are_killed),
		cmocka_unit_test(test_i9_hopping_process_is_killed),
		cmocka_unit_test(test_kept_children_are_spared),
		cmocka_unit_test(test_without_children_nothing_is_done),
	};
	return cmocka_run_group_tests(tests, group_setup, NULL);
}
