/*
 * test_gateway_faults.c - the whole program against servers that refuse, stall, break and lie.
 *
 * Timers here: bytes 250 ms, content 500 ms, four retries with 20 to 100 ms of back-off, max_sleep
 * 5 s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "peer.h"
#include "raw_server.h"

#define BODY "{\"q\":1}"

struct rig {
	struct raw_server s;
	struct peer p;
};

static void rig_start(struct rig *r, raw_handler handler, const char *api, const char *more)
{
	raw_server_start(&r->s, handler, NULL);
	peer_start_one(&r->p, r->s.port, api, more, NULL);
}

static void rig_stop(struct rig *r)
{
	peer_stop(&r->p);
	raw_server_stop(&r->s);
}

static struct peer_call *one_call(struct rig *r, const char *api)
{
	struct peer_call *c = peer_call(&r->p, api, BODY, strlen(BODY));
	peer_wait_over(&r->p, c);
	return c;
}

static int requests(struct rig *r)
{
	return atomic_load(&r->s.shared->requests);
}

/* ---- stalls and breaks ---- */

static void serve_headers_only(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_stream_head(c);
	raw_wait_close(c);
}

static void test_trap_75_silent_server(void **state)
{
	struct rig r;
	rig_start(&r, serve_headers_only, "anthropic", NULL);
	struct peer_call *c = one_call(&r, "anthropic");
	assert_string_equal(c->outcome, "failed");
	assert_string_equal(c->class, "network");
	assert_int_equal(c->grants, 2);
	assert_int_equal(requests(&r), 2);
	assert_int_equal(atomic_load(&r.s.shared->connections), 2);
	assert_non_null(strstr(c->message, "no byte came for 250 ms"));
	rig_stop(&r);
}

static void serve_delta_then_reset(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	if (c->number > 1) {
		raw_anthropic(c, "second");
		return;
	}
	raw_stream_head(c);
	raw_chunk(c, "event: content_block_delta\ndata: {\"thinking\":\"first\"}\n\n");
	raw_gate(c);
	raw_reset(c);
}

static bool has_answer(void *arg)
{
	return ((struct peer_call *)arg)->answer.len > 0;
}

/* Never a clean finish; what came before is void. */
static void test_trap_77_reset_after_the_first_delta(void **state)
{
	struct rig r;
	rig_start(&r, serve_delta_then_reset, "anthropic", NULL);
	struct peer_call *c = peer_call(&r.p, "anthropic", BODY, strlen(BODY));
	peer_wait(&r.p, has_answer, c);
	raw_server_release_one(&r.s);
	peer_wait_over(&r.p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(c->agains, 1);
	assert_int_equal(c->attempt, 2);
	assert_null(strstr(buf_str(&c->answer), "first"));
	assert_non_null(strstr(buf_str(&c->answer), "second"));
	assert_non_null(strstr(buf_str(&r.p.notes), "retry {"));
	rig_stop(&r);
}

static void serve_cut_stream(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	if (c->number > 1) {
		raw_openai(c, "whole");
		return;
	}
	raw_send(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
	for (int i = 0; i < 5; i++)
		raw_send(c, "data: {\"choices\":[{\"delta\":{\"content\":\"part\"}}]}\n\n");
}

/* End of file without finish_reason: to HTTP a good end, to us none. */
static void test_trap_60_cut_stream(void **state)
{
	struct rig r;
	rig_start(&r, serve_cut_stream, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(c->grants, 2);
	assert_null(strstr(buf_str(&c->answer), "part"));
	rig_stop(&r);
}

static void serve_error_in_stream(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (c->number > 1) {
			raw_openai(c, "whole");
			continue;
		}
		raw_stream_head(c);
		raw_chunk(c, ": OPENROUTER PROCESSING\n\n");
		raw_chunk(c, "data: "
			     "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\"}]"
			     "}}]}\n\n");
		raw_chunk(
			c,
			"data: {\"error\":{\"code\":503,\"message\":\"no provider\"},\"choices\":[{"
			"\"delta\":{},\"finish_reason\":\"error\"}]}\n\n");
		raw_chunk(c, "");
	}
}

static void test_trap_58_error_in_the_stream_is_retried(void **state)
{
	struct rig r;
	rig_start(&r, serve_error_in_stream, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(c->agains, 1);
	assert_string_equal(c->reason, "status 503: no provider");
	rig_stop(&r);
}

static void serve_fatal_error_in_stream(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_stream_head(c);
	raw_chunk(c, "error: {\"code\":400,\"message\":\"the request exceeds the available context "
		     "size\","
		     "\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":5000,\"n_ctx\":"
		     "4096}\n\n");
	raw_wait_close(c);
}

/* wire.md 3, row 13. */
static void test_overflow_in_the_stream_is_not_retried(void **state)
{
	struct rig r;
	rig_start(&r, serve_fatal_error_in_stream, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "overflow");
	assert_int_equal(c->used, 5000);
	assert_int_equal(c->limit, 4096);
	assert_int_equal(requests(&r), 1);
	rig_stop(&r);
}

static void serve_delta_then_nothing(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_stream_head(c);
	raw_chunk(c, "event: content_block_delta\ndata: {}\n\n");
	raw_wait_close(c);
}

static void test_trap_79_stopped_server_and_cancel(void **state)
{
	struct rig r;
	raw_server_start(&r.s, serve_delta_then_nothing, NULL);
	peer_start_one(&r.p, r.s.port, "anthropic", NULL, NULL);
	struct peer_call *c = peer_call(&r.p, "anthropic", BODY, strlen(BODY));
	peer_wait(&r.p, has_answer, c);
	raw_server_pause(&r.s, true);
	int64_t asked = clock_mono_ms();
	peer_cancel(&r.p, c);
	peer_wait_over(&r.p, c);
	assert_true(c->over_at - asked < 1000);
	assert_string_equal(c->outcome, "cancelled");
	raw_server_pause(&r.s, false);
	rig_stop(&r);
}

static void serve_pings_only(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_stream_head(c);
	for (;;) {
		raw_chunk(c, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
		raw_gate(c);
	}
}

/* Keep-alives hold the byte timer off, not the content timer. */
static void test_content_idle_fires_in_spite_of_pings(void **state)
{
	struct rig r;
	rig_start(&r, serve_pings_only, "anthropic", NULL);
	struct peer_call *c = peer_call(&r.p, "anthropic", BODY, strlen(BODY));
	int64_t start = clock_mono_ms();
	while (!c->over && clock_mono_ms() - start < PEER_DEADLINE_MS) {
		raw_server_release_one(&r.s);
		peer_turn(&r.p, 50);
	}
	assert_true(c->over);
	assert_string_equal(c->class, "network");
	assert_non_null(strstr(c->message, "no content came for 500 ms"));
	assert_int_equal(c->grants, 2);
	rig_stop(&r);
}

static void serve_garbage(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_send(c, "SSH-2.0-OpenSSH_9.2\r\n");
}

static void test_garbage_instead_of_http(void **state)
{
	struct rig r;
	rig_start(&r, serve_garbage, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "network");
	assert_int_equal(c->grants, 5);
	rig_stop(&r);
}

static void serve_once_then_hang_up(struct raw_conn *c, const void *arg)
{
	raw_request(c);
	raw_anthropic(c, "hi");
	/* The next request on this connection is read and not answered. */
	if (c->number == 1 && raw_head(c))
		raw_reset(c);
}

/* A connection that died while idle costs a try and no waiting. */
static void test_dead_idle_connection(void **state)
{
	struct rig r;
	rig_start(&r, serve_once_then_hang_up, "anthropic", NULL);
	struct peer_call *first = one_call(&r, "anthropic");
	assert_string_equal(first->outcome, "ok");
	struct peer_call *second = one_call(&r, "anthropic");
	assert_string_equal(second->outcome, "ok");
	assert_int_equal(requests(&r), 2);
	assert_true(second->agains <= 1);
	if (second->agains == 1) /* else curl saw it before it had asked for the body */
		assert_non_null(strstr(buf_str(&r.p.notes), "\"delay_ms\":0}"));
	rig_stop(&r);
}

static void test_nobody_listens(void **state)
{
	struct rig r;
	raw_server_start(&r.s, serve_garbage, NULL);
	int port = r.s.port;
	raw_server_stop(&r.s);
	peer_start_one(&r.p, port, "openai", NULL, NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "network");
	assert_int_equal(c->grants, 4); /* not all retries: it never answered */
	assert_int_equal(c->status, 0);
	peer_stop(&r.p);
}

/* ---- statuses ---- */

struct refusal {
	int status;
	const char *headers, *body;
};

static void serve_refusal(struct raw_conn *c, const void *arg)
{
	const struct refusal *refusal = arg;
	while (raw_request(c))
		raw_answer(c, refusal->status, refusal->headers, refusal->body);
}

static void check_refusal(const struct refusal *refusal, const char *class, int grants,
			  const char *message)
{
	struct rig r;
	raw_server_start(&r.s, serve_refusal, refusal);
	peer_start_one(&r.p, r.s.port, "openai", NULL, NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->outcome, "failed");
	assert_string_equal(c->class, class);
	assert_int_equal(c->grants, grants);
	if (!strstr(c->message, message))
		fail_msg("'%s' is not in '%s'", message, c->message);
	assert_null(strstr(c->message, "sk-secret-of-the-test"));
	assert_null(strstr(buf_str(&r.p.notes), "sk-secret-of-the-test"));
	rig_stop(&r);
}

static void test_statuses_that_are_not_retried(void **state)
{
	static const struct {
		struct refusal refusal;
		const char *class, *message;
	} rows[] = {
		{{400, "", "{\"error\":{\"message\":\"bad field\"}}"}, "bad_request", "bad field"},
		{{401, "", "{\"error\":{\"message\":\"no such key: sk-secret-of-the-test\"}}"},
		 "auth",
		 "no such key: ***"},
		{{404, "", "{\"error\":{\"message\":\"no model m\"}}"},
		 "bad_request",
		 "no model m"},
		{{413, "", "<html>413 Request Entity Too Large</html>"}, "overflow", "Too Large"},
		{{500, "x-should-retry: false\r\n", "{\"error\":{\"message\":\"hopeless\"}}"},
		 "overload",
		 "hopeless"},
		{{302, "Location: https://elsewhere.example/v1?token=t\r\n", ""},
		 "bad_request",
		 "redirects to 'https://elsewhere.example/v1', which is not followed"},
		/* Errors in bodies of status 200 (rows 11 and 29), and no stream at all. */
		{{200, "",
		  "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"message\":"
		  "\"the request exceeds the available context size\"}}"},
		 "overflow",
		 "available context size"},
		{{200, "",
		  "[{\"error\":{\"code\":400,\"message\":\"array\",\"status\":"
		  "\"INVALID_ARGUMENT\"}}]"},
		 "bad_request",
		 "array"},
		{{200, "", "{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}"},
		 "bad_request",
		 "application/json"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_refusal(&rows[i].refusal, rows[i].class, 1, rows[i].message);
}

static void test_retries_run_out(void **state)
{
	static const struct refusal r500 = {500, "", "{\"error\":{\"message\":\"oops\"}}"};
	static const struct refusal r529 = {529, "",
					    "{\"error\":{\"type\":\"overloaded_error\","
					    "\"message\":\"Overloaded\"}}"};
	static const struct refusal r408 = {408, "", ""};
	static const struct refusal r418 = {418, "x-should-retry: true\r\n", ""};
	check_refusal(&r500, "overload", 5, "oops");
	check_refusal(&r529, "overload", 5, "Overloaded");
	check_refusal(&r408, "overload", 5, "408");
	check_refusal(&r418, "bad_request", 5, "418");
}

/* A day is not slept through: the call ends and says until when. */
static void test_trap_72_long_wait_ends_the_call(void **state)
{
	static const struct refusal refusal = {429, "Retry-After: 86400\r\n",
					       "{\"error\":{\"message\":\"later\"}}"};
	struct rig r;
	raw_server_start(&r.s, serve_refusal, &refusal);
	peer_start_one(&r.p, r.s.port, "openai", NULL, NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "rate_limit");
	assert_int_equal(c->grants, 1);
	int64_t wait = c->end_until - clock_wall_ms();
	assert_in_range(wait, 86300000, 86400000);
	rig_stop(&r);
}

static void serve_too_large(struct raw_conn *c, const void *arg)
{
	while (raw_request(c))
		raw_answer(c, 429, "",
			   "{\"error\":{\"message\":\"Request too large for m on tokens per min: "
			   "Limit 30000, "
			   "Requested 36278.\",\"code\":\"rate_limit_exceeded\"}}");
}

static void test_trap_70_request_above_the_minute_limit(void **state)
{
	struct rig r;
	rig_start(&r, serve_too_large, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "overflow");
	assert_int_equal(c->used, 36278);
	assert_int_equal(c->limit, 30000);
	assert_int_equal(requests(&r), 1);
	rig_stop(&r);
}

static void serve_excess(struct raw_conn *c, const void *arg)
{
	while (raw_request(c))
		raw_answer(c, 400, "",
			   "{\"error\":{\"message\":\"max_tokens must be at least 1, got -200\"}}");
}

/* Row 22: the estimate of the call (1,000 in these tests) gives the missing numbers. */
static void test_excess_is_measured_against_the_estimate(void **state)
{
	struct rig r;
	rig_start(&r, serve_excess, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->class, "overflow");
	assert_int_equal(c->used, 1000);
	assert_int_equal(c->limit, 800);
	rig_stop(&r);
}

static void serve_early_refusal(struct raw_conn *c, const void *arg)
{
	if (!raw_head(c))
		return;
	atomic_fetch_add(&c->shared->requests, 1);
	raw_answer(c, 401, "Connection: close\r\n", "{\"error\":{\"message\":\"go away\"}}");
}

/* The answer may come before the body is up; the rest of the body is dropped. */
static void test_refusal_before_the_body_is_up(void **state)
{
	struct rig r;
	size_t n = 2 << 20;
	AUTO_FREE char *body = mem_alloc(n);
	rig_start(&r, serve_early_refusal, "openai", NULL);
	struct peer_call *c = peer_call(&r.p, "openai", body, n);
	peer_wait_over(&r.p, c);
	assert_string_equal(c->class, "auth");
	assert_int_equal(requests(&r), 1);
	rig_stop(&r);
}

/* ---- limits and fairness ---- */

static void serve_error_behind_the_credit(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (c->number > 1) {
			raw_anthropic(c, "whole");
			continue;
		}
		raw_stream_head(c);
		for (int i = 0; i < 25; i++)
			raw_sendf(c, "2710\r\ndata: %09993d\n\r\n", i);
		raw_gate(c);
		/* More than the credit left, and the error in the same piece. */
		char *end = mem_printf(
			"data: %015000d\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{"
			"\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			0);
		raw_chunk(c, end);
		free(end);
		raw_wait_close(c);
	}
}

static bool has_250000(void *arg)
{
	return ((struct peer_call *)arg)->answer.len >= 250000;
}

/* The error is found while curl hands over what it had to hold back. */
static void test_error_in_what_was_held_back(void **state)
{
	struct rig r;
	raw_server_start(&r.s, serve_error_behind_the_credit, NULL);
	peer_start_one(&r.p, r.s.port, "anthropic", NULL, PEER_LONG_TIMERS);
	struct peer_call *c = peer_call(&r.p, "anthropic", BODY, strlen(BODY));
	c->hold_credit = true;
	peer_wait(&r.p, has_250000, c);
	raw_server_release_one(&r.s);
	int64_t end = clock_mono_ms() + 300;
	while (clock_mono_ms() < end)
		peer_turn(&r.p, 20);
	assert_int_equal(c->agains, 0);
	peer_credit(&r.p, c);
	c->hold_credit = false;
	peer_wait_over(&r.p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(c->agains, 1);
	assert_string_equal(c->reason, "status 529: Overloaded");
	rig_stop(&r);
}

static void serve_429_with_wait(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (c->number == 1)
			raw_answer(c, 429, "retry-after: 1\r\n",
				   "{\"error\":{\"message\":\"slow\"}}");
		else
			raw_openai(c, "ok");
	}
}

static void test_server_wait_is_kept(void **state)
{
	struct rig r;
	rig_start(&r, serve_429_with_wait, "openai", NULL);
	struct peer_call *c = one_call(&r, "openai");
	assert_string_equal(c->outcome, "ok");
	long long gap = atomic_load(&r.s.shared->stamps[1]) - atomic_load(&r.s.shared->stamps[0]);
	assert_in_range(gap, 999, 5000);
	assert_non_null(
		strstr(buf_str(&r.p.notes), "limit {\"provider\":\"p\",\"kind\":\"rate_limit\""));
	assert_true(c->until > 0);
	rig_stop(&r);
}

static void serve_storm(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		if (c->number <= 6)
			raw_answer(c, 429, "retry-after: 0.3\r\n",
				   "{\"error\":{\"message\":\"slow\",\"code\":\"rate_limit_"
				   "exceeded\"}}");
		else
			raw_openai(c, "ok");
	}
}

/* Trap 68: all finish. X9: a call that comes during the pause waits instead of being refused too.
 */
static void test_trap_68_storm_of_429(void **state)
{
	struct rig r;
	struct peer_call *calls[6];
	rig_start(&r, serve_storm, "openai", NULL);
	for (int i = 0; i < 6; i++) {
		char agent[8];
		snprintf(agent, sizeof(agent), "a%d", i);
		calls[i] = peer_call_as(&r.p, agent, "main", "openai", BODY, strlen(BODY), false);
	}
	while (calls[0]->agains == 0 || calls[5]->agains == 0)
		peer_turn(&r.p, 20);
	int64_t paused = clock_mono_ms();
	struct peer_call *late = one_call(&r, "openai");
	assert_string_equal(late->outcome, "ok");
	assert_int_equal(late->agains, 0);
	assert_int_equal(strncmp(late->waiting, "limit ", 6), 0);
	assert_true(late->granted_at - paused > 150);
	for (int i = 0; i < 6; i++) {
		peer_wait_over(&r.p, calls[i]);
		assert_string_equal(calls[i]->outcome, "ok");
		assert_int_equal(calls[i]->agains, 1);
	}
	assert_int_equal(requests(&r), 13);
	rig_stop(&r);
}

static void serve_gated(struct raw_conn *c, const void *arg)
{
	while (raw_request(c)) {
		raw_gate(c);
		raw_openai(c, "ok");
	}
}

static bool first_is_there(void *arg)
{
	return requests(arg) == 1;
}

/* One slot: the agent with one call is served after the first of the greedy one's, a main call
 * before a background one. */
static void test_fair_queue(void **state)
{
	struct rig r;
	static const char *const order[] = {"greedy-0", "modest-0", "greedy-1", "greedy-2",
					    "back-0"};
	struct peer_call *calls[5];
	rig_start(&r, serve_gated, "openai", ",\"concurrency\":1");
	calls[0] = peer_call_as(&r.p, "greedy", "main", "openai", "greedy-0", 8, false);
	peer_wait(&r.p, first_is_there, &r);
	calls[1] = peer_call_as(&r.p, "back", "background", "openai", "back-0", 6, false);
	calls[2] = peer_call_as(&r.p, "greedy", "main", "openai", "greedy-1", 8, false);
	calls[3] = peer_call_as(&r.p, "greedy", "main", "openai", "greedy-2", 8, false);
	calls[4] = peer_call_as(&r.p, "modest", "main", "openai", "modest-0", 8, false);
	while (!calls[4]->waits)
		peer_turn(&r.p, 20);
	for (int i = 0; i < 5; i++)
		raw_server_release_one(&r.s);
	for (int i = 0; i < 5; i++)
		peer_wait_over(&r.p, calls[i]);
	for (int i = 0; i < 5; i++)
		assert_string_equal(r.s.shared->log[i], order[i]);
	rig_stop(&r);
}

/* ---- the way out ---- */

static void serve_as_proxy(struct raw_conn *c, const void *arg)
{
	while (raw_request(c))
		raw_openai(c, "through the proxy");
}

static void test_proxy_of_the_provider(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_as_proxy, NULL);
	AUTO_FREE char *start = mem_printf("{\"providers\":[{\"name\":\"p\",\"api\":\"openai\","
					   "\"base_url\":\"http://model.invalid/v1\","
					   "\"key\":null,\"proxy\":\"http://127.0.0.1:%d\"}]}",
					   s.port);
	peer_start(&p, NULL, start);
	struct peer_call *c = peer_call(&p, "openai", BODY, strlen(BODY));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	assert_int_equal(
		strncmp(s.shared->head, "POST http://model.invalid/v1/chat/completions ", 46), 0);
	assert_null(strstr(s.shared->head, "Authorization"));
	peer_stop(&p);
	raw_server_stop(&s);
}

/* As curl users expect it, from the environment that the parent passes on. */
static void test_proxy_of_the_environment(void **state)
{
	struct raw_server s;
	struct peer p;
	raw_server_start(&s, serve_as_proxy, NULL);
	AUTO_FREE char *proxy = mem_printf("http://127.0.0.1:%d", s.port);
	setenv("http_proxy", proxy, 1);
	peer_start(&p, NULL,
		   "{\"providers\":[{\"name\":\"p\",\"api\":\"openai\",\"base_url\":"
		   "\"http://model.invalid/v1\",\"key\":null}]}");
	unsetenv("http_proxy");
	struct peer_call *c = peer_call(&p, "openai", BODY, strlen(BODY));
	peer_wait_over(&p, c);
	assert_string_equal(c->outcome, "ok");
	peer_stop(&p);
	raw_server_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trap_75_silent_server),
		cmocka_unit_test(test_trap_77_reset_after_the_first_delta),
		cmocka_unit_test(test_trap_60_cut_stream),
		cmocka_unit_test(test_trap_58_error_in_the_stream_is_retried),
		cmocka_unit_test(test_overflow_in_the_stream_is_not_retried),
		cmocka_unit_test(test_trap_79_stopped_server_and_cancel),
		cmocka_unit_test(test_content_idle_fires_in_spite_of_pings),
		cmocka_unit_test(test_garbage_instead_of_http),
		cmocka_unit_test(test_dead_idle_connection),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_statuses_that_are_not_retried),
		cmocka_unit_test(test_retries_run_out),
		cmocka_unit_test(test_trap_72_long_wait_ends_the_call),
		cmocka_unit_test(test_trap_70_request_above_the_minute_limit),
		cmocka_unit_test(test_excess_is_measured_against_the_estimate),
		cmocka_unit_test(test_refusal_before_the_body_is_up),
		cmocka_unit_test(test_error_in_what_was_held_back),
		cmocka_unit_test(test_server_wait_is_kept),
		cmocka_unit_test(test_trap_68_storm_of_429),
		cmocka_unit_test(test_fair_queue),
		cmocka_unit_test(test_proxy_of_the_provider),
		cmocka_unit_test(test_proxy_of_the_environment),
	};
	peer_clean_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
