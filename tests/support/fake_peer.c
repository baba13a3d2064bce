/*
 * fake_peer.c - a child that misbehaves on its channel (descriptor 3), for the tests of the parent.
 *
 * It stands where an agent stands and breaks one rule, named by its argument:
 *
 *   mute          says nothing, reads what it is told, lives until the channel ends
 *   garbage       hello, then bytes that are no frame
 *   half-frame    hello, then half a header, and stays
 *   wrong-sender  hello, then a frame that only the gateway may send
 *   huge-length   hello, then a header that announces 1 GiB
 *   die-after N   hello and pings, N frames in all, then ends without a result
 *   die-mid-body  hello, then dies in the middle of a body
 *   never-read    hello, then requests answers for ever and reads none
 *   ignore-term   hello, ignores TERM and the end of the channel: only KILL ends it
 *
 * All but ignore-term end at the end of the channel, so a failing test leaves nothing behind; and
 * ignore-term ends when the process that started it is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/frame.h"

enum { CHANNEL = 3, CUT = 10 };

static void say(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(CHANNEL, bytes, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			exit(1);
		bytes += sent;
		n -= (size_t)sent;
	}
}

static void say_frame(enum frame_type type, const char *fields, const void *body, size_t len)
{
	AUTO_BUF struct buf out = BUF_INIT;
	frame_write(&out, type, fields, body, len, false);
	say(out.data, out.len);
}

static void say_hello(void)
{
	AUTO_FREE char *fields = mem_printf("\"version\":%d,\"role\":\"agent\",\"pid\":%ld",
					    FRAME_VERSION, (long)getpid());
	say_frame(FRAME_HELLO, fields, NULL, 0);
}

/* Reads and forgets until the other side closes. */
static void read_until_end(void)
{
	static char bytes[65536];
	ssize_t n;
	do
		n = read(CHANNEL, bytes, sizeof(bytes));
	while (n > 0 || (n < 0 && errno == EINTR));
}

static void be_mute(const char *arg)
{
	read_until_end();
}

static void be_garbage(const char *arg)
{
	static const char bytes[] = "\0\377\001 this is {no} frame \r\n\n\n";
	say_hello();
	say(bytes, sizeof(bytes));
	read_until_end();
}

static void be_half_frame(const char *arg)
{
	static const char bytes[] = "{\"type\":\"event\",\"len\":100,\"na";
	say_hello();
	say(bytes, sizeof(bytes) - 1);
	read_until_end();
}

static void be_wrong_sender(const char *arg)
{
	say_hello();
	say_frame(FRAME_GRANT, "\"req\":1,\"attempt\":1", NULL, 0);
	read_until_end();
}

static void be_huge_length(const char *arg)
{
	static const char bytes[] =
		"{\"type\":\"event\",\"len\":1073741824,\"name\":\"text\"}\nxxxxxxxxxxxxxxxx";
	say_hello();
	say(bytes, sizeof(bytes) - 1);
	read_until_end();
}

static void be_die_after(const char *arg)
{
	int64_t frames = 1;
	if (arg)
		(void)text_parse_i64(arg, &frames);
	for (int64_t i = 0; i < frames; i++) {
		AUTO_FREE char *fields = mem_printf("\"seq\":%lld", (long long)i);
		if (i == 0)
			say_hello();
		else
			say_frame(FRAME_PING, fields, NULL, 0);
	}
	_exit(7);
}

static void be_die_mid_body(const char *arg)
{
	AUTO_BUF struct buf out = BUF_INIT;
	static const char body[100] = "{\"text\":\"";
	say_hello();
	frame_write(&out, FRAME_EVENT, "\"name\":\"text\"", body, sizeof(body), false);
	say(out.data, out.len - sizeof(body) + CUT);
	raise(SIGKILL);
}

/* Each ping asks for a pong that is never fetched; while the socket is full it waits, unreading. */
static void be_never_read(const char *arg)
{
	AUTO_BUF struct buf pings = BUF_INIT;
	for (int i = 0; i < 1000; i++)
		frame_write(&pings, FRAME_PING, "\"seq\":1", NULL, 0, false);
	say_hello();
	for (;;)
		say(pings.data, pings.len);
}

static void be_ignore_term(const char *arg)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGTERM, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGINT, &ignore, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	say_hello();
	for (;;)
		poll(NULL, 0, -1);
}

static const struct {
	const char *name;
	void (*be)(const char *arg);
} behaviours[] = {
	{"mute", be_mute},
	{"garbage", be_garbage},
	{"half-frame", be_half_frame},
	{"wrong-sender", be_wrong_sender},
	{"huge-length", be_huge_length},
	{"die-after", be_die_after},
	{"die-mid-body", be_die_mid_body},
	{"never-read", be_never_read},
	{"ignore-term", be_ignore_term},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(behaviours); i++) {
		if (strcmp(argv[1], behaviours[i].name) != 0)
			continue;
		behaviours[i].be(argc > 2 ? argv[2] : NULL);
		return 0;
	}
	fprintf(stderr, "usage: fake_peer BEHAVIOUR [N]; see fake_peer.c\n");
	return 2;
}
