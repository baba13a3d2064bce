/*
 * test_warden.c - the process that outlives the parent to clean up (I9; issue 2, processes).
 *
 * The warden is this program in another role; its body is the parent. The test stands where the
 * user's shell does, and as a subreaper it hears of everything that the warden would leave behind.
 */
#include "tests/base/test_base.h"

#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "orchestrator/warden.h"

enum {
	PATIENCE_MS = 60000,
	CLEAN_MS = 5000, /* the promise of issue 2 */
	STRAYS = 6,
};

/* ---- the parent's side: argv is "warden" BODY ARG ---- */

static void tell(const void *bytes, size_t n)
{
	if (write(STDOUT_FILENO, bytes, n) != (ssize_t)n)
		_exit(99);
}

static void tell_pid(pid_t pid)
{
	tell(&pid, sizeof(pid));
}

static void tell_byte(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(95);
}

static int body_exit(void *arg)
{
	return (int)strtol(arg, NULL, 10);
}

static int body_kill(void *arg)
{
	warden_unblock_signals();
	raise((int)strtol(arg, NULL, 10));
	return 0;
}

static void stay(void)
{
	for (;;)
		poll(NULL, 0, -1);
}

/* Forks twice, leaves session and group, ignores what can be ignored, tells its pid. Returns when it
 * was told: a body that ends sooner has its daemon killed before a word. */
static void start_daemon(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	int status, told[2];
	char byte;

	if (pipe2(told, O_CLOEXEC) < 0)
		_exit(97);
	pid_t pid = fork();
	if (pid > 0) {
		close(told[1]);
		waitpid(pid, &status, 0);
		if (read(told[0], &byte, 1) != 1)
			_exit(96);
		close(told[0]);
		return;
	}
	setsid();
	sigaction(SIGTERM, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGINT, &ignore, NULL);
	if (fork() > 0)
		_exit(0);
	tell_pid(getpid());
	tell_byte(told[1]);
	stay();
}

/* Tells its own pid, then those of its daemons. With "end" it ends by itself. */
static int body_strays(void *arg)
{
	warden_unblock_signals();
	tell_pid(getpid());
	for (int i = 0; i < STRAYS; i++)
		start_daemon();
	if (strcmp(arg, "end") != 0)
		stay();
	return 5;
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

/* Tells its pid, waits for one signal, tells its number and ends with 40. */
static int body_signal(void *arg)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t none;

	sigemptyset(&none); /* all are blocked when a body begins */
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
	tell_pid(getpid());
	while (!got)
		sigsuspend(&none);
	tell_pid((pid_t)got);
	return 40;
}

static int be_warden(const char *body, char *arg)
{
	static const struct {
		const char *name;
		int (*fn)(void *arg);
	} bodies[] = {{"exit", body_exit},
		      {"kill", body_kill},
		      {"strays", body_strays},
		      {"signal", body_signal}};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		if (strcmp(bodies[i].name, body) == 0)
			return warden_run(bodies[i].fn, arg);
	}
	return 98;
}

/* ---- the test's side ---- */

struct rig {
	pid_t warden;
	int fd; /* what the bodies tell */
};

static void start(struct rig *rig, const char *body, const char *arg)
{
	const char *argv[] = {"test", "warden", body, arg, NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	struct err err = ERR_INIT;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	opts.path = "/proc/self/exe";
	opts.argv = argv;
	opts.fd_out = fds[1];
	if (spawn_process(&opts, &rig->warden, NULL, &err) < 0)
		fail_msg("%s", err.message);
	close(fds[1]);
	rig->fd = fds[0];
}

static pid_t hear(struct rig *rig)
{
	struct pollfd pfd = {.fd = rig->fd, .events = POLLIN};
	pid_t pid = -1;

	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(rig->fd, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static void end(struct rig *rig)
{
	close(rig->fd);
}

/* The end of the pipe: nobody who could tell anything lives any more. Without polling for pids. */
static void wait_until_all_are_gone(struct rig *rig, int timeout_ms)
{
	struct pollfd pfd = {.fd = rig->fd, .events = POLLIN};
	char byte;

	if (poll(&pfd, 1, timeout_ms) != 1)
		fail_msg("some process is left after %d ms", timeout_ms);
	assert_int_equal(read(rig->fd, &byte, 1), 0);
}

static int wait_status(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Reaps what came to this process; nobody else may be left. */
static void check_no_children(void)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0)
		;
	assert_int_equal(errno, ECHILD);
}

static void test_exit_status_is_the_parents(void **state)
{
	static const char *const codes[] = {"0", "1", "4", "130", "255"};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct rig rig;
		start(&rig, "exit", codes[i]);
		int status = wait_status(rig.warden);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), strtol(codes[i], NULL, 10));
		end(&rig);
	}
}

static void test_death_by_a_signal(void **state)
{
	static const char *const signals[] = {"9", "6", "15"};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct rig rig;
		start(&rig, "kill", signals[i]);
		int status = wait_status(rig.warden);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 128 + strtol(signals[i], NULL, 10));
		end(&rig);
	}
}

/* kill -9 of the parent: no process is left within 5 seconds, however it hides. */
static void test_killed_parent_leaves_nobody(void **state)
{
	struct rig rig;
	pid_t strays[STRAYS];

	start(&rig, "strays", "stay");
	pid_t parent = hear(&rig);
	for (int i = 0; i < STRAYS; i++)
		strays[i] = hear(&rig);
	assert_int_equal(kill(parent, SIGKILL), 0);
	wait_until_all_are_gone(&rig, CLEAN_MS);
	assert_int_equal(WEXITSTATUS(wait_status(rig.warden)), 128 + SIGKILL);
	for (int i = 0; i < STRAYS; i++)
		assert_int_equal(kill(strays[i], 0), -1);
	check_no_children();
	end(&rig);
}

static void test_ended_parent_leaves_nobody(void **state)
{
	struct rig rig;

	start(&rig, "strays", "end");
	for (int i = 0; i < STRAYS + 1; i++)
		hear(&rig);
	wait_until_all_are_gone(&rig, CLEAN_MS);
	assert_int_equal(WEXITSTATUS(wait_status(rig.warden)), 5);
	check_no_children();
	end(&rig);
}

/* What another process sends to the warden reaches the parent. */
static void test_signals_are_forwarded(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct rig rig;
		start(&rig, "signal", "");
		hear(&rig);
		assert_int_equal(kill(rig.warden, signals[i]), 0);
		assert_int_equal(hear(&rig), signals[i]);
		assert_int_equal(WEXITSTATUS(wait_status(rig.warden)), 40);
		end(&rig);
	}
}

/* The warden itself is killed: the parent gets its TERM and can end in good order. */
static void test_killed_warden(void **state)
{
	struct rig rig;

	start(&rig, "signal", "");
	pid_t parent = hear(&rig);
	assert_int_equal(kill(rig.warden, SIGKILL), 0);
	assert_int_equal(hear(&rig), SIGTERM);
	assert_true(WIFSIGNALED(wait_status(rig.warden)));
	assert_int_equal(WEXITSTATUS(wait_status(parent)), 40); /* it came to this subreaper */
	wait_until_all_are_gone(&rig, CLEAN_MS);
	check_no_children();
	end(&rig);
}

/* SIGQUIT is for the parent alone: a warden that died of it could clean nothing. */
static void test_quit_does_not_end_the_warden(void **state)
{
	struct rig rig;

	start(&rig, "signal", "");
	pid_t parent = hear(&rig);
	assert_int_equal(kill(rig.warden, SIGQUIT), 0);
	assert_int_equal(kill(parent, SIGTERM), 0);
	assert_int_equal(hear(&rig), SIGTERM);
	assert_int_equal(WEXITSTATUS(wait_status(rig.warden)), 40);
	end(&rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status_is_the_parents),
		cmocka_unit_test(test_death_by_a_signal),
		cmocka_unit_test(test_killed_parent_leaves_nobody),
		cmocka_unit_test(test_ended_parent_leaves_nobody),
		cmocka_unit_test(test_signals_are_forwarded),
		cmocka_unit_test(test_killed_warden),
		cmocka_unit_test(test_quit_does_not_end_the_warden),
	};

	if (argc > 3 && strcmp(argv[1], "warden") == 0)
		return be_warden(argv[2], argv[3]);
	if (spawn_become_subreaper(NULL) < 0)
		return 1;
	return cmocka_run_group_tests_name("orchestrator/warden", tests, NULL, NULL);
}
