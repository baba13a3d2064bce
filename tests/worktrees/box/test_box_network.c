/*
 * test_box_network.c - sockets: none, loopback, open (design.md, "the box").
 *
 * Real listeners stand outside, so that a refusal is told from nobody being there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "box_rig.h"

struct listeners {
	int tcp, udp, unix_stream, unix_dgram, abstract;
	int tcp_port, udp_port;
	char *stream_path, *dgram_path, *abstract_name;
};

static int listen_inet(int type, int *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 8), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

/* A leading '@' makes the name abstract. */
static int listen_unix(int type, const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(n < sizeof(at.sun_path));
	memcpy(at.sun_path, name, n);
	if (*name == '@')
		at.sun_path[0] = '\0';
	n += offsetof(struct sockaddr_un, sun_path) + (*name != '@');
	assert_int_equal(bind(fd, (struct sockaddr *)&at, (socklen_t)n), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void open_listeners(struct box_rig *rig, struct listeners *l)
{
	l->tcp = listen_inet(SOCK_STREAM, &l->tcp_port);
	l->udp = listen_inet(SOCK_DGRAM, &l->udp_port);
	l->stream_path = mem_printf("%s/s", rig->work); /* even where it may write */
	l->dgram_path = mem_printf("%s/d", rig->work);
	l->abstract_name = mem_printf("@baton-test-%d", (int)getpid());
	l->unix_stream = listen_unix(SOCK_STREAM, l->stream_path);
	l->unix_dgram = listen_unix(SOCK_DGRAM, l->dgram_path);
	l->abstract = listen_unix(SOCK_STREAM, l->abstract_name);
}

static void close_listeners(struct listeners *l)
{
	close(l->tcp);
	close(l->udp);
	close(l->unix_stream);
	close(l->unix_dgram);
	close(l->abstract);
	free(l->stream_path);
	free(l->dgram_path);
	free(l->abstract_name);
}

/* Runs every way out; the answers are lines "name result". */
static int run_all(struct box_rig *rig, struct listeners *l, const char *network, struct buf *out)
{
	const char *const options[] = {"--network", network, NULL};
	AUTO_FREE char *script =
		mem_printf("$TRY tcp %d; $TRY udp %d; $TRY unix %s; $TRY unix %s; "
			   "$TRY unix_dgram %s; $TRY unix_raw %s; "
			   "$TRY unix_pair_dgram %s; $TRY unix_pair; $TRY own_tcp; "
			   "$TRY vsock; $TRY packet; $TRY shmget",
			   l->tcp_port, l->udp_port, l->stream_path, l->abstract_name,
			   l->dgram_path, l->dgram_path, l->dgram_path);

	return network ? box_run(rig, options, script, out) : box_run_open(rig, script, out);
}

static void assert_says(const struct buf *out, const char *line)
{
	if (!box_has_line(out, line))
		fail_msg("no '%s' in:\n%s", line, buf_str(out));
}

static void assert_silent(const struct buf *out, const char *line)
{
	if (box_has_line(out, line))
		fail_msg("'%s' in:\n%s", line, buf_str(out));
}

static void test_without_a_box_every_way_is_open(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct listeners l;

	open_listeners(*state, &l);
	run_all(*state, &l, NULL, &out);
	assert_says(&out, "tcp ok");
	assert_says(&out, "udp ok");
	assert_says(&out, "unix ok");
	assert_says(&out, "unix_dgram ok");
	assert_says(&out, "unix_raw ok");
	assert_says(&out, "unix_pair_dgram ok");
	close_listeners(&l);
}

static void assert_no_unix(const struct buf *out)
{
	assert_silent(out, "unix ok"); /* neither path nor abstract */
	assert_says(out, "unix_dgram EPERM");
	assert_says(out, "unix_raw EPERM");
	assert_says(out, "unix_pair_dgram EPERM");
	assert_says(out, "unix_pair ok");
	assert_says(out, "vsock EPERM");
	assert_says(out, "packet EPERM");
}

static void test_network_none(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct listeners l;

	open_listeners(*state, &l);
	run_all(*state, &l, "none", &out);
	assert_says(&out, "tcp EPERM");
	assert_says(&out, "udp EPERM");
	assert_says(&out, "own_tcp EPERM");
	assert_says(&out, "shmget EPERM");
	assert_no_unix(&out);
	close_listeners(&l);
}

static void test_network_loopback_is_a_world_of_its_own(void **state)
{
	struct box_rig *rig = *state;
	AUTO_BUF struct buf out = BUF_INIT;
	struct listeners l;

	open_listeners(rig, &l);
	int code = run_all(rig, &l, "loopback", &out);
	close_listeners(&l);
	if (code == 125 && strstr(buf_str(&out), "namespaces"))
		skip(); /* refused, not widened */
	assert_says(&out, "own_tcp ok");
	assert_says(&out, "tcp ECONNREFUSED"); /* nobody there: not the host's 127.0.0.1 */
	assert_says(&out, "shmget ok");
	assert_no_unix(&out);
}

static void test_network_open(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct listeners l;

	open_listeners(*state, &l);
	run_all(*state, &l, "open", &out);
	assert_says(&out, "tcp ok");
	assert_says(&out, "udp ok");
	assert_says(&out, "own_tcp ok");
	assert_says(&out, "shmget EPERM");
	assert_no_unix(&out);
	close_listeners(&l);
}

/* In a user namespace of its own root must not be root over files that others own. */
static void test_loopback_keeps_the_rest_of_the_box(void **state)
{
	struct box_rig *rig = *state;
	const char *const options[] = {"--network", "loopback", NULL};
	AUTO_BUF struct buf out = BUF_INIT;

	int code = box_run(rig, options,
			   "id -u; $TRY mount; $TRY unshare; $TRY prlimit $OUTSIDER; "
			   "cat $HIDDEN/file; echo x >$SHOWN/file; grep CapEff /proc/self/status",
			   &out);
	if (code == 125)
		skip();
	AUTO_FREE char *uid = mem_printf("%u", geteuid());
	assert_says(&out, uid);
	assert_says(&out, "mount EPERM");
	assert_says(&out, "unshare EPERM");
	assert_says(&out, "prlimit EPERM");
	assert_silent(&out, FILE_TEXT);
	AUTO_BUF struct buf after = BUF_INIT;
	box_run_open(rig, "cat $SHOWN/file", &after);
	assert_string_equal(buf_str(&after), FILE_TEXT);
}

int main(void)
{
#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, box_rig_setup, box_rig_teardown)
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_without_a_box_every_way_is_open),	       BOX_TEST(test_network_none),
		BOX_TEST(test_network_loopback_is_a_world_of_its_own), BOX_TEST(test_network_open),
		BOX_TEST(test_loopback_keeps_the_rest_of_the_box),
	};

	return box_suite_status() ?: cmocka_run_group_tests(tests, NULL, NULL);
}
