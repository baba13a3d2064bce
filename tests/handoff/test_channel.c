/*
 * test_channel.c - frames over a real socketpair: documents, bounds, deaths, the handshake.
 *
 * One side is a struct channel, the other either a second channel or a bare descriptor that the
 * test feeds byte by byte (issue 2, "Channel": fake peers).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/memory.h"
#include "handoff/channel.h"

struct seen {
	int count;
	enum frame_type type;
	size_t len;
	uint64_t sum;
	int64_t seq;
	bool refuse;
	bool answer; /* pong for ping */
};

static uint64_t sum_bytes(const char *bytes, size_t n)
{
	uint64_t sum = 1469598103934665603u;
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
	return sum;
}

static int on_frame(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct seen *seen = arg;
	seen->count++;
	seen->type = frame->type;
	seen->len = frame->len;
	seen->sum = sum_bytes(frame->body, frame->len);
	seen->seq = json_i64(frame->header, "seq", seen->seq);
	if (seen->answer && frame->type == FRAME_PING)
		channel_sendf(ch, FRAME_PONG, NULL, 0, "\"seq\":%d", (int)seen->seq);
	return seen->refuse ? err_set(err, ERR_INVALID, "not wanted") : 0;
}

struct pair {
	struct channel *parent, *agent; /* agent NULL: bare descriptor `fd` */
	struct seen by_parent, by_agent;
	int fd;
};

static void pair_init(struct pair *p, bool bare)
{
	int fds[2];
	*p = (struct pair){.fd = -1};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p->parent = channel_new(fds[0], fds[0], FROM_A, on_frame, &p->by_parent);
	if (bare)
		p->fd = fds[1];
	else
		p->agent = channel_new(fds[1], fds[1], FROM_P, on_frame, &p->by_agent);
}

static void pair_release(struct pair *p)
{
	channel_free(p->parent);
	channel_free(p->agent);
	if (p->fd >= 0)
		close(p->fd);
}

/* Turns both loops until nothing is queued and nothing comes any more. */
static void pair_settle(struct pair *p)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = channel_fd_in(p->parent), .events = POLLIN},
					{.fd = channel_fd_in(p->agent), .events = POLLIN}};
		fds[0].events |= channel_wants_write(p->parent) ? POLLOUT : 0;
		fds[1].events |= channel_wants_write(p->agent) ? POLLOUT : 0;
		if (poll(fds, 2, 0) <= 0)
			return;
		struct channel *both[2] = {p->parent, p->agent};
		for (int i = 0; i < 2; i++) {
			struct err err = ERR_INIT;
			if (fds[i].revents & POLLOUT && channel_on_writable(both[i], &err) < 0)
				fail_msg("%s", err.message);
			if (fds[i].revents & POLLIN && channel_on_readable(both[i], &err) < 0)
				fail_msg("%s", err.message);
		}
	}
}

static char *pattern(size_t n)
{
	char *bytes = mem_alloc(n + 1);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)((i * 2654435761u) >> 13);
	return bytes;
}

static void test_documents_are_split_and_joined(void **state)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 8 << 20};
	struct pair p;
	pair_init(&p, false);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		AUTO_FREE char *body = pattern(sizes[i]);
		channel_send(p.parent, FRAME_START, NULL, body, sizes[i]);
		pair_settle(&p);
		assert_int_equal(p.by_agent.count, i + 1);
		assert_int_equal(p.by_agent.type, FRAME_START);
		assert_int_equal(p.by_agent.len, sizes[i]);
		assert_true(p.by_agent.sum == sum_bytes(body, sizes[i]));
		assert_int_equal(channel_queued(p.parent), 0);
	}
	pair_release(&p);
}

/* Several held frames reach the peer in order, with one wakeup, and not before the owner writes. */
static void test_held_frames_go_together(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;

	pair_init(&p, false);
	channel_hold(p.agent, true);
	for (int i = 0; i < 3; i++)
		channel_sendf(p.agent, FRAME_EVENT, "{}", 2, "\"name\":\"e%d\"", i);
	channel_hold(p.agent, false);
	struct pollfd readable = {.fd = channel_fd_in(p.parent), .events = POLLIN};
	assert_int_equal(poll(&readable, 1, 0), 0);
	assert_true(channel_wants_write(p.agent));
	assert_int_equal(channel_on_writable(p.agent, &err), 0);
	assert_int_equal(poll(&readable, 1, 0), 1);
	pair_settle(&p);
	assert_int_equal(p.by_parent.count, 3);
	/* What is sent afterwards does not overtake what was held. */
	channel_hold(p.agent, true);
	channel_sendf(p.agent, FRAME_EVENT, "{}", 2, "\"name\":\"e3\"");
	channel_hold(p.agent, false);
	channel_sendf(p.agent, FRAME_EVENT, "{}", 2, "\"name\":\"e4\"");
	pair_settle(&p);
	assert_int_equal(p.by_parent.count, 5);
	pair_release(&p);
}

static void test_both_directions_at_once(void **state)
{
	struct pair p;
	AUTO_FREE char *body = pattern(1 << 20);
	pair_init(&p, false);
	p.by_agent.answer = true;
	for (int i = 0; i < 5; i++) {
		channel_send(p.parent, FRAME_CONTROL, "\"action\":\"x\"", body, 1 << 20);
		channel_send(p.agent, FRAME_RESULT, "\"status\":\"done\"", body, 1 << 20);
	}
	channel_send(p.parent, FRAME_PING, "\"seq\":9", NULL, 0);
	pair_settle(&p);
	assert_int_equal(p.by_agent.count, 6);
	assert_int_equal(p.by_parent.count, 6);
	assert_int_equal(p.by_parent.seq, 9);
	pair_release(&p);
}

static void put(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

static void test_half_frames_at_each_byte(void **state)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	frame_write(&bytes, FRAME_DATA, "\"req\":1", "body\n{}", 7, false);
	frame_write(&bytes, FRAME_PING, "\"seq\":5", NULL, 0, false);
	for (size_t cut = 0; cut <= bytes.len; cut++) {
		struct pair p;
		struct err err = ERR_INIT;
		pair_init(&p, true);
		if (cut)
			put(p.fd, bytes.data, cut);
		assert_int_equal(channel_on_readable(p.parent, &err), 0);
		if (cut < bytes.len)
			put(p.fd, bytes.data + cut, bytes.len - cut);
		assert_int_equal(channel_on_readable(p.parent, &err), 0);
		assert_int_equal(p.by_parent.count, 2);
		assert_int_equal(p.by_parent.seq, 5);
		pair_release(&p);
	}
}

/* The end of stream at each byte of a frame: always an error value, and it says whether it was cut.
 */
static void test_death_at_each_byte(void **state)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	frame_write(&bytes, FRAME_DATA, "\"req\":1", "body", 4, false);
	for (size_t cut = 0; cut <= bytes.len; cut++) {
		struct pair p;
		struct err err = ERR_INIT;
		pair_init(&p, true);
		if (cut)
			put(p.fd, bytes.data, cut);
		close(take_fd(p.fd));
		assert_int_equal(channel_on_readable(p.parent, &err), -1);
		assert_int_equal(err.code, ERR_CLOSED);
		assert_int_equal(p.by_parent.count, cut == bytes.len);
		bool whole = cut == 0 || cut == bytes.len;
		assert_int_equal(strstr(err.message, "middle") == NULL, whole);
		pair_release(&p);
	}
}

static int feed(const struct buf *bytes, struct err *err)
{
	struct pair p;
	pair_init(&p, true);
	put(p.fd, bytes->data, bytes->len);
	int rc = channel_on_readable(p.parent, err);
	pair_release(&p);
	return rc;
}

static void test_death_between_parts_is_a_cut(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	AUTO_BUF struct buf bytes = BUF_INIT;
	frame_write(&bytes, FRAME_RESULT, "\"status\":\"done\"", "x", 1, true);
	pair_init(&p, true);
	put(p.fd, bytes.data, bytes.len);
	close(take_fd(p.fd));
	assert_int_equal(channel_on_readable(p.parent, &err), -1);
	assert_non_null(strstr(err.message, "middle"));
	assert_int_equal(p.by_parent.count, 0);
	pair_release(&p);
}

static void test_nothing_between_parts(void **state)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	struct err err = ERR_INIT;
	frame_write(&bytes, FRAME_RESULT, "\"status\":\"done\"", "x", 1, true);
	frame_write(&bytes, FRAME_PING, "\"seq\":1", NULL, 0, false);
	assert_int_equal(feed(&bytes, &err), -1);
	assert_non_null(strstr(err.message, "inside a document"));
}

/* Parts without end are stopped at the type's max_body. */
static void test_joined_size_is_bounded(void **state)
{
	AUTO_BUF struct buf bytes = BUF_INIT;
	AUTO_FREE char *body = pattern(30000);
	struct err err = ERR_INIT;
	for (int i = 0; i < 3; i++)
		frame_write(&bytes, FRAME_CHECKPOINT, "\"generation\":1,\"call\":\"c\"", body,
			    30000, true);
	assert_int_equal(feed(&bytes, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void test_callback_refusal_fails_the_channel(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	pair_init(&p, false);
	p.by_parent.refuse = true;
	channel_send(p.agent, FRAME_PING, "\"seq\":1", NULL, 0);
	assert_int_equal(channel_on_readable(p.parent, &err), -1);
	assert_string_equal(err.message, "not wanted");
	pair_release(&p);
}

/* What arrives, in order, as one letter a frame. */
struct order {
	char seen[64];
	size_t count;
};

static int on_order(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	struct order *order = arg;
	char letter = frame->type == FRAME_PING	   ? 'p'
		      : frame->type == FRAME_START ? 's'
		      : frame->type == FRAME_ABORT ? 'x'
						   : 'd';
	assert_true(order->count < sizeof(order->seen) - 1);
	order->seen[order->count++] = letter;
	return 0;
}

/* Urgent frames overtake whole units only: not the one that is begun, and no part of a document. */
static void test_urgent_frames_overtake(void **state)
{
	int fds[2], size = 4096;
	struct order order = {.count = 0};
	AUTO_FREE char *body = pattern(1 << 20);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	struct channel *parent = channel_new(fds[0], fds[0], FROM_G, on_order, NULL);
	struct channel *gateway = channel_new(fds[1], fds[1], FROM_P, on_order, &order);
	channel_send(parent, FRAME_START, NULL, body, 1 << 20); /* begun */
	channel_send(parent, FRAME_DATA, "\"req\":1", body, 1 << 16);
	channel_send(parent, FRAME_PING, "\"seq\":1", NULL, 0);
	channel_send(parent, FRAME_START, NULL, body, 1 << 20);
	channel_send(parent, FRAME_ABORT, "\"req\":1", NULL, 0);
	while (channel_queued(parent) > 1100000) {
		assert_int_equal(channel_on_writable(parent, NULL), 0);
		assert_int_equal(channel_on_readable(gateway, NULL), 0);
	}
	channel_send(parent, FRAME_PING, "\"seq\":2", NULL, 0);
	channel_send_urgent(parent, FRAME_DATA, "\"req\":2", "u", 1);
	do {
		assert_int_equal(channel_on_writable(parent, NULL), 0);
		assert_int_equal(channel_on_readable(gateway, NULL), 0);
	} while (channel_queued(parent) > 0);
	assert_int_equal(channel_on_readable(gateway, NULL), 0);
	/* The second ping found the first data frame begun. */
	assert_string_equal(order.seen, "spxdpds");
	channel_free(parent);
	channel_free(gateway);
}

/* Random sizes, urgency and writes: every frame arrives whole, in order within its lane. */
static void test_queue_in_every_mixture(void **state)
{
	unsigned seed = 7;
	for (int round = 0; round < 60; round++) {
		int fds[2], size = 4096;
		struct order order = {.count = 0};
		char want[64] = "";
		AUTO_FREE char *body = pattern(1 << 18);
		size_t n = 0;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
		struct channel *parent = channel_new(fds[0], fds[0], FROM_G, on_order, NULL);
		struct channel *gateway = channel_new(fds[1], fds[1], FROM_P, on_order, &order);
		for (int i = 0; i < 40; i++) {
			seed = seed * 1103515245 + 12345;
			unsigned pick = (seed >> 16) % 4, len = (seed >> 8) % (1 << 17);
			if (pick == 0)
				channel_send(parent, FRAME_PING, "\"seq\":1", NULL, 0);
			else if (pick == 1)
				channel_send(parent, FRAME_START, NULL, body, len);
			else if (pick == 2)
				channel_send(parent, FRAME_DATA, "\"req\":1", body, len >> 1);
			else if (channel_on_writable(parent, NULL) < 0 ||
				 channel_on_readable(gateway, NULL) < 0)
				fail();
			if (pick == 1 || pick == 2)
				want[n++] = pick == 1 ? 's' : 'd';
		}
		while (channel_queued(parent) > 0) {
			assert_int_equal(channel_on_writable(parent, NULL), 0);
			assert_int_equal(channel_on_readable(gateway, NULL), 0);
		}
		assert_int_equal(channel_on_readable(gateway, NULL), 0);
		size_t kept = 0;
		for (size_t i = 0; i < order.count; i++)
			if (order.seen[i] != 'p')
				order.seen[kept++] = order.seen[i];
		order.seen[kept] = '\0';
		assert_string_equal(order.seen, want);
		channel_free(parent);
		channel_free(gateway);
	}
}

static void note_queue(struct channel *ch, void *arg)
{
	++*(int *)arg;
}

/* A peer that never reads: sends never block, the owner is told once, and the hard limit ends it.
 */
static void test_queue_hard_limit(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	int told = 0;
	AUTO_FREE char *body = pattern(8 << 20);
	pair_init(&p, true);
	channel_on_queue(p.parent, note_queue, &told);
	for (int i = 0; i < 5; i++)
		channel_send(p.parent, FRAME_START, NULL, body, 8 << 20);
	assert_int_equal(told, 1);
	assert_int_equal(channel_on_writable(p.parent, &err), 0);
	for (int i = 0; i < 2; i++)
		channel_send(p.parent, FRAME_START, NULL, body, 8 << 20);
	assert_int_equal(channel_queued(p.parent), 0);
	assert_true(channel_wants_write(p.parent));
	assert_int_equal(channel_on_writable(p.parent, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	pair_release(&p);
}

static void test_limit_can_be_set(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	AUTO_FREE char *body = pattern(8 << 20);
	pair_init(&p, true);
	channel_set_limit(p.parent, 1 << 20);
	channel_send(p.parent, FRAME_START, NULL, body, 8 << 20);
	assert_int_equal(channel_on_readable(p.parent, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	pair_release(&p);
}

/* What is above a maximum on our own side is an error of that channel, not an abort. */
static void test_oversized_sends_fail_later(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	AUTO_FREE char *body = pattern(2 << 20);
	pair_init(&p, false);
	channel_send(p.agent, FRAME_RESULT, "\"status\":\"done\"", body, 2 << 20);
	assert_int_equal(channel_on_readable(p.agent, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	pair_release(&p);

	pair_init(&p, false);
	memset(body, 'x', 5000);
	body[5000] = '\0';
	channel_sendf(p.agent, FRAME_EVENT, NULL, 0, "\"name\":\"%s\"", body);
	assert_int_equal(channel_on_readable(p.agent, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	pair_release(&p);
}

/* A child that says its result and dies while we write to it: the result arrives. */
static void test_last_words_are_heard(void **state)
{
	static const bool by_writing[] = {true, false};
	for (size_t i = 0; i < ARRAY_SIZE(by_writing); i++) {
		struct pair p;
		struct err err = ERR_INIT;
		AUTO_FREE char *body = pattern(1 << 20);
		AUTO_BUF struct buf bytes = BUF_INIT;
		pair_init(&p, true);
		frame_write(&bytes, FRAME_RESULT, "\"status\":\"done\"", "words", 5, false);
		channel_send(p.parent, FRAME_START, NULL, body, 1 << 20);
		put(p.fd, bytes.data, bytes.len);
		close(take_fd(p.fd));
		channel_send(p.parent, FRAME_PING, "\"seq\":1", NULL, 0);
		int rc = by_writing[i] ? channel_on_writable(p.parent, &err)
				       : channel_on_readable(p.parent, &err);
		assert_int_equal(rc, -1);
		assert_int_equal(err.code, ERR_CLOSED);
		assert_int_equal(p.by_parent.count, 1);
		assert_int_equal(p.by_parent.type, FRAME_RESULT);
		pair_release(&p);
	}
}

/* Over two pipes (a launcher's stdio) a closed writing side is noticed without any input. */
static void test_pipes(void **state)
{
	int up[2], down[2];
	struct seen seen = {0};
	struct err err = ERR_INIT;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	assert_int_equal(sigaction(SIGPIPE, &ignore, NULL), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	struct channel *ch = channel_new(up[0], down[1], FROM_A, on_frame, &seen);
	AUTO_BUF struct buf bytes = BUF_INIT;
	frame_write(&bytes, FRAME_PING, "\"seq\":3", NULL, 0, false);
	assert_int_equal(write(up[1], bytes.data, bytes.len), bytes.len);
	assert_int_equal(channel_on_readable(ch, &err), 0);
	assert_int_equal(seen.seq, 3);
	close(down[0]);
	channel_send(ch, FRAME_PONG, "\"seq\":3", NULL, 0);
	assert_true(channel_wants_write(ch));
	assert_int_equal(channel_on_writable(ch, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	channel_free(ch);
	close(up[1]);
}

static void test_drain(void **state)
{
	struct pair p;
	struct err err = ERR_INIT;
	AUTO_FREE char *body = pattern(4 << 20);
	pair_init(&p, true);
	channel_send(p.parent, FRAME_PING, "\"seq\":1", NULL, 0);
	assert_int_equal(channel_drain(p.parent, clock_mono_ms() + 1000, &err), 0);
	channel_send(p.parent, FRAME_START, NULL, body, 4 << 20);
	assert_int_equal(channel_drain(p.parent, clock_mono_ms() + 20, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	close(take_fd(p.fd));
	assert_int_equal(channel_drain(p.parent, clock_mono_ms() + 1000, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	pair_release(&p);
}

static int count_frames(struct channel *ch, const struct frame *frame, void *arg, struct err *err)
{
	int *frames = arg;
	(*frames)++;
	return 0;
}

/* design.md, the channel: who speaks first, and in which version, is checked below every owner.
 * `lines` NULL: what channel_send_hello writes. */
static void check_hello(const char *lines, const char *role, enum err_code code, int frames)
{
	int fds[2], seen = 0;
	struct err err = ERR_INIT;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	struct channel *parent = channel_new(fds[0], fds[0], FROM_A, count_frames, &seen);
	struct channel *agent = channel_new(fds[1], fds[1], FROM_P, count_frames, NULL);
	channel_keep(parent, role);
	if (lines)
		put(fds[1], lines, strlen(lines));
	else
		channel_send_hello(agent, "agent");
	assert_int_equal(channel_on_readable(parent, &err), code == ERR_NONE ? 0 : -1);
	assert_int_equal(err.code, code);
	assert_int_equal(seen, frames);
	channel_free(parent);
	channel_free(agent);
}

#define HELLO(version, role)                                                                       \
	"{\"type\":\"hello\",\"len\":0,\"version\":" version ",\"role\":\"" role "\",\"pid\":1}\n"
#define EVENT "{\"type\":\"event\",\"len\":0,\"name\":\"x\"}\n"

static void test_version_handshake(void **state)
{
	check_hello(NULL, "agent", ERR_NONE, 1);
	check_hello(NULL, "gateway", ERR_INVALID, 0);
	check_hello(HELLO("1", "agent") EVENT, "agent", ERR_NONE, 2);
	check_hello(HELLO("99", "agent"), "agent", ERR_UNSUPPORTED, 0);
	check_hello("{\"type\":\"ping\",\"len\":0,\"seq\":1}\n", "agent", ERR_INVALID, 0);
	check_hello(EVENT, "agent", ERR_INVALID, 0);
	check_hello(HELLO("1", "agent") HELLO("1", "agent"), "agent", ERR_INVALID, 1);
	check_hello(HELLO("1", "agent"), NULL, ERR_INVALID, 0);
	check_hello(EVENT, NULL, ERR_NONE, 1);
}

static void test_a_kept_channel_answers_pings(void **state)
{
	int fds[2], seen = 0, pongs = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	struct channel *kept = channel_new(fds[0], fds[0], FROM_A, count_frames, &seen);
	struct channel *raw = channel_new(fds[1], fds[1], FROM_P, count_frames, &pongs);
	channel_keep(kept, NULL);
	channel_send(raw, FRAME_PING, "\"seq\":1", NULL, 0);
	channel_send(raw, FRAME_PONG, "\"seq\":2", NULL, 0);
	assert_int_equal(channel_on_readable(kept, NULL), 0);
	assert_int_equal(channel_on_readable(raw, NULL), 0);
	assert_int_equal(seen, 0);
	assert_int_equal(pongs, 1);
	channel_free(kept);
	channel_free(raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents_are_split_and_joined),
		cmocka_unit_test(test_held_frames_go_together),
		cmocka_unit_test(test_both_directions_at_once),
		cmocka_unit_test(test_half_frames_at_each_byte),
		cmocka_unit_test(test_death_at_each_byte),
		cmocka_unit_test(test_death_between_parts_is_a_cut),
		cmocka_unit_test(test_nothing_between_parts),
		cmocka_unit_test(test_joined_size_is_bounded),
		cmocka_unit_test(test_callback_refusal_fails_the_channel),
		cmocka_unit_test(test_urgent_frames_overtake),
		cmocka_unit_test(test_queue_in_every_mixture),
		cmocka_unit_test(test_queue_hard_limit),
		cmocka_unit_test(test_limit_can_be_set),
		cmocka_unit_test(test_oversized_sends_fail_later),
		cmocka_unit_test(test_last_words_are_heard),
		cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_version_handshake),
		cmocka_unit_test(test_a_kept_channel_answers_pings),
	};
	return cmocka_run_group_tests_name("handoff/channel", tests, NULL, NULL);
}
