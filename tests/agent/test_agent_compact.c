/*
 * test_agent_compact.c - whole agents whose window fills: what the next request holds (H5 to H12, X1).
 *
 * The scripted parent says how full the window is by the usage of its answers.
 */
#include "agent_rig.h"

#include <stdio.h>
#include <unistd.h>

#define SUMMARY                                                                                    \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nfix the test\n2. " \
	"Key "                                                                                     \
	"technical concepts:\nC\n3. Files and code sections:\na.txt\n4. Errors and "               \
	"fixes:\nnone\n5. "                                                                        \
	"Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. Pending "                \
	"tasks:\nnone\n8. "                                                                        \
	"Current work:\na.txt, KEPT-FACT\n9. Optional next step:\nreport\n</summary>"
#define WINDOW "{\"model\":{\"window\":60000,\"max_output\":2000},"
/* The rung before a summary would avert it. */
#define SETTINGS WINDOW "\"context\":{\"compact\":true,\"collapse\":false}}"
#define FULL	 47000 /* above compact, below closing */

#define CALL(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "\"}"                           \
	}
/* More than the tail may take. */
#define LONG(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "; seq 5000\"}"                 \
	}

/* Two rounds that give way, and two of the tail; then the answer that says that the window is full. */
#define HISTORY LONG(1, "OLD-1"), LONG(2, "OLD-2"), CALL(3, "NEW-3"), CALL(4, "NEW-4")
#define FILLED                                                                                     \
	{                                                                                          \
		.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = FULL                    \
	}

static const struct fake_step happy[] = {
	HISTORY,
	FILLED,
	{.text = SUMMARY, .input = FULL},
	{.calls = REPORT_CALL},
};

/* H5: the call is the same prefix with the instruction behind it; what follows holds opening, summary
 * and the newest messages as they were, and nothing of what gave way. */
static void h5_a_summary_takes_the_place(void **state)
{
	struct fake_parent p = {.pid = 0};

	RUN(&p, happy, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 7);
	const struct buf *before = &p.requests[4], *call = &p.requests[5];
	size_t common = 0;
	while (common < before->len && common < call->len &&
	       before->data[common] == call->data[common])
		common++;
	assert_true(common > before->len / 2); /* I4: up to the markers and the tail */
	fake_expect(&p, 5, "OLD-1");
	fake_expect(&p, 5, "<analysis>");
	fake_expect(&p, 6, "Fix the test.");
	fake_expect(&p, 6, "Use tabs."); /* the instructions */
	fake_expect(&p, 6, "KEPT-FACT");
	fake_expect(&p, 6, "NEW-5");
	fake_expect_not(&p, 6, "OLD-1");
	fake_expect_not(&p, 6, "<analysis>");
	fake_expect_not(&p, 6, "dropped");
	assert_true(fake_event_seen(&p, "compact", "\"by_rule\":false"));
	assert_true(rig_transcript_has("\"subtype\":\"compact_boundary\""));
	assert_true(rig_transcript_has("\"trigger\":\"threshold\""));
	fake_release(&p);
}

static void h5_in_the_openai_form(void **state)
{
	struct fake_parent p = {.pid = 0};

	rig_run(&p, "openai", happy, ARRAY_SIZE(happy), SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "KEPT-FACT");
	fake_expect_not(&p, 6, "OLD-1");
	fake_release(&p);
}

/* A tool call in the answer is not run and is a failed try; the second try counts. */
static void h5_a_tool_call_is_a_failed_try(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		FILLED,
		{.calls = "x1 shell {\"command\":\"echo ran > ran.txt\"}"},
		{.text = SUMMARY},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *ran = rig_path("worktree/ran.txt");

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 7, "KEPT-FACT");
	assert_int_equal(access(ran, F_OK), -1);
	fake_release(&p);
}

/* X1: without a usable summary the facts stand in its place, and the work goes on. */
static void x1_the_cut_by_rule(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 write {\"path\":\"made.txt\",\"content\":\"x\"}"},
		LONG(2, "OLD-2"),
		CALL(3, "NEW-3"),
		CALL(4, "NEW-4"),
		FILLED,
		{.text = "I would rather not."},
		{.kind = FAKE_FAIL, .text = "overload"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 8);
	fake_expect(&p, 7, "no summary could be made");
	fake_expect(&p, 7, "changed: made.txt");
	fake_expect(&p, 7, "Fix the test.");
	fake_expect(&p, 7, "NEW-5");
	fake_expect_not(&p, 7, "OLD-2");
	assert_true(fake_event_seen(&p, "compact", "\"by_rule\":true"));
	fake_release(&p);
}

/* Trap 1, H10: a window that is full again at once is not compacted for ever. */
static void trap_1_no_loop_of_compactions(void **state)
{
	static struct fake_step script[40];
	struct fake_parent p = {.pid = 0};
	size_t n = 0, summaries = 0;

	script[n++] = (struct fake_step)CALL(1, "first");
	while (n < 39) { /* every answer says that the window is full */
		script[n++] = (struct fake_step){.calls = "c9 shell {\"command\":\"date +%N\"}",
						 .input = FULL};
		script[n++] = (struct fake_step){.text = SUMMARY};
	}
	rig_run(&p, "anthropic", script, n, SETTINGS);
	for (size_t i = 0; i < p.n_requests; i++)
		summaries += strstr(buf_str(&p.requests[i]), "Do not call any tool in") != NULL;
	assert_int_equal(summaries, 2);
	assert_true(fake_event_seen(&p, "warning", "a reset is wanted"));
	assert_true(p.result != NULL);
	fake_release(&p);
}

/* X3: an empty answer has a usage too, and that judges the compaction before it. */
static void x3_an_empty_answer_judges_the_compaction(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		FILLED,
		{.text = SUMMARY, .input = FULL},
		{.input = FULL},
		{.text = SUMMARY, .input = FULL},
		{.input = FULL},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	size_t summaries = 0;

	RUN(&p, script, SETTINGS);
	for (size_t i = 0; i < p.n_requests; i++)
		summaries += strstr(buf_str(&p.requests[i]), "Do not call any tool in") != NULL;
	assert_int_equal(summaries, 2);
	assert_string_equal(p.result, "limit");
	assert_true(fake_event_seen(&p, "warning", "a reset is wanted"));
	fake_release(&p);
}

/* H10: a request that is refused right after a compaction is a verdict on it, as a count above the threshold is. */
static void h10_a_refusal_judges_the_compaction(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		FILLED,
		{.text = SUMMARY, .input = FULL},
		{.calls = "c6 shell {\"command\":\"echo NEW-6; seq 5000\"}", .input = FULL},
		{.text = SUMMARY, .input = FULL},
		{.kind = FAKE_FAIL, .text = "overflow"},
		{.text = SUMMARY},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_int_equal(p.n_requests, 9);
	assert_string_equal(p.result, "limit");
	assert_true(fake_event_seen(&p, "warning", "a reset is wanted"));
	assert_true(rig_transcript_has("a reset of the context is wanted"));
	fake_release(&p);
}

/* H9: the server says that it is too long although we thought that it fits. */
static void h9_reactive(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		{.kind = FAKE_FAIL, .text = "overflow"},
		{.text = SUMMARY},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "KEPT-FACT");
	fake_expect_not(&p, 6, "OLD-1");
	assert_true(rig_transcript_has("\"trigger\":\"reactive\""));
	fake_release(&p);
}

/* T7: above the threshold old results go first, and no summary is asked for when that is enough. */
static void t7_results_go_before_a_summary(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		CALL(5, "NEW-5"),
		CALL(6, "NEW-6"),
		{.calls = "c7 shell {\"command\":\"echo NEW-7\"}", .input = FULL},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 8);
	fake_expect(&p, 6, "OLD-1\\n");
	fake_expect(&p, 7, "Old tool result content cleared");
	fake_expect(&p, 7, "echo OLD-1"); /* the call stays */
	fake_expect_not(&p, 7, "OLD-1\\n");
	fake_expect(&p, 7, "NEW-3");
	assert_true(fake_event_seen(&p, "compact", "\"trigger\":\"clear\""));
	fake_release(&p);
}

/* H3: above 5 % below the threshold finished rounds become a snapshot, and no call is made for it. */
static void h3_a_snapshot_before_a_summary(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		FILLED,
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, WINDOW "\"context\":{\"compact\":true}}");
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 6);
	fake_expect(&p, 4, "OLD-1\\n");
	fake_expect(&p, 5, "[State snapshot of rounds 1 to ");
	fake_expect(&p, 5, "echo OLD-1; seq 5000 -> exit code 0");
	fake_expect(&p, 5, "Fix the test.");
	fake_expect(&p, 5, "NEW-5");
	fake_expect_not(&p, 5, "OLD-1\\n");
	assert_true(fake_event_seen(&p, "compact", "\"trigger\":\"collapse\""));
	assert_true(rig_transcript_has("\"subtype\":\"context_edit\",\"rung\":\"collapse\""));
	fake_release(&p);
}

/* W4: never compacted if the user does not want it. */
static void w4_off(void **state)
{
	static const struct fake_step script[] = {
		HISTORY,
		FILLED,
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script,
	    "{\"model\":{\"window\":60000,\"max_output\":2000},\"context\":{\"compact\":false}}");
	assert_string_equal(p.result, "done");
	fake_expect(&p, 5, "OLD-1");
	assert_false(fake_event_seen(&p, "compact", ""));
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(h5_a_summary_takes_the_place),
		WITH_FOLDER(h5_in_the_openai_form),
		WITH_FOLDER(h5_a_tool_call_is_a_failed_try),
		WITH_FOLDER(x1_the_cut_by_rule),
		WITH_FOLDER(trap_1_no_loop_of_compactions),
		WITH_FOLDER(x3_an_empty_answer_judges_the_compaction),
		WITH_FOLDER(h10_a_refusal_judges_the_compaction),
		WITH_FOLDER(h9_reactive),
		WITH_FOLDER(t7_results_go_before_a_summary),
		WITH_FOLDER(h3_a_snapshot_before_a_summary),
		WITH_FOLDER(w4_off),
	};
	return cmocka_run_group_tests_name("agent/compact", tests, NULL, NULL);
}
