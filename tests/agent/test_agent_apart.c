/*
 * test_agent_apart.c - whole agents whose summaries another model makes (H16): what it is sent, what of it
 * counts, and what happens where it cannot.
 */
#include "agent_rig.h"

#define SUMMARY_OF(files)                                                                          \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nfix the test\n2. " \
	"Key technical concepts:\nC. Hard constraint: never push.\n3. Files and code "             \
	"sections:\n" files "\n4. Errors and "                                                     \
	"fixes:\nnone\n5. Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. "       \
	"Pending tasks:\nnone\n8. Current work:\nKEPT-FACT\n9. Optional next "                     \
	"step:\nreport\n</summary>"
#define OTHER(window)                                                                              \
	"\"compact_model\":{\"provider\":\"anthropic\",\"name\":\"small-model\",\"api\":"          \
	"\"anthropic\",\"window\":" window ",\"max_output\":3000,\"cache\":\"none\"}"
#define SETTINGS(window)                                                                           \
	"{\"model\":{\"window\":60000,\"max_output\":2000}," OTHER(                                \
		window) ",\"context\":{\"compact\":true,\"collapse\":false}}"
#define FULL 47000 /* above compact, below closing */

#define LONG(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "; seq 5000\"}"                 \
	}
#define CALL(n, mark, tokens)                                                                      \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "\"}", .input = (tokens)        \
	}
#define ROUNDS                                                                                     \
	LONG(1, "OLD-1"), LONG(2, "OLD-2"), CALL(3, "NEW-3", 0), CALL(4, "NEW-4", 0),              \
		CALL(5, "NEW-5", FULL)

/* The call is a small one of its own: no tools, no prefix, the stretch as text, bounded. */
static void h16_another_model_summarises(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS, {.text = SUMMARY_OF("a.txt")}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS("40000"));
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 7);
	fake_expect(&p, 4, "\"model\":\"test-model\"");
	fake_expect(&p, 5, "\"model\":\"small-model\"");
	fake_expect(&p, 5, "<conversation>");
	fake_expect(&p, 5, "call of shell");
	fake_expect(&p, 5, "OLD-1");
	fake_expect(&p, 5, "1. Primary request and intent");
	fake_expect(&p, 5, "bytes ...]"); /* each block is bounded */
	fake_expect_not(&p, 5, "\"tools\"");
	fake_expect_not(&p, 5, "You work.");
	fake_expect_not(&p, 5, "NEW-5\\n"); /* stays, so it is not told */
	assert_true(p.requests[5].len < p.requests[4].len / 2);
	fake_expect(&p, 6, "\"model\":\"test-model\"");
	fake_expect(&p, 6, "KEPT-FACT");
	fake_expect(&p, 6, "Fix the test.");
	fake_expect_not(&p, 6, "never push"); /* trap 16 */
	fake_expect_not(&p, 6, "OLD-1\\n");
	assert_true(fake_event_seen(&p, "compact", "\"kind\":\"full\""));
	assert_true(fake_event_seen(&p, "state", "small-model"));
	fake_release(&p);
}

/* H7: what does not fit its window is left out from the oldest round on; the opening stays. */
static void h7_the_oldest_rounds_are_left_out(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS, {.text = SUMMARY_OF("a.txt")}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS("10000"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 5, "\"model\":\"small-model\"");
	fake_expect(&p, 5, "Fix the test.");
	fake_expect(&p, 5, "older rounds are left out");
	fake_expect_not(&p, 5, "OLD-1\\n");
	fake_expect(&p, 5, "OLD-2\\n");
	fake_expect(&p, 6, "KEPT-FACT");
	fake_release(&p);
}

/* R4, X1: two tries, the second with what was wrong; then facts, as of the agent's own model. */
static void r4_the_same_checks_and_the_same_end(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS,
		{.text = SUMMARY_OF("src/made_up.c")},
		{.text = "no summary"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS("40000"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "\"model\":\"small-model\"");
	fake_expect(&p, 6, "src/made_up.c");
	fake_expect(&p, 6, "could not be used");
	fake_expect(&p, 7, "no summary could be made");
	assert_true(fake_event_seen(&p, "compact", "\"by_rule\":true"));
	fake_release(&p);
}

/* Without a window that holds a round no call is made at all. */
static void h16_a_window_that_is_too_small(void **state)
{
	static const struct fake_step script[] = {ROUNDS, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS("3000"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 5, "no summary could be made");
	assert_true(fake_event_seen(&p, "compact", "does not hold one round"));
	fake_release(&p);
}

static void stop_at_summary(struct fake_parent *p, size_t index)
{
	if (index == 5)
		rig_stop_at_request(p, index);
}

/* C5: who waits for another model hears a stop. */
static void h16_a_stop_ends_the_wait(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS, {.kind = FAKE_STALL, .text = SUMMARY_OF("a.txt")}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_request = stop_at_summary};

	RUN(&p, script, SETTINGS("40000"));
	assert_string_equal(p.result, "stopped");
	assert_int_equal(p.n_requests, 6);
	assert_true(p.cancels >= 1);
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(h16_another_model_summarises),
		WITH_FOLDER(h7_the_oldest_rounds_are_left_out),
		WITH_FOLDER(r4_the_same_checks_and_the_same_end),
		WITH_FOLDER(h16_a_window_that_is_too_small),
		WITH_FOLDER(h16_a_stop_ends_the_wait),
	};
	return cmocka_run_group_tests_name("agent/apart", tests, NULL, NULL);
}
