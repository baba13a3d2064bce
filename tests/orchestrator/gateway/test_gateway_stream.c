/*
 * test_gateway_stream.c - the whole program, streaming both ways with credit (issue 2, item 4).
 *
 * A real baton-gateway, a scripted HTTP server on loopback, and this test as its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "peer.h"
#include "raw_server.h"

#define HELLO_BODY "{\"hello\":1}"

static void serve_anthropic(struct raw_conn *c, const void *arg)
{
	while (raw_request(c))
		raw_anthropic(c, "hi");
}

/* Headers, address, outcome, the second request on the same connection. */
static void test_one_call_anthropic(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	for (int i = 0; i < 3; i++) {
		struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
		peer_wait_over(&p, c);
		assert_string_equal(c->outcome, "ok");
		assert_int_equal(c->status, 200);
		assert_int_equal(c->grants, 1);
		assert_true(c->ttft_ms >= 0);
		assert_non_null(strstr(buf_str(&c->answer), "message_stop"));
	}
	const char *head = s.shared->head;
	assert_int_equal(strncmp(head, "POST /v1/messages HTTP/1.1\r\n", 28), 0);
	assert_non_null(strstr(head, "x-api-key: sk-secret-of-the-test\r\n"));
	assert_non_null(strstr(head, "anthropic-version: 2023-06-01\r\n"));
	assert_non_null(strcasestr(head, "content-type: application/json\r\n"));
	assert_null(strcasestr(head, "expect:"));
	assert_int_equal(atomic_load(&s.shared->connections), 1);
	assert_non_null(strstr(buf_str(&p.notes), "\"reused\":true"));
	peer_stop(&p);
	raw_server_stop(&s);
}

static void serve_openai(struct raw_conn *c, const void *arg)
{
	while (raw_request(c))
		raw_openai(c, "hi");
}

static void test_one_call_openai(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_openai, NULL);
	peer_start_one(&p, s.port, "openai", ",\"headers\":{\"x-extra\":\"v\"}", NULL);
	struct peer_call *c = peer_call(&p, "openai", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	assert_non_null(strstr(buf_str(&c->answer), "[DONE]"));
	assert_int_equal(strncmp(s.shared->head, "POST /v1/chat/completions ", 26), 0);
	assert_non_null(strstr(s.shared->head, "Authorization: Bearer sk-secret-of-the-test\r\n"));
	assert_non_null(strstr(s.shared->head, "x-extra: v\r\n"));
	assert_null(strstr(s.shared->head, "anthropic"));
	peer_stop(&p);
	raw_server_stop(&s);
}

static char *make_body(size_t n)
{
	char *body = mem_alloc(n + 1);
	for (size_t i = 0; i < n; i++)
		body[i] = (char)('a' + i * 7 % 26);
	return body;
}

/* Twelve windows of credit: every byte once and in order. */
static void test_large_body_goes_up_within_credit(void **state)
{
	struct raw_server s;
	struct peer p;
	size_t n = 3 << 20;
	AUTO_FREE char *body = make_body(n);
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call(&p, "anthropic", body, n);
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(atomic_load(&s.shared->body_bytes), n);
	assert_true(atomic_load(&s.shared->body_hash) == raw_hash(body, n));
	peer_stop(&p);
	raw_server_stop(&s);
}

struct moment {
	int64_t at;
};

static bool has_come(void *arg)
{
	return clock_mono_ms() >= ((struct moment *)arg)->at;
}

static void let_pass(struct peer *p, int64_t ms)
{
	struct moment m = {clock_mono_ms() + ms};
	peer_wait(p, has_come, &m);
}

/* An agent that is slow with its body is not a server that stalls: bytes_idle_ms is 250 here. */
static void test_slow_body_is_no_stall(void **state)
{
	struct raw_server s;
	struct peer p;
	size_t n = 100000;
	AUTO_FREE char *body = make_body(n);
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call_as(&p, "a1", "main", "anthropic", body, 1000, true);
	c->body = body;
	let_pass(&p, 400);
	assert_int_equal(c->grants, 1);
	peer_send_body(&p, c);
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(c->agains, 0);
	assert_int_equal(atomic_load(&s.shared->body_bytes), 1000);
	peer_stop(&p);
	raw_server_stop(&s);
}

#define EVENTS 2000

static void serve_long_answer(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (strstr(c->body, "short")) {
			raw_anthropic(c, "short");
			continue;
		}
		raw_stream_head(c);
		for (int i = 0; i < EVENTS; i++) {
			char event[1100];
			snprintf(event, sizeof(event),
				 "event: content_block_delta\ndata: "
				 "{\"n\":%d,\"pad\":\"%01000d\"}\n\n",
				 i, i);
			raw_chunk(c, event);
		}
		raw_chunk(c, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
		raw_chunk(c, "");
	}
}

static bool has_window(void *arg)
{
	/* The next piece of curl may not fit in what is left. */
	return ((struct peer_call *)arg)->owed > CALL_CREDIT - (32 << 10);
}

/* Without credit that transfer pauses, and only that; its timers stand still. */
static void test_answer_stops_at_the_credit_and_others_go_on(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_long_answer, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *held = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	held->hold_credit = true;
	peer_wait(&p, has_window, held);
	struct peer_call *other = peer_call(&p, "anthropic", "short", 5);
	peer_wait_over(&p, other);
	assert_string_equal(other->outcome, "ok");
	let_pass(&p, 400);
	assert_false(held->over);
	assert_int_equal(held->agains, 0);
	assert_true(held->owed <= CALL_CREDIT);
	held->hold_credit = false;
	peer_credit(&p, held);
	peer_wait_over(&p, held);
	assert_string_equal(held->outcome, "ok");
	assert_true(p.most_out <= CALL_CREDIT);
	char last[32];
	snprintf(last, sizeof(last), "{\"n\":%d,", EVENTS - 1);
	assert_non_null(strstr(buf_str(&held->answer), last));
	assert_non_null(strstr(buf_str(&held->answer), "{\"n\":0,"));
	peer_stop(&p);
	raw_server_stop(&s);
}

static void serve_many_small(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		raw_stream_head(c);
		for (int i = 0; i < 500; i++)
			raw_chunk(c, "event: content_block_delta\ndata: {\"t\":\"x\"}\n\n");
		raw_chunk(c, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
		raw_chunk(c, "");
	}
}

/* Small deltas are coalesced: at most a frame per 20 ms or 16 KiB, and one at each end. */
static void test_small_deltas_are_coalesced(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_many_small, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	int64_t took = c->over_at - c->granted_at;
	assert_true(c->datas <= 3 + took / 20 + (int64_t)c->answer.len / (16 << 10));
	peer_stop(&p);
	raw_server_stop(&s);
}

static void serve_one_delta_then_wait(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (strstr(c->body, "short")) {
			raw_anthropic(c, "short");
			continue;
		}
		raw_stream_head(c);
		raw_chunk(c, "event: content_block_delta\ndata: {}\n\n");
		raw_wait_close(c);
		atomic_fetch_add(&c->shared->counter, 1);
		return;
	}
}

static bool has_answer(void *arg)
{
	return ((struct peer_call *)arg)->answer.len > 0;
}

static bool server_saw_close(void *arg)
{
	return atomic_load(&((struct raw_server *)arg)->shared->counter) > 0;
}

static void test_cancel_in_mid_stream(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_one_delta_then_wait, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait(&p, has_answer, c);
	int64_t asked = clock_mono_ms();
	peer_cancel(&p, c);
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "cancelled");
	assert_true(c->over_at - asked < 100);
	peer_wait(&p, server_saw_close, &s);
	peer_stop(&p);
	raw_server_stop(&s);
}

static bool was_told(void *arg)
{
	return ((struct peer_call *)arg)->waits > 0;
}

/* A dead agent's call is dropped without a word, and its slot is free. */
static void test_abort_frees_the_slot(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_one_delta_then_wait, NULL);
	peer_start_one(&p, s.port, "anthropic", ",\"concurrency\":1", NULL);
	struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait(&p, has_answer, c);
	struct peer_call *next = peer_call_as(&p, "a2", "main", "anthropic", "short", 5, false);
	struct peer_call *queued = peer_call_as(&p, "a3", "main", "anthropic", "short", 5, false);
	peer_cancel(&p, queued);
	peer_wait_over(&p, queued);
	assert_string_equal(queued->outcome, "cancelled");
	assert_int_equal(queued->grants, 0);
	peer_wait(&p, was_told, next);
	assert_false(next->granted);
	assert_string_equal(next->waiting, "slot ");
	peer_abort(&p, c);
	peer_wait_over(&p, next);
	assert_string_equal(next->outcome, "ok");
	assert_false(c->over);
	peer_stop(&p);
	raw_server_stop(&s);
}

static void serve_without_close(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		raw_stream_head(c);
		raw_chunk(c, "event: content_block_delta\ndata: {}\n\n"
			     "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
		raw_wait_close(c);
	}
}

/* A server that keeps the stream open after its last event does not keep the agent waiting. */
static void test_answer_ends_with_its_last_event(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_without_close, NULL);
	peer_start_one(
		&p, s.port, "anthropic", NULL,
		",\"x\":{\"note\":\"idle timers are shorter than the linger in this test\"}");
	struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(atomic_load(&s.shared->requests), 1);
	peer_stop(&p);
	raw_server_stop(&s);
}

static void test_requests_that_cannot_be_served(void **state)
{
	struct peer p;
	peer_start(&p, NULL,
		   "{\"providers\":[{\"name\":\"p\",\"api\":\"openai\",\"base_url\":\"http://"
		   "127.0.0.1:1/"
		   "v1\",\"key\":\"p\"}]}");
	struct peer_call *no_key = peer_call(&p, "openai", HELLO_BODY, strlen(HELLO_BODY));
	struct peer_call *no_api = peer_call(&p, "telepathy", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait_over(&p, no_api);
	assert_true(no_key->over);
	assert_string_equal(no_key->outcome, "failed");
	assert_string_equal(no_key->class, "auth");
	assert_non_null(strstr(no_key->message, "no API key for provider 'p'"));
	assert_string_equal(no_api->class, "bad_request");
	assert_int_equal(no_key->grants + no_api->grants, 0);
	peer_stop(&p);
}

static bool has_pong(void *arg)
{
	return ((struct peer *)arg)->pongs == 1;
}

static void test_ping_is_answered(void **state)
{
	struct peer p;
	peer_start_one(&p, 1, "openai", NULL, NULL);
	channel_sendf(p.channel, FRAME_PING, NULL, 0, "\"seq\":7");
	peer_wait(&p, has_pong, &p);
	peer_stop(&p);
}

/* A gateway that replaces a dead one goes on counting (call.h). */
static void test_attempts_go_on_from_the_request(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, PEER_LONG_TIMERS);
	p.first_attempt = 3;
	struct peer_call *c = peer_call(&p, "anthropic", HELLO_BODY, strlen(HELLO_BODY));
	peer_wait_over(&p, c);
	assert_int_equal(c->attempt, 3);
	peer_stop(&p);
	raw_server_stop(&s);
}

/* I1: another process of the same user cannot read the keys out of its memory. */
static void test_memory_is_not_readable(void **state)
{
	struct peer p;
	if (geteuid() == 0) {
		print_message("root may read every memory: skipped\n");
		skip();
	}
	peer_start_one(&p, 1, "openai", NULL, NULL);
	AUTO_FREE char *path = mem_printf("/proc/%d/mem", (int)p.pid);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EACCES);
	peer_stop(&p);
}

/* The parent's bad frames end the gateway with an error, never hang it. */
static void test_second_start_ends_it(void **state)
{
	struct peer p;
	peer_start_one(&p, 1, "openai", NULL, NULL);
	channel_send(p.channel, FRAME_START, NULL, "{}", 2);
	int64_t deadline = clock_mono_ms() + PEER_DEADLINE_MS;
	while (!p.closed && clock_mono_ms() < deadline)
		peer_turn(&p, 20);
	assert_true(p.closed);
	p.expected_status = 1;
	peer_stop(&p);
}

/* A body shorter than its length would leave the server waiting: the call fails instead. */
static void test_body_of_the_wrong_length(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call_as(&p, "a1", "main", "anthropic", HELLO_BODY, 8, true);
	c->len = 4;
	let_pass(&p, 1);
	while (!c->granted)
		peer_turn(&p, 20);
	peer_send_body(&p, c);
	peer_wait_over(&p, c);
	assert_string_equal(c->class, "bad_request");
	assert_int_equal(atomic_load(&s.shared->requests), 0);
	peer_stop(&p);
	raw_server_stop(&s);
}

/* Eight agents at once: no more connections than calls, and all are reused. */
static void test_connections_are_shared(void **state)
{
	struct raw_server s;
	struct peer p;
	struct peer_call *calls[24];
	raw_server_start(&s, serve_anthropic, NULL);
	peer_start_one(&p, s.port, "anthropic", ",\"concurrency\":4", NULL);
	for (int i = 0; i < 24; i++) {
		char agent[8];
		snprintf(agent, sizeof(agent), "a%d", i % 8);
		calls[i] = peer_call_as(&p, agent, "main", "anthropic", HELLO_BODY, 11, false);
	}
	for (int i = 0; i < 24; i++) {
		peer_wait_over(&p, calls[i]);
		assert_string_equal(calls[i]->outcome, "ok");
	}
	assert_int_equal(atomic_load(&s.shared->requests), 24);
	assert_in_range(atomic_load(&s.shared->connections), 1, 4);
	peer_stop(&p);
	raw_server_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_call_anthropic),
		cmocka_unit_test(test_one_call_openai),
		cmocka_unit_test(test_large_body_goes_up_within_credit),
		cmocka_unit_test(test_slow_body_is_no_stall),
		cmocka_unit_test(test_answer_stops_at_the_credit_and_others_go_on),
		cmocka_unit_test(test_small_deltas_are_coalesced),
		cmocka_unit_test(test_cancel_in_mid_stream),
		cmocka_unit_test(test_abort_frees_the_slot),
		cmocka_unit_test(test_answer_ends_with_its_last_event),
		cmocka_unit_test(test_requests_that_cannot_be_served),
		cmocka_unit_test(test_ping_is_answered),
		cmocka_unit_test(test_attempts_go_on_from_the_request),
		cmocka_unit_test(test_memory_is_not_readable),
		cmocka_unit_test(test_second_start_ends_it),
		cmocka_unit_test(test_body_of_the_wrong_length),
		cmocka_unit_test(test_connections_are_shared),
	};
	peer_clean_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
