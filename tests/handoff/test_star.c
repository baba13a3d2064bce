/*
 * test_star.c - the whole star at once: 32 agents, one gateway, the parent's relay between them.
 *
 * Issue 2, "Channel": 600 KB bodies in both directions at once through slow readers: no deadlock,
 * no queue beyond its credit, cancel answers within 100 ms. The agents and the gateway are forked
 * processes; this process relays with poll(2). The time of a cancel is measured and printed; the
 * test fails only at a bound that no loaded machine should meet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/call.h"
#include "star_peers.h"

enum {
	SMALL = 64 << 10, /* small frames beside the data */
	SOCKET_BUFFER = 16 << 10,
	DEADLINE_MS = 90000,
	CANCEL_MAX_US = 2000000,
};

struct star {
	struct call_relay *relay;
	struct channel *gateway;
	pid_t gateway_pid;
	struct star_peer {
		struct star *star;
		struct channel *ch; /* NULL: gone */
		pid_t pid;
		int index;
		bool done;
	} agents[STAR_AGENTS];
	int results, cancels;
	int64_t cancel_max_us;
	size_t queued_max, queued_gateway_max;
};

static int from_agent(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct star_peer *peer = arg;
	struct star *star = peer->star;
	AUTO_FREE char *name = mem_printf("a%d", peer->index);
	AUTO_FREE char *text = mem_strndup(frame->len ? frame->body : "", frame->len);
	int64_t took = 0;
	struct call_entry *entry;
	switch (frame->type) {
	case FRAME_HELLO: return 0;
	case FRAME_REQUEST:
		entry = call_relay_open(star->relay, ch, peer, frame, name, err);
		if (!entry)
			return -1;
		call_relay_release(star->relay, entry);
		return 0;
	case FRAME_EVENT:
		star->cancels++;
		assert_int_equal(text_parse_i64(text, &took), 0);
		star->cancel_max_us = MAX(star->cancel_max_us, took);
		return 0;
	case FRAME_RESULT:
		assert_string_equal(json_str(frame->header, "status", ""), "done");
		peer->done = true;
		star->results++;
		return 0;
	default: return call_relay_from_agent(star->relay, ch, frame, err);
	}
}

static int from_gateway(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct star *star = arg;
	struct call_entry *entry;
	bool over;
	if (call_relay_from_gateway(star->relay, frame, &entry, &over, err) < 0)
		return -1;
	if (over)
		call_relay_close(star->relay, entry);
	return 0;
}

static void shrink(int fd)
{
	int size = SOCKET_BUFFER;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

/* Forks a peer; returns our end. The child closes what it inherited of the others, or none of them
 * would see its end of stream. */
static int fork_peer(struct star *star, int index, pid_t *ret_pid)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	shrink(fds[0]);
	shrink(fds[1]);
	fflush(NULL);
	*ret_pid = fork();
	assert_true(*ret_pid >= 0);
	if (*ret_pid > 0) {
		close(fds[1]);
		return fds[0];
	}
	close(fds[0]);
	if (star->gateway)
		close(channel_fd_in(star->gateway));
	for (int i = 0; i < STAR_AGENTS; i++)
		if (star->agents[i].ch)
			close(channel_fd_in(star->agents[i].ch));
	_exit(index < 0 ? star_gateway(fds[1]) : star_agent(fds[1], index));
}

static void star_init(struct star *star)
{
	*star = (struct star){.relay = call_relay_new()};
	int fd = fork_peer(star, -1, &star->gateway_pid);
	star->gateway = channel_new(fd, fd, FROM_G, from_gateway, star);
	call_relay_gateway(star->relay, star->gateway);
	for (int i = 0; i < STAR_AGENTS; i++) {
		struct star_peer *peer = &star->agents[i];
		peer->star = star;
		peer->index = i;
		fd = fork_peer(star, i, &peer->pid);
		peer->ch = channel_new(fd, fd, FROM_A, from_agent, peer);
	}
}

static void assert_exited(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void serve_gateway(struct star *star, short revents)
{
	struct err err = ERR_INIT;
	if (revents & POLLOUT && channel_on_writable(star->gateway, &err) < 0)
		fail_msg("gateway: %s", err.message);
	if (revents & (POLLIN | POLLHUP) && channel_on_readable(star->gateway, &err) < 0)
		fail_msg("gateway: %s", err.message);
}

static void serve_agent(struct star_peer *peer, short revents)
{
	struct err err = ERR_INIT;
	int rc = 0;
	if (revents & POLLOUT)
		rc = channel_on_writable(peer->ch, &err);
	if (rc == 0 && revents & (POLLIN | POLLHUP))
		rc = channel_on_readable(peer->ch, &err);
	if (rc == 0)
		return;
	if (!peer->done)
		fail_msg("agent %d: %s", peer->index, err.message);
	call_relay_drop_agent(peer->star->relay, peer->ch, NULL, NULL);
	channel_free(take_ptr(peer->ch));
	assert_exited(peer->pid);
}

/* The bound of the issue: what is queued for a peer is within the credit of its open calls. */
static void check_queues(struct star *star)
{
	size_t open[STAR_AGENTS] = {0}, all = 0;
	for (int i = 0; i < STAR_AGENTS; i++) {
		for (int64_t req = 1; star->agents[i].ch && req <= 2; req++)
			open[i] += call_relay_find(star->relay, star->agents[i].ch, req) != NULL;
		all += open[i];
	}
	size_t gateway = channel_queued(star->gateway);
	star->queued_gateway_max = MAX(star->queued_gateway_max, gateway);
	/* A call that is over may have left up to its credit in a queue behind it. */
	assert_true(gateway <= (all + STAR_CANCELLERS) * CALL_CREDIT + SMALL);
	for (int i = 0; i < STAR_AGENTS; i++) {
		if (!star->agents[i].ch)
			continue;
		size_t queued = channel_queued(star->agents[i].ch);
		star->queued_max = MAX(star->queued_max, queued);
		assert_true(queued <= (i < STAR_CANCELLERS ? 2 : 1) * CALL_CREDIT + SMALL);
	}
}

static void star_turn(struct star *star)
{
	struct pollfd fds[STAR_AGENTS + 1];
	for (int i = 0; i <= STAR_AGENTS; i++) {
		struct channel *ch = i < STAR_AGENTS ? star->agents[i].ch : star->gateway;
		fds[i] = (struct pollfd){.fd = ch ? channel_fd_in(ch) : -1, .events = POLLIN};
		if (ch && channel_wants_write(ch))
			fds[i].events |= POLLOUT;
	}
	(void)poll(fds, STAR_AGENTS + 1, 1000);
	if (fds[STAR_AGENTS].revents)
		serve_gateway(star, fds[STAR_AGENTS].revents);
	for (int i = 0; i < STAR_AGENTS; i++)
		if (fds[i].revents)
			serve_agent(&star->agents[i], fds[i].revents);
	check_queues(star);
}

static void test_star_of_slow_readers(void **state)
{
	static struct star star;
	int64_t start = clock_mono_ms();
	bool alive = true;
	star_init(&star);
	while (alive) {
		if (clock_mono_ms() - start > DEADLINE_MS)
			fail_msg("deadlock: %d of %d agents are done", star.results, STAR_AGENTS);
		star_turn(&star);
		alive = false;
		for (int i = 0; i < STAR_AGENTS; i++)
			alive |= star.agents[i].ch != NULL;
	}
	assert_int_equal(star.results, STAR_AGENTS);
	assert_int_equal(star.cancels, STAR_CANCELLERS);
	assert_int_equal(call_relay_count(star.relay), 0);
	channel_free(star.gateway);
	assert_exited(star.gateway_pid);
	call_relay_free(star.relay);
	print_message(
		"star: %lld ms; slowest cancel %.1f ms (aim: 100); largest queue %zu bytes to an "
		"agent, %zu to the gateway\n",
		(long long)(clock_mono_ms() - start), (double)star.cancel_max_us / 1000,
		star.queued_max, star.queued_gateway_max);
	assert_true(star.cancel_max_us < CANCEL_MAX_US);
	assert_true(star.queued_max > SOCKET_BUFFER); /* the readers were slow indeed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_star_of_slow_readers),
	};
	return cmocka_run_group_tests_name("handoff/star", tests, NULL, NULL);
}
