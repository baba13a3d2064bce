/*
 * test_gateway_stream.c - the whole program, streaming both ways with credit (issue 2, item 4).
 *
 * A real baton-gateway, a scripted HTTP server on loopback, and this test as its parent.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_call_anthropic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
