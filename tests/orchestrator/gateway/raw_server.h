/*
 * raw_server.h - a scripted HTTP server on loopback for the gateway's tests: bytes, conditions,
 * resets.
 *
 * A child process accepts; each connection gets a process of its own that runs the test's handler,
 * so a script is straight-line code and the test itself has no threads. What tests look at lives in
 * shared memory; what a handler waits for is a byte of the gate pipe or the other side's close,
 * never time.
 */
#ifndef BATON_TESTS_GATEWAY_RAW_SERVER_H
#define BATON_TESTS_GATEWAY_RAW_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RAW_LOG 64

struct raw_shared {
	atomic_int connections, requests, busy, busy_max, counter;
	atomic_llong stamps[RAW_LOG]; /* monotonic ms at which request i was complete */
	atomic_llong body_bytes;      /* of the last request */
	atomic_ullong body_hash;
	char head[8192];       /* of the last request */
	char log[RAW_LOG][64]; /* first bytes of request i's body */
};

struct raw_conn {
	int fd, gate, number; /* number: of the request, over all connections, from 1 */
	struct raw_shared *shared;
	char head[8192];
	char *body;
	size_t body_len;
};

typedef void (*raw_handler)(struct raw_conn *c, const void *arg);

struct raw_server {
	pid_t pid;
	int port, gate;
	struct raw_shared *shared;
};

/* Fails the test if it cannot start. arg must live as long as the server. */
void raw_server_start(struct raw_server *s, raw_handler handler, const void *arg);
void raw_server_stop(struct raw_server *s);		/* kills all of its processes */
void raw_server_release_one(struct raw_server *s);	/* lets one raw_gate go on */
void raw_server_pause(struct raw_server *s, bool stop); /* SIGSTOP and SIGCONT */

/* For handlers. */
bool raw_request(struct raw_conn *c); /* reads one whole request; false at the end */
bool raw_head(struct raw_conn *c);    /* only the head */
void raw_send(struct raw_conn *c, const char *text);
void raw_sendf(struct raw_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void raw_send_bytes(struct raw_conn *c, const void *bytes, size_t n);
void raw_chunk(struct raw_conn *c, const char *text); /* in chunked encoding; "" ends */
void raw_stream_head(struct raw_conn *c);	      /* 200, text/event-stream, chunked */
void raw_answer(struct raw_conn *c, int status, const char *extra_headers, const char *body);
void raw_gate(struct raw_conn *c);
void raw_wait_close(struct raw_conn *c);
void raw_reset(struct raw_conn *c); /* RST instead of FIN */
/* A complete Anthropic or OpenAI answer that says `text`. */
void raw_anthropic(struct raw_conn *c, const char *text);
void raw_openai(struct raw_conn *c, const char *text);

uint64_t raw_hash(const void *bytes, size_t n);

#endif
