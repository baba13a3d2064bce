/*
 * test_call.c - the three state machines of a model call, laid across each other on purpose.
 *
 * Issue 2, "Channel": grant, data, end, again, cancel, abort, credit, waiting. Design, "The
 * channel": again voids what came; a call open at two gateway deaths fails; credit of 256 KiB per
 * direction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <inttypes.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "call_rig.h"

enum { BODY = 600000 };

static void assert_all(const struct buf *buf, char letter, size_t n)
{
	assert_int_equal(buf->len, n);
	for (size_t i = 0; i < n; i++)
		if (buf->data[i] != letter)
			fail_msg("byte %zu is '%c', not '%c'", i, buf->data[i], letter);
}

static void run(struct channel *ch)
{
	struct err err = ERR_INIT;
	if (rig_run(ch, &err) < 0)
		fail_msg("%s", err.message);
}

static void test_a_whole_call(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	assert_int_equal(rig_start(&rig, &call, BODY), 1);
	rig_settle(&rig);
	assert_int_equal(rig.requests, 1);
	assert_int_equal(rig.attempt, 1);
	assert_int_equal(call.bodies, 0); /* nothing leaves before the grant */
	rig_grant(&rig, 1);
	rig_settle(&rig);
	assert_all(&rig.body, 'a', BODY);
	assert_int_equal(rig.body_ends, 1);
	rig_answer(&rig, 'x', 700000);
	rig_end(&rig, "\"outcome\":\"ok\",\"ttft_ms\":12", "");
	rig_settle(&rig);
	assert_all(&call.answer, 'x', 700000);
	assert_string_equal(call.outcome, "ok");
	assert_int_equal(call.ttft_ms, 12);
	assert_int_equal(call.ends, 1);
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_failure_carries_its_facts(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 10);
	rig_settle(&rig);
	rig_end(&rig,
		"\"outcome\":\"failed\",\"class\":\"overflow\",\"status\":400,\"used\":210000,"
		"\"limit\":200000,\"until\":77",
		"prompt is too long");
	rig_settle(&rig);
	assert_string_equal(call.outcome, "failed");
	assert_int_equal(call.class, CALL_OVERFLOW);
	assert_int_equal(call.status, 400);
	assert_int_equal(call.used, 210000);
	assert_int_equal(call.limit, 200000);
	assert_int_equal(call.until, 77);
	assert_int_equal(call.ttft_ms, -1);
	assert_string_equal(call.message, "prompt is too long");
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_again_sends_the_body_once_more(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, BODY);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	rig_answer(&rig, 'x', 1000);
	rig_settle(&rig);
	rig_again(&rig, 1, "overload");
	rig_settle(&rig);
	assert_int_equal(call.agains, 1);
	assert_int_equal(call.last_again, 1);
	assert_string_equal(call.reason, "overload");
	assert_int_equal(call.bodies, 1);
	struct call_entry *entry = call_relay_find(rig.relay, rig.parent_a, 1);
	assert_int_equal(entry->bytes_up, BODY); /* the void attempt can still be settled */
	assert_int_equal(entry->bytes_down, 1000);
	rig_grant(&rig, 2);
	rig_settle(&rig);
	assert_int_equal(entry->attempt, 2);
	assert_all(&rig.body, 'b', BODY);
	rig_answer(&rig, 'y', 300000);
	rig_end(&rig, "\"outcome\":\"ok\"", "");
	rig_settle(&rig);
	assert_all(&call.answer, 'y', 300000);
	rig_call_release(&call);
	rig_release(&rig);
}

/* Attempt 1's mark and bytes reach the gateway after it has granted attempt 2. */
static void test_late_mark_does_not_open_the_next_attempt(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, BODY);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	run(rig.parent_g);
	run(rig.agent);	   /* mark 1 and data 1 are on their way */
	run(rig.parent_a); /* and passed the parent */
	rig_again(&rig, 1, "rate_limit");
	rig_grant(&rig, 2);
	run(rig.gateway);
	assert_false(rig.window.open);
	assert_int_equal(rig.body.len, 0);
	rig_settle(&rig);
	assert_all(&rig.body, 'b', BODY);
	assert_int_equal(rig.body_ends, 1);
	rig_call_release(&call);
	rig_release(&rig);
}

/* The same, but the parent sees `again` and the second grant before the first mark. */
static void test_parent_drops_what_is_void(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, BODY);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	run(rig.parent_g);
	run(rig.agent);
	for (int attempt = 1; attempt <= 3; attempt++) {
		rig_again(&rig, attempt, "broken");
		rig_grant(&rig, attempt + 1);
	}
	run(rig.parent_g);
	run(rig.parent_a);
	struct call_entry *entry = call_relay_find(rig.relay, rig.parent_a, 1);
	assert_int_equal(entry->marks_owed, 3);
	assert_int_equal(entry->bytes_up, 0);
	rig_settle(&rig);
	assert_all(&rig.body, 'd', BODY);
	rig_end(&rig, "\"outcome\":\"ok\"", "");
	rig_settle(&rig);
	assert_int_equal(call.agains, 3);
	assert_string_equal(call.outcome, "ok");
	rig_call_release(&call);
	rig_release(&rig);
}

/* The gateway dies during the upload; the old mark and bytes arrive when the new one has granted.
 */
static void test_gateway_death_during_the_upload(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, BODY);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	run(rig.parent_g);
	run(rig.agent);
	rig_kill_gateway(&rig);
	rig_new_gateway(&rig);
	call_relay_reissue(rig.relay);
	run(rig.gateway);
	assert_int_equal(rig.requests, 2);
	assert_int_equal(rig.attempt, 2);
	rig_grant(&rig, 2);
	run(rig.parent_g);
	run(rig.parent_a);
	run(rig.gateway);
	assert_false(rig.window.open);
	assert_int_equal(rig.body.len, 0);
	rig_settle(&rig);
	assert_all(&rig.body, 'b', BODY);
	assert_int_equal(call.agains, 1);
	assert_string_equal(call.reason, "gateway");
	rig_answer(&rig, 'z', 300000);
	rig_end(&rig, "\"outcome\":\"ok\"", "");
	rig_settle(&rig);
	assert_all(&call.answer, 'z', 300000);
	assert_string_equal(call.outcome, "ok");
	assert_int_equal(rig.closed, 0);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_gateway_death_in_the_answer(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	rig_answer(&rig, 'x', 5000);
	rig_settle(&rig);
	assert_int_equal(call.answer.len, 5000);
	rig_kill_gateway(&rig);
	rig_settle(&rig);
	assert_int_equal(call.answer.len, 0);
	rig_new_gateway(&rig);
	call_relay_reissue(rig.relay);
	rig_settle(&rig);
	rig_grant(&rig, (int)rig.attempt);
	rig_settle(&rig);
	assert_all(&rig.body, 'b', 100);
	rig_answer(&rig, 'y', 5000);
	rig_end(&rig, "\"outcome\":\"ok\"", "");
	rig_settle(&rig);
	assert_all(&call.answer, 'y', 5000);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_two_gateway_deaths_fail_the_call(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	for (int i = 0; i < 2; i++) {
		rig_grant(&rig, (int)rig.attempt);
		rig_settle(&rig);
		rig_kill_gateway(&rig);
		rig_settle(&rig);
		rig_new_gateway(&rig);
		call_relay_reissue(rig.relay);
		rig_settle(&rig);
	}
	assert_int_equal(rig.requests, 2);
	assert_int_equal(rig.closed, 1);
	assert_int_equal(call.agains, 1);
	assert_int_equal(call.ends, 1);
	assert_string_equal(call.outcome, "failed");
	assert_int_equal(call.class, CALL_GATEWAY);
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_call_release(&call);
	rig_release(&rig);
}

/* Nothing is void for a call that only waited: no `again`, and attempt 1 is still to come. */
static void test_gateway_death_while_queued(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_kill_gateway(&rig);
	rig_settle(&rig);
	assert_int_equal(call.agains, 0);
	assert_int_equal(call.waits, 1);
	rig_new_gateway(&rig);
	call_relay_reissue(rig.relay);
	rig_settle(&rig);
	assert_int_equal(rig.attempt, 1);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_request_without_a_gateway_waits_for_one(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_kill_gateway(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_new_gateway(&rig);
	call_relay_reissue(rig.relay);
	call_relay_reissue(rig.relay); /* only once */
	rig_settle(&rig);
	assert_int_equal(rig.requests, 1);
	assert_string_equal(rig.agent_name, "a1");
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_waiting_is_told(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	channel_sendf(rig.gateway, FRAME_WAITING, NULL, 0,
		      "\"req\":%" PRId64 ",\"reason\":\"limit\",\"until\":99", rig.number);
	rig_settle(&rig);
	assert_int_equal(call.waits, 1);
	assert_string_equal(call.reason, "limit");
	assert_int_equal(call.until, 99);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_refuse(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig.hold = true;
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	assert_int_equal(rig.requests, 0);
	assert_true(rig.opened->held);
	assert_int_equal(rig.opened->estimate, 1000);
	assert_int_equal(rig.opened->max_tokens, 500);
	call_relay_refuse(rig.relay, rig.opened, CALL_BUDGET, 2048, "the budget is spent");
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_settle(&rig);
	assert_int_equal(rig.requests, 0);
	assert_string_equal(call.outcome, "failed");
	assert_int_equal(call.class, CALL_BUDGET);
	assert_string_equal(call.message, "the budget is spent");
	rig_call_release(&call);
	rig_release(&rig);
}

/* ---- cancel ---- */

static void test_cancel_of_a_held_call(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig.hold = true;
	int64_t req = rig_start(&rig, &call, 100);
	rig_settle(&rig);
	call_cancel(rig.callers, req);
	rig_settle(&rig);
	assert_int_equal(call.ends, 0); /* the agent has forgotten it */
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_call_release(&call);
	rig_release(&rig);
}

/* The parent answers, whatever the gateway does, and the slot is free again; the gateway is told.
 */
static void test_cancel_is_answered_by_the_parent(void **state)
{
	struct rig rig;
	struct rig_call calls[CALL_PER_PEER], again;
	rig_init(&rig);
	for (int i = 0; i < CALL_PER_PEER; i++)
		rig_start(&rig, &calls[i], BODY);
	rig_settle(&rig);
	call_cancel(rig.callers, 1);
	call_cancel(rig.callers, 1);
	assert_int_equal(rig_start(&rig, &again, 10), -1);
	rig_call_release(&again);
	run(rig.parent_a);
	run(rig.agent);
	assert_int_equal(call_relay_count(rig.relay), CALL_PER_PEER - 1);
	assert_int_equal(rig_start(&rig, &again, 10), CALL_PER_PEER + 1);
	rig_settle(&rig);
	assert_int_equal(rig.cancels, 1);
	rig.number = 1;
	rig_end(&rig, "\"outcome\":\"cancelled\"", "");
	call_cancel(rig.callers, 1);
	rig_settle(&rig);
	assert_int_equal(rig.cancels, 1);
	assert_int_equal(calls[0].ends, 0);
	for (int i = 0; i < CALL_PER_PEER; i++)
		rig_call_release(&calls[i]);
	rig_call_release(&again);
	rig_release(&rig);
}

/* The end overtakes the answer bytes that are queued for the agent, the cancel those of the body.
 */
static void test_cancel_overtakes_data(void **state)
{
	struct rig rig;
	struct rig_call call;
	static char answer[CALL_CREDIT];
	int size = 4096;
	rig_init(&rig);
	assert_int_equal(
		setsockopt(channel_fd_out(rig.agent), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
		0);
	assert_int_equal(setsockopt(channel_fd_out(rig.parent_a), SOL_SOCKET, SO_SNDBUF, &size,
				    sizeof(size)),
			 0);
	rig_start(&rig, &call, BODY);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	run(rig.parent_g);
	run(rig.agent); /* the body fills the agent's queue */
	assert_true(channel_queued(rig.agent) > (100 << 10));
	call_window_send(&rig.window, rig.gateway, rig.number, answer, sizeof(answer));
	for (int i = 0; i < 10; i++)
		run(rig.gateway), run(rig.parent_g);
	assert_true(channel_queued(rig.parent_a) > (100 << 10));
	call.fail_at = call.answer.len + 1; /* cancels at the next byte, and hears the end */
	while (call_relay_count(rig.relay) > 0) {
		run(rig.parent_a);
		run(rig.agent);
	}
	assert_true(channel_queued(rig.agent) > 0); /* of the body */
	assert_true(channel_queued(rig.parent_a) > FRAME_BODY_MAX);
	while (!call.ends) {
		run(rig.parent_a);
		run(rig.agent);
	}
	assert_string_equal(call.outcome, "cancelled");
	assert_true(channel_queued(rig.parent_a) > 0); /* of the answer */
	rig_settle(&rig);
	rig_call_release(&call);
	rig_release(&rig);
}

/* Again and grant that cross a cancel are ignored. */
static void test_cancel_crosses_again(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	int64_t req = rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	rig_again(&rig, 1, "stall");
	rig_grant(&rig, 2);
	run(rig.parent_g);
	call_cancel(rig.callers, req);
	run(rig.agent);
	assert_int_equal(call.agains, 0);
	assert_int_equal(call.bodies, 1);
	rig_settle(&rig);
	assert_int_equal(call.ends, 0);
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_call_release(&call);
	rig_release(&rig);
}

/* A lawful end that crosses the cancel of a parser counts, and there is no second one. */
static void test_cancel_crosses_the_end(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	call.fail_at = 1;
	call_window_send(&rig.window, rig.gateway, rig.number, "x", 1);
	run(rig.parent_g);
	rig_end(&rig, "\"outcome\":\"ok\"", "");
	run(rig.parent_g);
	run(rig.agent);
	rig_settle(&rig);
	assert_int_equal(call.ends, 1);
	assert_string_equal(call.outcome, "ok");
	assert_string_equal(call.message, "the stream makes no sense");
	assert_int_equal(rig.cancels, 0);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_cancel_between_two_gateways(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	int64_t req = rig_start(&rig, &call, 100);
	rig_settle(&rig);
	rig_kill_gateway(&rig);
	call_cancel(rig.callers, req);
	rig_settle(&rig);
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_new_gateway(&rig);
	call_relay_reissue(rig.relay);
	rig_settle(&rig);
	assert_int_equal(rig.requests, 1);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_on_data_error_cancels(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	call.fail_at = 3;
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	rig_answer(&rig, 'x', 10);
	rig_answer(&rig, 'x', 10);
	rig_settle(&rig);
	assert_int_equal(call.answer.len, 10);
	assert_int_equal(rig.cancels, 1);
	assert_string_equal(call.outcome, "cancelled");
	assert_string_equal(call.message, "the stream makes no sense");
	rig_call_release(&call);
	rig_release(&rig);
}

static void count_entry(struct call_entry *entry, void *arg)
{
	++*(int *)arg;
}

static void test_dropped_agent_aborts_its_calls(void **state)
{
	struct rig rig;
	struct rig_call calls[3];
	int seen = 0, each = 0;
	rig_init(&rig);
	for (int i = 0; i < 3; i++)
		rig_start(&rig, &calls[i], 10);
	rig_settle(&rig);
	call_relay_each(rig.relay, count_entry, &each);
	call_relay_drop_agent(rig.relay, rig.parent_a, count_entry, &seen);
	rig_settle(&rig);
	assert_int_equal(each, 3);
	assert_int_equal(seen, 3);
	assert_int_equal(rig.aborts, 3);
	assert_int_equal(call_relay_count(rig.relay), 0);
	rig_end(&rig, "\"outcome\":\"ok\"", ""); /* a late word for a call that is gone */
	rig_settle(&rig);
	for (int i = 0; i < 3; i++)
		rig_call_release(&calls[i]);
	rig_release(&rig);
}

static void test_body_of_another_length_is_not_sent(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 100);
	rig_settle(&rig);
	call.len = 99;
	rig_grant(&rig, 1);
	rig_settle(&rig);
	assert_int_equal(rig.body.len, 0);
	assert_int_equal(rig.cancels, 1);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_empty_body(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 0);
	rig_settle(&rig);
	rig_grant(&rig, 1);
	rig_settle(&rig);
	assert_int_equal(rig.body_ends, 1);
	rig_call_release(&call);
	rig_release(&rig);
}

static void test_names(void **state)
{
	for (int i = CALL_OVERFLOW; i <= CALL_GATEWAY; i++)
		assert_int_equal(call_class_parse(call_class_name((enum call_class)i)), i);
	assert_int_equal(call_class_parse("no such class"), CALL_CLASS_NONE);
	assert_int_equal(call_class_parse(NULL), CALL_CLASS_NONE);
	assert_string_equal(call_purpose_name(CALL_COMPACT), "compact");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_call),
		cmocka_unit_test(test_failure_carries_its_facts),
		cmocka_unit_test(test_again_sends_the_body_once_more),
		cmocka_unit_test(test_late_mark_does_not_open_the_next_attempt),
		cmocka_unit_test(test_parent_drops_what_is_void),
		cmocka_unit_test(test_gateway_death_during_the_upload),
		cmocka_unit_test(test_gateway_death_in_the_answer),
		cmocka_unit_test(test_two_gateway_deaths_fail_the_call),
		cmocka_unit_test(test_gateway_death_while_queued),
		cmocka_unit_test(test_request_without_a_gateway_waits_for_one),
		cmocka_unit_test(test_waiting_is_told),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_cancel_of_a_held_call),
		cmocka_unit_test(test_cancel_is_answered_by_the_parent),
		cmocka_unit_test(test_cancel_overtakes_data),
		cmocka_unit_test(test_cancel_crosses_again),
		cmocka_unit_test(test_cancel_crosses_the_end),
		cmocka_unit_test(test_cancel_between_two_gateways),
		cmocka_unit_test(test_on_data_error_cancels),
		cmocka_unit_test(test_dropped_agent_aborts_its_calls),
		cmocka_unit_test(test_body_of_another_length_is_not_sent),
		cmocka_unit_test(test_empty_body),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests_name("handoff/call", tests, NULL, NULL);
}
