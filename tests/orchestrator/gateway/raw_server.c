/*
 * raw_server.c - see raw_server.h.
 */
#include "raw_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define BODY_MAX (8 << 20)

uint64_t raw_hash(const void *bytes, size_t n)
{
	return text_hash(bytes, n);
}

void raw_send_bytes(struct raw_conn *c, const void *bytes, size_t n)
{
	const char *at = bytes;
	while (n > 0) {
		ssize_t sent = send(c->fd, at, n, MSG_NOSIGNAL);
		if (sent < 0)
			_exit(0); /* the gateway has hung up: this connection is over */
		at += sent;
		n -= (size_t)sent;
	}
}

void raw_send(struct raw_conn *c, const char *text)
{
	raw_send_bytes(c, text, strlen(text));
}

void raw_sendf(struct raw_conn *c, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		_exit(1);
	va_end(ap);
	raw_send(c, text);
	free(text);
}

void raw_chunk(struct raw_conn *c, const char *text)
{
	raw_sendf(c, "%zx\r\n%s\r\n", strlen(text), text);
}

void raw_stream_head(struct raw_conn *c)
{
	raw_send(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n");
}

void raw_answer(struct raw_conn *c, int status, const char *extra_headers, const char *body)
{
	raw_sendf(c,
		  "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: "
		  "%zu\r\n%s\r\n%s",
		  status, strlen(body), extra_headers, body);
}

void raw_gate(struct raw_conn *c)
{
	char byte;
	while (read(c->gate, &byte, 1) < 0 && errno == EINTR)
		;
}

void raw_wait_close(struct raw_conn *c)
{
	char bytes[4096];
	ssize_t n;
	while ((n = read(c->fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		;
}

void raw_reset(struct raw_conn *c)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(c->fd);
	_exit(0);
}

void raw_anthropic(struct raw_conn *c, const char *text)
{
	raw_stream_head(c);
	raw_chunk(c, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n");
	char *delta = NULL;
	if (asprintf(&delta,
		     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
		     "\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n",
		     text) < 0)
		_exit(1);
	raw_chunk(c, delta);
	free(delta);
	raw_chunk(c, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
	raw_chunk(c, "");
}

void raw_openai(struct raw_conn *c, const char *text)
{
	raw_stream_head(c);
	char *delta = NULL;
	if (asprintf(&delta,
		     "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},"
		     "\"finish_reason\":null}]}\n\n",
		     text) < 0)
		_exit(1);
	raw_chunk(c, delta);
	free(delta);
	raw_chunk(
		c,
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
	raw_chunk(c, "data: [DONE]\n\n");
	raw_chunk(c, "");
}

/* Reads up to the blank line; what was read of the body stays in body. */
bool raw_head(struct raw_conn *c)
{
	size_t n = 0;
	c->head[0] = '\0';
	while (n < sizeof(c->head) - 1) {
		ssize_t got = read(c->fd, c->head + n, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
		c->head[n] = '\0';
		if (n >= 4 && memcmp(c->head + n - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	memcpy(c->shared->head, c->head, sizeof(c->head));
	return true;
}

static void note_request(struct raw_conn *c)
{
	struct raw_shared *sh = c->shared;
	c->number = atomic_fetch_add(&sh->requests, 1) + 1;
	int slot = (c->number - 1) % RAW_LOG;
	atomic_store(&sh->stamps[slot], clock_mono_ms());
	atomic_store(&sh->body_bytes, (long long)c->body_len);
	atomic_store(&sh->body_hash, raw_hash(c->body, c->body_len));
	snprintf(sh->log[slot], sizeof(sh->log[slot]), "%.*s", (int)MIN(c->body_len, 60), c->body);
}

bool raw_request(struct raw_conn *c)
{
	if (!raw_head(c))
		return false;
	const char *field = strcasestr(c->head, "\r\ncontent-length:");
	size_t length = field ? strtoul(field + 17, NULL, 10) : 0;
	if (length > BODY_MAX)
		_exit(1);
	free(c->body);
	c->body = mem_alloc(length + 1);
	c->body_len = 0;
	while (c->body_len < length) {
		ssize_t got = read(c->fd, c->body + c->body_len, length - c->body_len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		c->body_len += (size_t)got;
	}
	note_request(c);
	return true;
}

static void serve_one(int fd, int gate, struct raw_shared *shared, raw_handler handler,
		      const void *arg)
{
	struct raw_conn c = {.fd = fd, .gate = gate, .shared = shared};
	handler(&c, arg);
	shutdown(fd, SHUT_WR);
	raw_wait_close(&c);
	_exit(0);
}

static void accept_all(int listener, int gate, struct raw_shared *shared, raw_handler handler,
		       const void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	struct sigaction reap = {.sa_handler = SIG_IGN};
	sigaction(SIGCHLD, &reap, NULL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		atomic_fetch_add(&shared->connections, 1);
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			serve_one(fd, gate, shared, handler, arg);
		}
		close(fd);
	}
}

void raw_server_start(struct raw_server *s, raw_handler handler, const void *arg)
{
	int gate[2];
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) ||
	    listen(listener, 256) || getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    pipe2(gate, O_CLOEXEC)) {
		perror("raw server");
		abort();
	}
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->port = ntohs(addr.sin_port);
	s->gate = gate[1];
	s->pid = fork();
	if (s->pid == 0)
		accept_all(listener, gate[0], s->shared, handler, arg);
	setpgid(s->pid, s->pid);
	close(listener);
	close(gate[0]);
}

void raw_server_stop(struct raw_server *s)
{
	kill(-s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->gate);
	munmap(s->shared, sizeof(*s->shared));
}

void raw_server_release_one(struct raw_server *s)
{
	if (write(s->gate, "x", 1) != 1)
		abort();
}

void raw_server_pause(struct raw_server *s, bool stop)
{
	kill(-s->pid, stop ? SIGSTOP : SIGCONT);
}
