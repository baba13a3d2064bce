/*
 * test_gateway_tls.c - HTTP/2 and TLS through the whole program, against nghttpd.
 *
 * nghttpd echoes what is uploaded, so a body that is itself a stream of events makes an answer. The
 * certificate is made by the openssl program; without either program the tests are skipped with a
 * message.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "peer.h"
#include "raw_server.h"

static char folder[64];
static pid_t server = -1;
static int port;

/* argv[0] is looked up in PATH; output goes nowhere. */
static pid_t start_program(const char *const argv[])
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid;
}

static int run_program(const char *const argv[])
{
	int status = -1;
	waitpid(start_program(argv), &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *in_folder(const char *name)
{
	return mem_printf("%s/%s", folder, name);
}

static struct sockaddr_in address(int number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)number),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* nghttpd cannot choose a port itself: one that is free now is given. */
static int free_port(void)
{
	struct sockaddr_in addr = address(0);
	socklen_t len = sizeof(addr);
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	return ntohs(addr.sin_port);
}

static bool accepts(int number)
{
	struct sockaddr_in addr = address(number);
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

static void start_server(const char *key, const char *cert)
{
	char number[16];
	port = free_port();
	snprintf(number, sizeof(number), "%d", port);
	const char *serve[] = {"nghttpd", "--echo-upload", "-a", "127.0.0.1", number, key, cert,
			       NULL};
	server = start_program(serve);
	int64_t deadline = clock_mono_ms() + PEER_DEADLINE_MS;
	while (!accepts(port)) {
		int status;
		if (waitpid(server, &status, WNOHANG) == server || clock_mono_ms() > deadline) {
			server = -1;
			return;
		}
	}
}

static int setup(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/baton-tls-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	AUTO_FREE char *key = in_folder("key.pem");
	AUTO_FREE char *cert = in_folder("cert.pem");
	const char *make[] = {"openssl",
			      "req",
			      "-x509",
			      "-newkey",
			      "ec",
			      "-pkeyopt",
			      "ec_paramgen_curve:P-256",
			      "-nodes",
			      "-days",
			      "2",
			      "-subj",
			      "/CN=localhost",
			      "-addext",
			      "subjectAltName=IP:127.0.0.1",
			      "-keyout",
			      key,
			      "-out",
			      cert,
			      NULL};
	if (run_program(make))
		return 0;
	start_server(key, cert);
	return 0;
}

static int teardown(void **state)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	AUTO_FREE char *key = in_folder("key.pem");
	AUTO_FREE char *cert = in_folder("cert.pem");
	unlink(key);
	unlink(cert);
	rmdir(folder);
	return 0;
}

static void need_server(void)
{
	if (server > 0)
		return;
	print_message("nghttpd or openssl is missing or does not start: skipped\n");
	skip();
}

static void start_gateway(struct peer *p, bool with_ca)
{
	AUTO_FREE char *cert = in_folder("cert.pem");
	AUTO_FREE char *ca = with_ca ? mem_printf(",\"ca_file\":\"%s\"", cert) : mem_strdup("");
	AUTO_FREE char *start =
		mem_printf("{\"providers\":[{\"name\":\"p\",\"api\":\"anthropic\",\"base_url\":"
			   "\"https://127.0.0.1:%d\",\"key\":\"p\"%s}],\"retries\":3}",
			   port, ca);
	peer_start(p, "{\"p\":\"sk-x\"}", start);
}

/* A stream of events of about n bytes. */
static char *make_stream(size_t n)
{
	struct buf b = BUF_INIT;
	for (int i = 0; b.len < n; i++)
		buf_addf(&b, "event: content_block_delta\ndata: {\"n\":%d,\"pad\":\"%0200d\"}\n\n",
			 i, i);
	buf_adds(&b, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
	return buf_take(&b);
}

/* Several calls on one connection, more than a window of credit each, in both directions at once.
 */
static void test_http2_multiplexed_calls_with_own_ca(void **state)
{
	struct peer p;
	struct peer_call *calls[6];
	need_server();
	AUTO_FREE char *body = make_stream(800000);
	start_gateway(&p, true);
	for (int i = 0; i < 6; i++)
		calls[i] = peer_call(&p, "anthropic", body, strlen(body));
	for (int i = 0; i < 6; i++) {
		peer_wait_over(&p, calls[i]);
		assert_string_equal(calls[i]->outcome, "ok");
		assert_int_equal(calls[i]->answer.len, strlen(body));
		assert_memory_equal(calls[i]->answer.data, body, strlen(body));
		assert_int_equal(calls[i]->agains, 0);
	}
	assert_true(p.most_out <= CALL_CREDIT);
	assert_non_null(strstr(buf_str(&p.notes), "\"http\":\"2\",\"reused\":true"));
	assert_null(strstr(buf_str(&p.notes), "\"http\":\"1.1\""));
	peer_stop(&p);
}

static bool has_window(void *arg)
{
	return ((struct peer_call *)arg)->owed > CALL_CREDIT - (32 << 10);
}

/* One stream of a connection is paused, its neighbours are not. */
static void test_http2_pause_of_one_stream(void **state)
{
	struct peer p;
	need_server();
	AUTO_FREE char *body = make_stream(1500000);
	start_gateway(&p, true);
	struct peer_call *held = peer_call(&p, "anthropic", body, strlen(body));
	held->hold_credit = true;
	peer_wait(&p, has_window, held);
	struct peer_call *other = peer_call(&p, "anthropic", body, strlen(body));
	peer_wait_over(&p, other);
	assert_string_equal(other->outcome, "ok");
	assert_false(held->over);
	assert_true(held->owed <= CALL_CREDIT);
	held->hold_credit = false;
	peer_credit(&p, held);
	peer_wait_over(&p, held);
	assert_string_equal(held->outcome, "ok");
	assert_int_equal(held->answer.len, strlen(body));
	peer_stop(&p);
}

/* Moves bytes between the gateway and nghttpd, until a byte of the gate stops the answers. */
static void relay(struct raw_conn *c, const void *arg)
{
	struct sockaddr_in addr = address(port);
	int up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd fds[] = {{c->fd, POLLIN, 0}, {up, POLLIN, 0}, {c->gate, POLLIN, 0}};
	char bytes[16384];
	if (connect(up, (struct sockaddr *)&addr, sizeof(addr)))
		return;
	atomic_fetch_add(&c->shared->counter, 1);
	while (poll(fds, 3, -1) > 0) {
		if (fds[2].revents) {
			raw_gate(c);
			fds[1].fd = fds[2].fd = -1;
			fds[1].revents = 0;
			atomic_fetch_add(&c->shared->busy, 1);
		}
		ssize_t n = fds[0].revents ? read(c->fd, bytes, sizeof(bytes)) : -2;
		if (n == 0 || n == -1 || (n > 0 && send(up, bytes, (size_t)n, MSG_NOSIGNAL) < 0))
			return;
		n = fds[1].revents ? read(up, bytes, sizeof(bytes)) : -2;
		if (n == 0 || n == -1)
			return;
		if (n > 0)
			raw_send_bytes(c, bytes, (size_t)n);
	}
}

static bool relay_is_stopped(void *arg)
{
	return atomic_load(&((struct raw_server *)arg)->shared->busy) == 1;
}

/* An HTTP/2 connection outlives its streams: the one that stalled must not serve the retry (trap
 * 75), nor the call after it. */
static void test_trap_75_stalled_http2_connection(void **state)
{
	struct raw_server s;
	struct peer p;
	need_server();
	AUTO_FREE char *body = make_stream(1000);
	AUTO_FREE char *cert = in_folder("cert.pem");
	raw_server_start(&s, relay, NULL);
	AUTO_FREE char *start = mem_printf("{\"providers\":[{\"name\":\"p\",\"api\":\"anthropic\","
					   "\"base_url\":\"https://127.0.0.1:%d\","
					   "\"key\":null,\"ca_file\":\"%s\"}],\"timeouts\":{"
					   "\"bytes_idle_ms\":500},\"backoff_ms\":10}",
					   s.port, cert);
	peer_start(&p, NULL, start);
	for (int i = 0; i < 3; i++) {
		if (i == 1) {
			raw_server_release_one(&s);
			peer_wait(&p, relay_is_stopped, &s);
		}
		struct peer_call *c = peer_call(&p, "anthropic", body, strlen(body));
		peer_wait_over(&p, c);
		assert_string_equal(c->outcome, "ok");
		assert_int_equal(c->agains, i == 1 ? 1 : 0);
	}
	assert_int_equal(atomic_load(&s.shared->connections), 2);
	peer_stop(&p);
	raw_server_stop(&s);
}

static void test_unknown_authority_is_not_retried(void **state)
{
	struct peer p;
	need_server();
	AUTO_FREE char *body = make_stream(100);
	start_gateway(&p, false);
	struct peer_call *c = peer_call(&p, "anthropic", body, strlen(body));
	peer_wait_over(&p, c);
	assert_string_equal(c->class, "network");
	assert_int_equal(c->grants, 1);
	assert_non_null(strstr(c->message, "certificate"));
	peer_stop(&p);
}

static void test_ca_of_the_environment(void **state)
{
	struct peer p;
	need_server();
	AUTO_FREE char *body = make_stream(100);
	AUTO_FREE char *cert = in_folder("cert.pem");
	setenv("SSL_CERT_FILE", cert, 1);
	start_gateway(&p, false);
	unsetenv("SSL_CERT_FILE");
	struct peer_call *c = peer_call(&p, "anthropic", body, strlen(body));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http2_multiplexed_calls_with_own_ca),
		cmocka_unit_test(test_http2_pause_of_one_stream),
		cmocka_unit_test(test_trap_75_stalled_http2_connection),
		cmocka_unit_test(test_unknown_authority_is_not_retried),
		cmocka_unit_test(test_ca_of_the_environment),
	};
	peer_clean_environment();
	return cmocka_run_group_tests(tests, setup, teardown);
}
