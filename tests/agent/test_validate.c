/*
 * test_validate.c - I2: what a request must be, and that every breach is found. Traps 20, 22, 24,
 * 28, 30.
 */
#include "agent_fixture.h"

#include "agent/validate.h"
#include "base/memory.h"

#define VIEW_MAX 16

struct view_of { /* a view under construction; owns its messages */
	struct message *list[VIEW_MAX];
	size_t n;
};

static void add(struct view_of *v, struct message *m)
{
	m->uid = v->n + 1;
	v->list[v->n++] = m;
}

static void drop(struct view_of *v)
{
	for (size_t i = 0; i < v->n; i++)
		message_free(v->list[i]);
	v->n = 0;
}

static void accepted(struct view_of *v)
{
	struct err e = ERR_INIT;

	if (validate_all(v->list, v->n, &e) < 0)
		fail_msg("refused: %s", e.message);
	drop(v);
}

static void refused(struct view_of *v, const char *what)
{
	struct err e = ERR_INIT;

	assert_int_equal(validate_all(v->list, v->n, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	if (!strstr(e.message, what))
		fail_msg("'%s' does not say '%s'", e.message, what);
	drop(v);
}

static void well_formed_passes(void **state)
{
	struct view_of v = {.n = 0};

	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a b"));
	add(&v, fixture_results("b a"));
	add(&v, fixture_text(MESSAGE_USER, "nudge")); /* news is a new message (W11) */
	add(&v, fixture_text(MESSAGE_ASSISTANT, "done"));
	add(&v, fixture_text(MESSAGE_USER, "go on"));
	accepted(&v);
}

static void empty_or_wrong_start(void **state)
{
	struct view_of v = {.n = 0};

	refused(&v, "no message");
	add(&v, fixture_text(MESSAGE_ASSISTANT, "hello"));
	add(&v, fixture_text(MESSAGE_USER, "task"));
	refused(&v, "first message");
}

/* Trap 20: a cut inside a parallel batch leaves a call without its result. */
static void trap_20_call_without_result(void **state)
{
	struct view_of v = {.n = 0};

	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a b"));
	add(&v, fixture_results("a"));
	refused(&v, "exactly one result");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a"));
	refused(&v, "last message is the assistant's");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a"));
	add(&v, fixture_text(MESSAGE_USER, "between"));
	add(&v, fixture_results("a"));
	refused(&v, "exactly one result");
}

/* Traps 20, 22: the tail begins with a result whose call was cut away. */
static void trap_22_result_without_call(void **state)
{
	struct view_of v = {.n = 0};

	add(&v, fixture_results("a"));
	refused(&v, "without its call");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a"));
	add(&v, fixture_results("a b"));
	refused(&v, "without its call");
}

/* Trap 24: two recoverers wrote a result each. */
static void trap_24_two_results_for_one_call(void **state)
{
	struct view_of v = {.n = 0};

	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a"));
	add(&v, fixture_results("a a"));
	refused(&v, "exactly one result");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a a"));
	add(&v, fixture_results("a"));
	refused(&v, "two tool calls with one id");
}

static void results_come_first(void **state)
{
	struct view_of v = {.n = 0};
	struct message *m = fixture_text(MESSAGE_USER, "by the way");

	message_add_result(m, "a", "shell", "ok", 2, false);
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a"));
	add(&v, m);
	refused(&v, "after other content");
}

static void images_follow_their_result(void **state)
{
	struct view_of v = {.n = 0};
	struct message *m = fixture_results("a");

	message_add_image(m, "a", "image/png", "AAAA", 4);
	message_add_result(m, "b", "shell", "ok", 2, false);
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a b"));
	add(&v, m);
	accepted(&v);
	m = fixture_results("a b");
	message_add_image(m, "a", "image/png", "AAAA", 4);
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_calls("a b"));
	add(&v, m);
	refused(&v, "does not follow its result");
}

static void roles_in_order(void **state)
{
	struct view_of v = {.n = 0};
	struct message *paused = message_new(MESSAGE_ASSISTANT);

	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, fixture_text(MESSAGE_ASSISTANT, "one"));
	add(&v, fixture_text(MESSAGE_ASSISTANT, "two"));
	add(&v, fixture_text(MESSAGE_USER, "x"));
	refused(&v, "two assistant messages");
	/* pause_turn: the content goes back as it is and the turn goes on (wire.md 1.4) */
	message_add_opaque(paused, "{\"type\":\"server_tool_use\"}");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, paused);
	accepted(&v);
}

/* Traps 28, 30: nothing blank, whatever made it. */
static void trap_28_nothing_blank(void **state)
{
	struct view_of v = {.n = 0};
	struct message *m = fixture_text(MESSAGE_USER, "x");
	struct message *thinking = message_new(MESSAGE_ASSISTANT);

	m->blocks[0].text[0] = ' '; /* message.h refuses it; a bug behind it must be seen */
	add(&v, m);
	refused(&v, "blank text");
	add(&v, message_new(MESSAGE_USER));
	refused(&v, "without content");
	message_add_thinking(thinking, NULL, "hm", 2, "{}");
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, thinking);
	add(&v, fixture_text(MESSAGE_USER, "x"));
	refused(&v, "blank assistant");
}

static void text_is_utf8(void **state)
{
	struct view_of v = {.n = 0};
	struct message *m = fixture_text(MESSAGE_USER, "xy");

	m->blocks[0].text[1] = (char)0xff;
	add(&v, m);
	refused(&v, "UTF-8");
}

/* Trap 37: a cut call is answered by an error, never by a success. */
static void trap_37_cut_call_has_an_error_result(void **state)
{
	struct view_of v = {.n = 0};
	struct message *call = fixture_calls("a");

	call->blocks[0].partial = true;
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, call);
	add(&v, fixture_results("a"));
	refused(&v, "cut tool call");
}

static void blocks_fit_their_role(void **state)
{
	struct view_of v = {.n = 0};
	struct message *m = fixture_calls("a");

	m->role = MESSAGE_USER;
	add(&v, m);
	refused(&v, "role");
}

/* The check looks at what is new only; a view that is another one is checked from its start. */
static void incremental(void **state)
{
	struct view_of v = {.n = 0};
	struct validator validator = {.n = 0};
	struct err e = ERR_INIT;

	add(&v, fixture_text(MESSAGE_USER, "task"));
	assert_int_equal(validator_check(&validator, v.list, v.n, &e), 0);
	add(&v, fixture_calls("a"));
	add(&v, fixture_results("a"));
	assert_int_equal(validator_check(&validator, v.list, v.n, &e), 0);
	assert_int_equal(validator.n, 3);
	/* Nobody may change what passed; if it happens all the same, only a full check can see it.
	 */
	v.list[0]->blocks[0].text[0] = ' ';
	v.list[0]->blocks[0].text_len = 1;
	assert_int_equal(validator_check(&validator, v.list, v.n, &e), 0);
	assert_int_equal(validate_all(v.list, v.n, &e), -1);
	/* Another view: the last message is not where it was. */
	assert_int_equal(validator_check(&validator, v.list, 1, &e), -1);
	/* An orphan behind what passed is found. */
	v.list[0]->blocks[0].text[0] = 'x';
	add(&v, fixture_results("zz"));
	assert_int_equal(validator_check(&validator, v.list, v.n, &e), -1);
	drop(&v);
}

static void repair_answers_what_is_open(void **state)
{
	struct view_of v = {.n = 0};
	struct message *calls = fixture_calls("a b c");
	struct message *some = fixture_results("b");
	struct message *closed;

	message_add_text(some, ORIGIN_NUDGE, "note", 4);
	closed = validate_close_calls(calls, some, "interrupted");
	assert_non_null(closed);
	assert_false(validate_find_result(closed, "b")->is_error);
	assert_true(validate_find_result(closed, "a")->is_error);
	assert_string_equal(validate_find_result(closed, "c")->text, "interrupted");
	assert_null(
		validate_close_calls(calls, closed, "again")); /* the second one is a no-op (24) */
	message_free(some);
	add(&v, fixture_text(MESSAGE_USER, "task"));
	add(&v, calls);
	add(&v, closed);
	accepted(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_formed_passes),
		cmocka_unit_test(empty_or_wrong_start),
		cmocka_unit_test(trap_20_call_without_result),
		cmocka_unit_test(trap_22_result_without_call),
		cmocka_unit_test(trap_24_two_results_for_one_call),
		cmocka_unit_test(results_come_first),
		cmocka_unit_test(images_follow_their_result),
		cmocka_unit_test(roles_in_order),
		cmocka_unit_test(trap_28_nothing_blank),
		cmocka_unit_test(text_is_utf8),
		cmocka_unit_test(trap_37_cut_call_has_an_error_result),
		cmocka_unit_test(blocks_fit_their_role),
		cmocka_unit_test(incremental),
		cmocka_unit_test(repair_answers_what_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
