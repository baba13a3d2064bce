/*
 * test_child.c - the registry of processes against children that misbehave (issue 2, processes;
 * I9).
 *
 * Whatever a child does is that child's recorded end: the others go on, nothing is left, nobody
 * waits. tests/support/fake_peer.c is the child; this program in another role stands in for a
 * leader whose descendants outlive it.
 */
#include "tests/base/test_base.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "orchestrator/child.h"

enum { PATIENCE_MS = 60000 };

/* ---- the other role: argv is "leader" HOW ---- */

/* Forks one that ignores TERM and stays, tells its pid on descriptor 1, and ends. */
static int be_leader(bool own_session)
{
	int tell[2];
	char byte = 'x';

	if (pipe(tell) < 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		struct sigaction ignore = {.sa_handler = SIG_IGN};
		sigaction(SIGTERM, &ignore, NULL);
		if (own_session)
			setsid();
		if (write(tell[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			poll(NULL, 0, -1);
	}
	if (read(tell[0], &byte, 1) != 1)
		return 1;
	return write(STDOUT_FILENO, &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1;
}

/* Says hello and something wrong, and is gone before anybody reads it. */
static int be_last_words(void)
{
	static const char bytes[] = "this is no frame\n";

	return write(3, bytes, sizeof(bytes) - 1) > 0 ? 3 : 1;
}

/* ---- the rig ---- */

struct rig {
	struct event_base *base;
	struct children *set;
};

struct seen {
	int frames, closed, exits;
	int status;
	char failure[512]; /* "" for none */
	enum child_state state;
};

static int on_frame(struct child *child, const struct frame *frame, struct err *err)
{
	struct seen *seen = child->arg;

	seen->frames++;
	return 0;
}

static void on_closed(struct child *child)
{
	struct seen *seen = child->arg;

	seen->closed++;
}

static void on_exit_(struct child *child, int wait_status, const char *failure)
{
	struct seen *seen = child->arg;

	seen->exits++;
	seen->status = wait_status;
	seen->state = child->state;
	snprintf(seen->failure, sizeof(seen->failure), "%s", failure ? failure : "");
}

static const struct child_handler handler = {on_frame, on_closed, on_exit_};

static int setup(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));

	rig->base = event_base_new();
	rig->set = children_new(rig->base);
	*state = rig;
	return spawn_become_subreaper(NULL);
}

/* No process is left, not even a zombie. */
static int teardown(void **state)
{
	struct rig *rig = *state;
	int status;

	children_free(rig->set);
	event_base_free(rig->base);
	free(rig);
	return waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
}

/* One turn of the loop, of 10 ms at most. */
static void turn(struct rig *rig)
{
	struct timeval tick = {0, 10000};

	children_flush(rig->set);
	event_base_once(rig->base, -1, EV_TIMEOUT, on_tick, NULL, &tick);
	event_base_loop(rig->base, EVLOOP_ONCE);
}

#define WAIT_FOR(rig, condition)                                                                   \
	do {                                                                                       \
		int64_t end_ = clock_mono_ms() + PATIENCE_MS;                                      \
		while (!(condition)) {                                                             \
			if (clock_mono_ms() > end_)                                                \
				fail_msg("no %s in time", #condition);                             \
			turn(rig);                                                                 \
		}                                                                                  \
	} while (0)

static struct child *start_peer(struct rig *rig, struct seen *seen, const char *behaviour,
				const char *n)
{
	/* LeakSanitizer looks from a process of its own, which outlives a peer that is killed then. */
	static const char *const env[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
	const char *argv[] = {"fake_peer", behaviour, n, NULL};
	struct child_spec spec = {.kind = CHILD_AGENT,
				  .name = behaviour,
				  .handler = &handler,
				  .arg = seen,
				  .channel = true,
				  .sender = FROM_A,
				  .hello = "agent",
				  .opts = SPAWN_OPTS_INIT};
	struct child *child = NULL;
	struct err err = ERR_INIT;

	*seen = (struct seen){0};
	spec.opts.envp = env;
	spec.opts.path = env_get("FAKE_PEER");
	spec.opts.argv = argv;
	if (children_spawn(rig->set, &spec, &child, &err) < 0)
		fail_msg("%s", err.message);
	return child;
}

/* Starts this program in another role; *ret_fd reads its standard output. */
static struct child *start_role(struct rig *rig, struct seen *seen, const char *role,
				const char *how, int *ret_fd)
{
	const char *argv[] = {"test", role, how, NULL};
	struct child_spec spec = {.kind = CHILD_JOB,
				  .name = role,
				  .handler = &handler,
				  .arg = seen,
				  .channel = ret_fd == NULL,
				  .sender = FROM_A,
				  .hello = "agent",
				  .opts = SPAWN_OPTS_INIT};
	struct child *child = NULL;
	struct err err = ERR_INIT;
	int fds[2] = {-1, -1};

	*seen = (struct seen){0};
	if (ret_fd)
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	spec.opts.path = "/proc/self/exe";
	spec.opts.argv = argv;
	spec.opts.fd_out = fds[1];
	if (children_spawn(rig->set, &spec, &child, &err) < 0)
		fail_msg("%s", err.message);
	if (ret_fd) {
		close(fds[1]);
		*ret_fd = fds[0];
	}
	return child;
}

static pid_t read_pid(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	pid_t pid = -1;

	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(fd, &pid, sizeof(pid)), sizeof(pid));
	close(fd);
	return pid;
}

static bool is_there(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* ---- bad bytes ---- */

/* Each is that child's failure; the one beside it goes on. */
static void test_bad_bytes_are_one_childs_failure(void **state)
{
	static const struct {
		const char *behaviour, *failure;
	} rows[] = {{"garbage", "frame header"},
		    {"wrong-sender", "'grant'"},
		    {"huge-length", "1073741824"}};
	struct rig *rig = *state;
	struct seen good;
	struct child *mute = start_peer(rig, &good, "mute", NULL);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct seen bad;
		start_peer(rig, &bad, rows[i].behaviour, NULL);
		WAIT_FOR(rig, bad.exits);
		if (!strstr(bad.failure, rows[i].failure))
			fail_msg("%s: '%s'", rows[i].behaviour, bad.failure);
		assert_int_equal(bad.frames, 1);
		assert_int_equal(bad.closed, 1);
		assert_int_equal(bad.exits, 1);
		assert_int_equal(bad.state, CHILD_GONE);
		assert_int_equal(children_count(rig->set, -1), 1);
	}
	assert_int_equal(mute->state, CHILD_RUNNING);
	assert_int_equal(good.exits, 0);
	channel_send(mute->channel, FRAME_PING, "\"seq\":1", NULL, 0);
	child_stop(mute, PATIENCE_MS);
	WAIT_FOR(rig, good.exits);
	assert_string_equal(good.failure, "");
	assert_int_equal(WTERMSIG(good.status), SIGTERM);
}

/* All at once, and none takes another with it. */
static void test_all_peers_together(void **state)
{
	static const char *const names[] = {"garbage",	  "wrong-sender", "huge-length",
					    "die-after",  "die-mid-body", "mute",
					    "half-frame", "never-read",	  "ignore-term"};
	struct rig *rig = *state;
	struct seen seen[ARRAY_SIZE(names)];
	struct child *last = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		last = start_peer(rig, &seen[i], names[i], NULL);
		if (strcmp(names[i], "never-read") == 0)
			channel_set_limit(last->channel, 256 << 10);
	}
	WAIT_FOR(rig, children_count(rig->set, CHILD_AGENT) == 3); /* mute, half, ignore-term */
	WAIT_FOR(rig, seen[8].frames == 1);
	assert_int_equal(seen[5].exits + seen[6].exits + seen[8].exits, 0);
	children_stop_all(rig->set, CHILD_GATEWAY, 0);
	assert_int_equal(last->state, CHILD_RUNNING);
	children_stop_all(rig->set, CHILD_AGENT, 100);
	WAIT_FOR(rig, children_count(rig->set, -1) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(seen[i].exits, 1);
	assert_int_equal(WTERMSIG(seen[8].status), SIGKILL);
}

static void test_peer_that_never_reads(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "never-read", NULL);

	channel_set_limit(child->channel, 256 << 10);
	WAIT_FOR(rig, seen.exits);
	assert_non_null(strstr(seen.failure, "does not read"));
}

static void test_half_a_frame(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "half-frame", NULL);

	WAIT_FOR(rig, seen.frames == 1);
	for (int i = 0; i < 5; i++)
		turn(rig);
	assert_int_equal(seen.exits, 0); /* nothing is wrong yet: the owner's deadline ends it */
	child_fail(child, "no answer within %d ms", 5);
	child_fail(child, "a later reason");
	WAIT_FOR(rig, seen.exits);
	assert_string_equal(seen.failure, "no answer within 5 ms");
}

/* ---- deaths ---- */

/* A frame that was sent before the end is never lost, whichever the parent sees first. */
static void test_last_frames_are_read(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 30; i++) {
		struct seen seen;
		start_peer(rig, &seen, "die-after", i % 2 ? "1" : "40");
		WAIT_FOR(rig, seen.exits);
		assert_int_equal(seen.frames, 1); /* pings are answered below the handler */
		assert_int_equal(WEXITSTATUS(seen.status), 7);
		assert_string_equal(seen.failure, "");
	}
}

/* The same where the exit is seen before a single byte was read: the loop does not look at the
 * channel. */
static void test_exit_is_seen_first(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "die-after", "3");

	event_del(child->ev_in);
	WAIT_FOR(rig, seen.exits);
	assert_int_equal(seen.frames, 1);
	assert_int_equal(seen.closed, 1);
}

static void test_death_in_a_body(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	char text[64];

	start_peer(rig, &seen, "die-mid-body", NULL);
	WAIT_FOR(rig, seen.exits);
	assert_int_equal(seen.frames, 1);
	assert_string_equal(child_describe_exit(seen.status, text, sizeof(text)),
			    "killed by signal 9 (SIGKILL)");
}

/* Bad bytes of one that is dead already: recorded, and nobody is signalled any more. */
static void test_bad_last_words(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 20; i++) {
		struct seen seen;
		start_role(rig, &seen, "last-words", "", NULL);
		WAIT_FOR(rig, seen.exits);
		assert_non_null(strstr(seen.failure, "frame header"));
		assert_int_equal(seen.state, CHILD_GONE);
	}
}

static void test_describe_exit(void **state)
{
	char text[64];

	assert_string_equal(child_describe_exit(3 << 8, text, sizeof(text)),
			    "exited with status 3");
	assert_string_equal(child_describe_exit(SIGTERM, text, sizeof(text)),
			    "killed by signal 15 (SIGTERM)");
	assert_string_equal(child_kind_name(CHILD_GIT), "git");
}

/* ---- stopping ---- */

/* The clock that libevent sets its timers by: some milliseconds behind the other one. */
static int64_t loop_clock_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC_COARSE, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void test_term_timer_kill(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "ignore-term", NULL);

	WAIT_FOR(rig, seen.frames == 1);
	int64_t start = loop_clock_ms();
	child_stop(child, 150);
	assert_int_equal(child->state, CHILD_STOPPING);
	WAIT_FOR(rig, seen.exits);
	assert_true(clock_mono_ms() - start >= 150);
	assert_int_equal(WTERMSIG(seen.status), SIGKILL);
	assert_string_equal(seen.failure, "");
}

/* A shorter grace wins, a longer one changes nothing. */
static void test_grace(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "ignore-term", NULL);

	WAIT_FOR(rig, seen.frames == 1);
	int64_t start = clock_mono_ms();
	child_stop(child, 2 * PATIENCE_MS);
	child_stop(child, 50);
	child_stop(child, 2 * PATIENCE_MS);
	WAIT_FOR(rig, seen.exits);
	assert_true(clock_mono_ms() - start < PATIENCE_MS);
}

static void test_term_is_enough_for_most(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	struct child *child = start_peer(rig, &seen, "half-frame", NULL);

	WAIT_FOR(rig, seen.frames == 1);
	child_stop(child, PATIENCE_MS);
	WAIT_FOR(rig, seen.exits);
	assert_int_equal(WTERMSIG(seen.status), SIGTERM);
}

static void test_program_that_is_missing(void **state)
{
	static const char *const argv[] = {"x", NULL};
	struct rig *rig = *state;
	struct child_spec spec = {
		.kind = CHILD_GATEWAY, .name = "x", .channel = true, .opts = SPAWN_OPTS_INIT};
	struct child *child = NULL;
	struct err err = ERR_INIT;

	spec.opts.path = "/nonexistent/baton-gateway";
	spec.opts.argv = argv;
	assert_int_equal(children_spawn(rig->set, &spec, &child, &err), -1);
	assert_non_null(strstr(err.message, "cannot start the gateway"));
	assert_null(child);
	assert_int_equal(children_count(rig->set, -1), 0);
}

/* ---- descendants ---- */

/* The group goes with its leader, and what was orphaned is reaped here. */
static void test_group_ends_with_its_leader(void **state)
{
	struct rig *rig = *state;
	struct seen seen;
	int fd;

	start_role(rig, &seen, "leader", "group", &fd);
	WAIT_FOR(rig, seen.exits);
	assert_int_equal(seen.status, 0);
	pid_t orphan = read_pid(fd);
	WAIT_FOR(rig, !is_there(orphan));
}

/* One that left the group is a stray: the sweep takes it and spares the living. */
static void test_sweep_takes_strays(void **state)
{
	struct rig *rig = *state;
	struct seen living, seen;
	struct child *mute = start_peer(rig, &living, "mute", NULL);
	int fd;

	start_role(rig, &seen, "leader", "session", &fd);
	WAIT_FOR(rig, seen.exits);
	pid_t stray = read_pid(fd);
	assert_true(is_there(stray));
	WAIT_FOR(rig, children_sweep(rig->set));
	assert_false(is_there(stray));
	assert_true(is_there(mute->pid));
	assert_int_equal(mute->state, CHILD_RUNNING);
	assert_int_equal(living.exits, 0);
}

/* What is left at the end is killed and reaped; teardown looks for zombies. */
static void test_free_leaves_nobody(void **state)
{
	struct rig *rig = *state;
	struct seen seen[3];

	start_peer(rig, &seen[0], "ignore-term", NULL);
	start_peer(rig, &seen[1], "mute", NULL);
	start_peer(rig, &seen[2], "never-read", NULL);
	WAIT_FOR(rig, seen[0].frames == 1);
	assert_int_equal(children_count(rig->set, CHILD_AGENT), 3);
}

#define rig_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_bad_bytes_are_one_childs_failure),
		rig_test(test_all_peers_together),
		rig_test(test_peer_that_never_reads),
		rig_test(test_half_a_frame),
		rig_test(test_last_frames_are_read),
		rig_test(test_exit_is_seen_first),
		rig_test(test_death_in_a_body),
		rig_test(test_bad_last_words),
		rig_test(test_describe_exit),
		rig_test(test_term_timer_kill),
		rig_test(test_grace),
		rig_test(test_term_is_enough_for_most),
		rig_test(test_program_that_is_missing),
		rig_test(test_group_ends_with_its_leader),
		rig_test(test_sweep_takes_strays),
		rig_test(test_free_leaves_nobody),
	};

	if (argc > 2 && strcmp(argv[1], "leader") == 0)
		return be_leader(strcmp(argv[2], "session") == 0);
	if (argc > 2 && strcmp(argv[1], "last-words") == 0)
		return be_last_words();
	return cmocka_run_group_tests_name("orchestrator/child", tests, NULL, NULL);
}
