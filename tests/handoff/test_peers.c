/*
 * test_peers.c - each child that misbehaves (tests/support/fake_peer.c), seen from its channel.
 *
 * Issue 2, "Channel": bad bytes are that child's recorded failure, never more. Here the channel
 * alone is shown to end with the right error and within bounded memory; what the parent makes of it
 * is tested with the orchestrator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "handoff/channel.h"

enum { DEADLINE_MS = 60000 };

struct peer {
	struct channel *ch;
	pid_t pid;
	int frames;
	bool answer; /* pong each ping */
};

static int on_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct peer *peer = arg;
	if (peer->frames++ == 0 && frame->type != FRAME_HELLO)
		return err_set(err, ERR_INVALID, "no hello");
	if (peer->answer && frame->type == FRAME_PING)
		channel_sendf(ch, FRAME_PONG, NULL, 0, "\"seq\":%d",
			      (int)json_i64(frame->header, "seq", 0));
	return 0;
}

static void peer_start(struct peer *peer, const char *behaviour, const char *n)
{
	int fds[2];
	struct err err = ERR_INIT;
	const char *argv[] = {"fake_peer", behaviour, n, NULL};
	struct spawn_opts opts = SPAWN_OPTS_INIT;
	*peer = (struct peer){.pid = -1};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	opts.path = FAKE_PEER;
	opts.argv = argv;
	opts.fd_channel = fds[1];
	if (spawn_process(&opts, &peer->pid, NULL, &err) < 0)
		fail_msg("%s", err.message);
	close(fds[1]);
	peer->ch = channel_new(fds[0], fds[0], FROM_A, on_frame, peer);
}

static void turn(struct peer *peer, int timeout_ms, int *ret_rc, struct err *err)
{
	struct pollfd pfd = {.fd = channel_fd_in(peer->ch), .events = POLLIN};
	if (channel_wants_write(peer->ch))
		pfd.events |= POLLOUT;
	(void)poll(&pfd, 1, timeout_ms);
	*ret_rc = 0;
	if (pfd.revents & POLLOUT)
		*ret_rc = channel_on_writable(peer->ch, err);
	if (*ret_rc == 0 && pfd.revents & (POLLIN | POLLHUP))
		*ret_rc = channel_on_readable(peer->ch, err);
}

/* Runs until the channel fails. */
static void peer_fail(struct peer *peer, struct err *err)
{
	int64_t deadline = clock_mono_ms() + DEADLINE_MS;
	int rc = 0;
	while (rc == 0) {
		assert_true(clock_mono_ms() < deadline);
		turn(peer, 1000, &rc, err);
	}
}

static int peer_end(struct peer *peer)
{
	int status;
	channel_free(peer->ch);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	return status;
}

static void expect(const char *behaviour, const char *n, enum err_code code, const char *part,
		   int frames)
{
	struct peer peer;
	struct err err = ERR_INIT;
	peer_start(&peer, behaviour, n);
	peer_fail(&peer, &err);
	if (err.code != code || !strstr(err.message, part))
		fail_msg("%s: code %d '%s'", behaviour, err.code, err.message);
	assert_int_equal(peer.frames, frames);
	peer_end(&peer);
}

static void test_bad_bytes(void **state)
{
	expect("garbage", NULL, ERR_INVALID, "frame header", 1);
	expect("wrong-sender", NULL, ERR_DENIED, "'grant'", 1);
	expect("huge-length", NULL, ERR_TOO_LARGE, "1073741824", 1);
}

static void test_deaths(void **state)
{
	expect("die-after", "1", ERR_CLOSED, "closed the channel", 1);
	expect("die-after", "50", ERR_CLOSED, "closed the channel", 50);
	expect("die-mid-body", NULL, ERR_CLOSED, "middle of a frame", 1);
}

/* Nothing wrong is ever seen of these two: only a deadline of the owner's can end them. */
static void test_silent_peers_end_with_their_channel(void **state)
{
	static const char *const names[] = {"mute", "half-frame"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct peer peer;
		struct err err = ERR_INIT;
		int rc = 0;
		peer_start(&peer, names[i], NULL);
		int64_t deadline = clock_mono_ms() + (i == 0 ? 50 : DEADLINE_MS);
		while (rc == 0 && peer.frames < (int)i && clock_mono_ms() < deadline)
			turn(&peer, 50, &rc, &err);
		assert_int_equal(rc, 0);
		assert_int_equal(peer.frames, i);
		assert_true(WIFEXITED(peer_end(&peer)));
	}
}

/* It asks for ever and reads nothing: our queue for it grows to its limit and not beyond. */
static void test_peer_that_never_reads(void **state)
{
	struct peer peer;
	struct err err = ERR_INIT;
	peer_start(&peer, "never-read", NULL);
	channel_set_limit(peer.ch, 256 << 10);
	peer.answer = true;
	peer_fail(&peer, &err);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_non_null(strstr(err.message, "does not read"));
	peer_end(&peer);
}

static void test_peer_that_ignores_term(void **state)
{
	struct peer peer;
	struct err err = ERR_INIT;
	int rc = 0, status;
	peer_start(&peer, "ignore-term", NULL);
	while (rc == 0 && peer.frames == 0)
		turn(&peer, 1000, &rc, &err);
	assert_int_equal(kill(peer.pid, SIGTERM), 0);
	turn(&peer, 100, &rc, &err);
	assert_int_equal(rc, 0);
	assert_int_equal(waitpid(peer.pid, &status, WNOHANG), 0);
	assert_int_equal(kill(peer.pid, SIGKILL), 0);
	assert_true(WIFSIGNALED(peer_end(&peer)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_bytes),
		cmocka_unit_test(test_deaths),
		cmocka_unit_test(test_silent_peers_end_with_their_channel),
		cmocka_unit_test(test_peer_that_never_reads),
		cmocka_unit_test(test_peer_that_ignores_term),
	};
	return cmocka_run_group_tests_name("handoff/peers", tests, NULL, NULL);
}
