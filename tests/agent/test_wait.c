/*
 * test_wait.c - every wait sees the channel, signals, the caller's descriptors and the deadline.
 */
#include "agent_fixture.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/waiter.h"
#include "base/clock.h"
#include "base/memory.h"

static struct waiter *waiter;
static struct channel *parent;
static int64_t pongs;

static int on_frame(struct channel *ch, const struct frame *f, void *arg, struct err *err)
{
	if (f->type == FRAME_PONG)
		pongs = json_i64(f->header, "seq", -1);
	return 0;
}

static int setup(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	parent = channel_new(pair[0], pair[0], FROM_A, on_frame, NULL);
	waiter = waiter_new(pair[1], pair[1], NULL);
	assert_non_null(waiter);
	pongs = 0;
	return 0;
}

static int teardown(void **state)
{
	sigset_t none;

	waiter_free(waiter);
	channel_free(parent);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

static enum err_code wait_code(int64_t ms)
{
	struct err e = ERR_INIT;
	int rc = wait_poll(waiter, NULL, 0, ms == INT64_MAX ? ms : clock_mono_ms() + ms, &e);

	return rc < 0 ? e.code : ERR_NONE;
}

static void control(const char *action)
{
	channel_sendf(parent, FRAME_CONTROL, NULL, 0, "\"action\":\"%s\",\"reason\":\"because\"",
		      action);
}

static void deadline(void **state)
{
	int64_t began = clock_mono_ms();

	assert_int_equal(wait_code(40), ERR_TIMEOUT);
	assert_true(clock_mono_ms() - began >= 40);
	assert_int_equal(wait_code(-5), ERR_TIMEOUT);
}

static void callers_descriptors(void **state)
{
	int pipes[2];
	struct pollfd fds[2];

	assert_int_equal(pipe(pipes), 0);
	fds[0] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	fds[1] = (struct pollfd){.fd = -1};
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(wait_poll(waiter, fds, 2, INT64_MAX, NULL), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	close(pipes[0]);
	close(pipes[1]);
}

static void a_ping_is_answered_at_any_wait(void **state)
{
	channel_sendf(parent, FRAME_PING, NULL, 0, "\"seq\":7");
	/* It is no news to whoever waits. */
	assert_int_equal(wait_code(0), ERR_TIMEOUT);
	assert_int_equal(channel_on_readable(parent, NULL), 0);
	assert_int_equal(pongs, 7);
}

static void stop_is_for_ever(void **state)
{
	control("stop");
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	waiter_resume(waiter);
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	assert_true(waiter_stopping(waiter));
	assert_string_equal(waiter_reason(waiter), "because");
}

static void a_wish_to_report_ends_only_a_tools_wait(void **state)
{
	const char *reason = "";

	control("report");
	assert_int_equal(wait_code(INT64_MAX), ERR_NONE); /* the model's answer is waited for */
	assert_true(waiter_report_wanted(waiter, &reason));
	assert_string_equal(reason, "because");
	waiter_interruptible(waiter, true);
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED); /* also the tool's clean-up */
	assert_false(waiter_stopping(waiter));
	waiter_resume(waiter);
	assert_int_equal(wait_code(10), ERR_TIMEOUT);
	waiter_take_report(waiter);
	assert_false(waiter_report_wanted(waiter, NULL));
}

static void a_second_wish_to_report_is_a_stop(void **state)
{
	control("report");
	assert_int_equal(wait_code(INT64_MAX), ERR_NONE);
	waiter_take_report(waiter);
	control("report");
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	assert_true(waiter_stopping(waiter));
}

static void the_parents_end_is_seen(void **state)
{
	channel_free(parent);
	parent = NULL;
	assert_int_equal(wait_code(INT64_MAX), ERR_CLOSED);
	assert_int_equal(wait_code(INT64_MAX), ERR_CLOSED);
	assert_true(waiter_parent_gone(waiter));
}

static void frames_that_are_not_for_an_agent_end_the_channel(void **state)
{
	struct err e = ERR_INIT;

	control("dance");
	assert_int_equal(wait_poll(waiter, NULL, 0, INT64_MAX, &e), -1);
	assert_int_equal(e.code, ERR_CLOSED);
	assert_non_null(strstr(e.message, "dance"));
}

static void term_is_a_stop(void **state)
{
	kill(getpid(), SIGTERM);
	assert_int_equal(wait_code(INT64_MAX), ERR_CANCELLED);
	assert_true(waiter_stopping(waiter));
}

static void the_end_of_a_child_is_noticed(void **state)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(wait_code(10000), ERR_NONE);
	assert_int_equal(waitpid(pid, NULL, 0), pid); /* it was left for its owner to reap */
}

static void acks_by_key(void **state)
{
	bool ok = false;
	const char *body = "";

	waiter_expect_ack(waiter, ACK_REPORT, "c1");
	channel_sendf(parent, FRAME_ACK, "{}", 2, "\"call\":\"c0\",\"ok\":false");
	channel_sendf(parent, FRAME_ACK, "{\"a\":1}", 7, "\"call\":\"c1\",\"ok\":true");
	channel_sendf(parent, FRAME_ACK, "{}", 2, "\"call\":\"c1\",\"ok\":false");
	while (!waiter_acked(waiter, ACK_REPORT, &ok, &body))
		assert_int_equal(wait_code(5000), ERR_NONE);
	assert_true(ok);
	assert_string_equal(body, "{\"a\":1}");
}

static void readiness_and_start(void **state)
{
	const char *message = "";

	assert_null(waiter_start(waiter));
	channel_send(parent, FRAME_START, "", "{\"run\":1}", 9);
	channel_send(parent, FRAME_READY, "", "{\"ok\":false,\"message\":\"no room\"}", 32);
	while (waiter_worktree(waiter, &message) == WORKTREE_PENDING)
		assert_int_equal(wait_code(5000), ERR_NONE);
	assert_int_equal(waiter_worktree(waiter, &message), WORKTREE_FAILED);
	assert_string_equal(message, "no room");
	assert_string_equal(buf_str(waiter_start(waiter)), "{\"run\":1}");
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(deadline),
		WITH_PAIR(callers_descriptors),
		WITH_PAIR(a_ping_is_answered_at_any_wait),
		WITH_PAIR(stop_is_for_ever),
		WITH_PAIR(a_wish_to_report_ends_only_a_tools_wait),
		WITH_PAIR(a_second_wish_to_report_is_a_stop),
		WITH_PAIR(the_parents_end_is_seen),
		WITH_PAIR(frames_that_are_not_for_an_agent_end_the_channel),
		WITH_PAIR(term_is_a_stop),
		WITH_PAIR(the_end_of_a_child_is_noticed),
		WITH_PAIR(acks_by_key),
		WITH_PAIR(readiness_and_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
