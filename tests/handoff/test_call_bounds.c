/*
 * test_call_bounds.c - credit and order of a model call against peers that break them.
 *
 * Issue 2, "Channel": no queue beyond its credit; what a broken agent or gateway sends is its own
 * recorded failure. The agent here is mostly a bare channel (raw) that sends what no caller would.
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

static void run(struct channel *ch)
{
	struct err err = ERR_INIT;
	if (rig_run(ch, &err) < 0)
		fail_msg("%s", err.message);
}

static void expect_failure(struct channel *ch, const char *part)
{
	struct err err = ERR_INIT;
	int rc = 0;
	for (int i = 0; i < 50 && rc == 0; i++)
		rc = channel_on_readable(ch, &err);
	if (rc != -1 || !strstr(err.message, part))
		fail_msg("%d '%s'", rc, err.message);
}

/* ---- bounds ---- */

/* Neither side consumes: what is under way stays within the credit, and so does the parent's queue.
 */
static void test_queues_stay_within_credit(void **state)
{
	struct rig rig;
	struct rig_call call;
	rig_init(&rig);
	rig_start(&rig, &call, 4 << 20);
	rig_settle(&rig);
	rig.eat = false;
	rig_grant(&rig, 1);
	run(rig.parent_g);
	for (int i = 0; i < 100; i++) {
		run(rig.agent);
		call_callers_pump(rig.callers);
		run(rig.parent_a);
	}
	struct call_entry *entry = call_relay_find(rig.relay, rig.parent_a, 1);
	assert_int_equal(entry->out_up, CALL_CREDIT);
	assert_true(channel_queued(rig.parent_g) > 0);
	assert_true(channel_queued(rig.parent_g) <= CALL_CREDIT + 4096);
	rig_settle(&rig);
	assert_int_equal(rig.body.len, CALL_CREDIT);
	call_window_consumed(&rig.window, rig.gateway, rig.number, 1000);
	assert_int_equal(rig.window.outstanding, CALL_CREDIT); /* too little for a frame */
	call_window_consumed(&rig.window, rig.gateway, rig.number, 64 << 10);
	rig_settle(&rig);
	assert_int_equal(rig.body.len, CALL_CREDIT + (64 << 10) + 1000);

	static char answer[1 << 20];
	size_t sent = call_window_send(&rig.window, rig.gateway, rig.number, answer, 1 << 20);
	assert_int_equal(sent, CALL_CREDIT);
	for (int i = 0; i < 100; i++)
		run(rig.gateway), run(rig.parent_g);
	assert_int_equal(entry->out_down, CALL_CREDIT);
	assert_true(channel_queued(rig.parent_a) <= CALL_CREDIT + 4096);
	rig_call_release(&call);
	rig_release(&rig);
}

/* A bare agent: frames as a broken one would send them. */
static void raw(struct rig *rig, enum frame_type type, const char *fields, size_t len)
{
	static const char bytes[FRAME_BODY_MAX];
	channel_send(rig->agent, type, fields, bytes, len);
}

#define REQUEST_FIELDS                                                                             \
	"\"class\":\"main\",\"provider\":\"p\\\"1\",\"model\":\"m\",\"api\":\"openai\","           \
	"\"length\":9,\"estimate\":1,\"max_tokens\":1,\"beta\":\"b\""

static void raw_granted(struct rig *rig)
{
	rig_init(rig);
	rig->eat = false;
	raw(rig, FRAME_REQUEST, "\"req\":1," REQUEST_FIELDS, 0);
	run(rig->parent_a);
	run(rig->gateway);
	rig_grant(rig, 1);
	run(rig->parent_g);
}

static void test_agent_overruns_its_credit(void **state)
{
	struct rig rig;
	raw_granted(&rig);
	raw(&rig, FRAME_CREDIT, "\"req\":1,\"bytes\":0", 0);
	for (int i = 0; i < 5; i++)
		raw(&rig, FRAME_DATA, "\"req\":1", FRAME_BODY_MAX);
	struct err err = ERR_INIT;
	int rc = 0;
	for (int i = 0; i < 10 && rc == 0; i++) {
		assert_int_equal(channel_on_writable(rig.agent, NULL), 0);
		rc = channel_on_readable(rig.parent_a, &err);
	}
	assert_int_equal(rc, -1);
	assert_non_null(strstr(err.message, "exceeds its credit"));
	rig_release(&rig);
}

static void test_agent_breaks_the_order(void **state)
{
	static const struct {
		enum frame_type type;
		const char *fields;
		size_t len;
		const char *error;
	} cases[] = {
		{FRAME_CREDIT, "\"req\":1,\"bytes\":1", 0, "more credit"},
		{FRAME_CREDIT, "\"req\":1,\"bytes\":0", 0, "mark without"},
		{FRAME_REQUEST, "\"req\":1," REQUEST_FIELDS, 0, "in use"},
		{FRAME_USAGE,
		 "\"req\":1,\"input\":1,\"cache_read\":0,\"cache_write\":0,\"output\":1", 0,
		 "no part of a call"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig rig;
		raw_granted(&rig);
		raw(&rig, FRAME_CREDIT, "\"req\":1,\"bytes\":0", 0);
		raw(&rig, cases[i].type, cases[i].fields, cases[i].len);
		expect_failure(rig.parent_a, cases[i].error);
		rig_release(&rig);
	}
	struct rig rig;
	rig_init(&rig);
	raw(&rig, FRAME_REQUEST, "\"req\":1," REQUEST_FIELDS, 0);
	raw(&rig, FRAME_DATA, "\"req\":1", 10);
	expect_failure(rig.parent_a, "before its grant");
	rig_release(&rig);
}

static void test_gateway_breaks_the_order(void **state)
{
	static const struct {
		enum frame_type type;
		const char *fields;
		int times;
		const char *error;
	} cases[] = {
		{FRAME_DATA, "\"req\":1", 5, "exceeds its credit"},
		{FRAME_CREDIT, "\"req\":1,\"bytes\":1", 1, "more credit"},
		{FRAME_GRANT, "\"req\":1,\"attempt\":1", 1, "a grant of attempt 1 after 1"},
	};
	static const char bytes[FRAME_BODY_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig rig;
		struct err err = ERR_INIT;
		int rc = 0;
		raw_granted(&rig);
		for (int k = 0; k < cases[i].times; k++)
			channel_send(rig.gateway, cases[i].type, cases[i].fields, bytes,
				     cases[i].type == FRAME_DATA ? sizeof(bytes) : 0);
		for (int k = 0; k < 10 && rc == 0; k++) {
			assert_int_equal(channel_on_writable(rig.gateway, NULL), 0);
			rc = channel_on_readable(rig.parent_g, &err);
		}
		if (rc != -1 || !strstr(err.message, cases[i].error))
			fail_msg("case %zu: %d '%s'", i, rc, err.message);
		rig_release(&rig);
	}
}

static void test_unknown_numbers_are_ignored(void **state)
{
	struct rig rig;
	raw_granted(&rig);
	raw(&rig, FRAME_DATA, "\"req\":77", 10);
	raw(&rig, FRAME_CANCEL, "\"req\":77", 0);
	run(rig.parent_a);
	channel_send(rig.gateway, FRAME_DATA, "\"req\":77", "x", 1);
	channel_send(rig.gateway, FRAME_END, "\"req\":0,\"outcome\":\"ok\"", "", 0);
	run(rig.parent_g);
	assert_int_equal(call_relay_count(rig.relay), 1);
	rig_release(&rig);
}

static void test_calls_per_agent_are_bounded(void **state)
{
	struct rig rig;
	struct rig_call calls[CALL_PER_PEER + 1];
	rig_init(&rig);
	for (int i = 0; i < CALL_PER_PEER; i++)
		assert_int_equal(rig_start(&rig, &calls[i], 10), i + 1);
	assert_int_equal(rig_start(&rig, &calls[CALL_PER_PEER], 10), -1);
	rig_settle(&rig);
	assert_int_equal(call_relay_count(rig.relay), CALL_PER_PEER);
	raw(&rig, FRAME_REQUEST, "\"req\":99," REQUEST_FIELDS, 0);
	expect_failure(rig.parent_a, "calls are open");
	for (int i = 0; i <= CALL_PER_PEER; i++)
		rig_call_release(&calls[i]);
	rig_release(&rig);
}

/* A header that fits into 4 KiB may not fit any more once it is escaped and renumbered. */
static void test_header_that_grows_is_refused(void **state)
{
	struct rig rig;
	rig_init(&rig);
	AUTO_BUF struct buf name = BUF_INIT;
	while (name.len < 3700)
		buf_addc(&name, '\x01');
	AUTO_BUF struct buf bytes = BUF_INIT;
	buf_addf(&bytes,
		 "{\"type\":\"request\",\"len\":0,\"req\":1,\"class\":\"main\",\"provider\":\"p\","
		 "\"model\":\"%s\",\"api\":\"openai\",\"length\":9,\"estimate\":1,\"max_tokens\":1}"
		 "\n",
		 buf_str(&name));
	assert_int_equal(write(channel_fd_out(rig.agent), bytes.data, bytes.len), bytes.len);
	expect_failure(rig.parent_a, "header");
	rig_release(&rig);
}

/* An agent cannot queue under the name of another. */
static void test_agent_name_is_the_parents(void **state)
{
	struct rig rig;
	rig_init(&rig);
	raw(&rig, FRAME_REQUEST, "\"req\":1,\"agent\":\"other\"," REQUEST_FIELDS, 0);
	run(rig.parent_a);
	run(rig.gateway);
	assert_string_equal(rig.agent_name, "a1");
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queues_stay_within_credit),
		cmocka_unit_test(test_agent_overruns_its_credit),
		cmocka_unit_test(test_agent_breaks_the_order),
		cmocka_unit_test(test_gateway_breaks_the_order),
		cmocka_unit_test(test_unknown_numbers_are_ignored),
		cmocka_unit_test(test_calls_per_agent_are_bounded),
		cmocka_unit_test(test_header_that_grows_is_refused),
		cmocka_unit_test(test_agent_name_is_the_parents),
	};
	return cmocka_run_group_tests_name("handoff/call_bounds", tests, NULL, NULL);
}
