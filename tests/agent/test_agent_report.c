/*
 * test_agent_report.c - calls that do not run, background jobs, and the ways to a report.
 *
 * The agent runs in a process of its own, against a parent that answers from a script.
 */
#include "agent_rig.h"

#include <fcntl.h>

#include "base/file.h"

/* ---- tools that may not run ---- */

static void unknown_and_forbidden_tools(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 write {\"path\":\"a.txt\",\"content\":\"x\"}\n"
			  "c2 dance {}\n"
			  "c3 read {\"file\":\"a.txt\"}\n"
			  "c4 read [1]"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = rig_path("worktree/a.txt");

	RUN(&p, script, "{\"role\":{\"write\":false}}");
	assert_false(file_exists(path));
	fake_expect_not(&p, 0, "\"name\":\"write\"");
	fake_expect(&p, 1, "'write' is not available to this role");
	fake_expect(&p, 1, "'dance' does not exist. Available: read");
	fake_expect(&p, 1, "the input of 'read' is wrong");
	fake_expect(&p, 1, "not one whole JSON object");
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void background_jobs_are_announced_once(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"exit 7\",\"background\":true}"},
		{.calls = "c2 shell {\"command\":\"while [ ! -e go ]; do sleep 0.05; done\"}"},
		{.calls = "c3 shell {\"command\":\"echo on\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *go = rig_path("worktree/go");
	size_t told = 0;

	assert_int_equal(file_write_atomic(AT_FDCWD, go, "", 0, 0600, NULL), 0);
	RUN(&p, script, NULL);
	assert_string_equal(p.result, "done");
	for (const char *at = buf_str(&p.requests[3]); (at = strstr(at, "background job j1 ended"));
	     at++)
		told++;
	assert_int_equal(told, 1);
	assert_true(fake_event_seen(&p, "job", "\"exit_code\":7"));
	fake_release(&p);
}

/* ---- reports ---- */

static void a_wrong_shape_goes_back(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "r1 report {\"status\":\"splendid\",\"summary\":\"x\"}"},
		{.calls = "r2 report {\"status\":\"done\"}"},
		{.calls = "r3 report {\"status\":\"done\",\"summary\":\"At last.\"}"},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 1, "status");
	fake_expect(&p, 2, "summary");
	assert_string_equal(json_str(rig_report(&p), "summary", ""), "At last.");
	assert_false(json_flag(rig_report(&p), "by_rule", false));
	fake_release(&p);
}

static void a_shape_that_stays_wrong_is_mended_by_rule(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "r1 report {\"status\":\"no\",\"summary\":\"What I did.\"}"},
		{.calls = "r2 report {\"status\":\"no\",\"summary\":\"What I did.\"}"},
		{.calls = "r3 report {\"status\":\"no\",\"summary\":\"What I did.\"}"},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_int_equal(p.n_requests, 3);
	assert_true(json_flag(rig_report(&p), "by_rule", false));
	assert_non_null(strstr(json_str(rig_report(&p), "summary", ""), "What I did."));
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void output_schema_is_asked_for(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "r1 report {\"status\":\"done\",\"summary\":\"x\"}"},
		{.calls = "r2 report "
			  "{\"status\":\"done\",\"summary\":\"x\",\"data\":{\"score\":7}}"},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script,
	    "{\"role\":{\"output_schema\":{\"type\":\"object\",\"required\":[\"score\"],"
	    "\"properties\":{\"score\":{\"type\":\"integer\"}}}}}");
	fake_expect(&p, 0, "\"score\"");
	assert_int_equal(json_i64(json_obj(rig_report(&p), "data"), "score", 0), 7);
	fake_release(&p);
}

static void text_alone_is_nudged_then_reported_by_rule(void **state)
{
	static const struct fake_step script[] = {
		{.text = "The answer is 42, because of the parser."},
		{.text = "As I said above."},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	fake_expect(&p, 1, "Text does not end the work");
	assert_true(json_flag(rig_report(&p), "by_rule", false));
	assert_string_equal(json_str(rig_report(&p), "status", ""), "partial");
	assert_non_null(strstr(json_str(rig_report(&p), "summary", ""), "The answer is 42"));
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void report_runs_last_wherever_it_stands(void **state)
{
	static const struct fake_step script[] = {
		{.calls = REPORT_CALL "\nc2 shell {\"command\":\"echo x > after.txt\"}"},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = rig_path("worktree/after.txt");

	RUN(&p, script, NULL);
	assert_true(file_exists(path));
	assert_int_equal(json_i64(p.report, "tool_calls", 0), 1);
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

/* A4: what is too long for its reader is bounded; all of it stays with the agent. */
static void a4_long_reports_are_bounded(void **state)
{
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = rig_path("generation/report.json");
	AUTO_BUF struct buf call = BUF_INIT;
	struct fake_step script[1] = {{.text = NULL}};

	buf_adds(&call, "r1 report {\"status\":\"done\",\"summary\":\"START ");
	for (int i = 0; i < 3000; i++)
		buf_addf(&call, "word%d ", i);
	buf_adds(&call, "VERDICT\"}");
	script[0].calls = call.data;
	RUN(&p, script, "{\"limits\":{\"report_tokens\":500}}");
	assert_true(json_flag(rig_report(&p), "truncated", false));
	assert_non_null(strstr(json_str(rig_report(&p), "summary", ""), "START"));
	assert_non_null(strstr(json_str(rig_report(&p), "summary", ""), "VERDICT"));
	assert_true(file_exists(path));
	fake_release(&p);
}

static void a_report_that_the_parent_refuses(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL}};
	struct fake_parent p = {.refuse_reports = true};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "did not take the report"));
	fake_release(&p);
}

static void stop_while_the_report_waits(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL}};
	struct fake_parent p = {.mute_reports = true, .on_request = rig_stop_at_request};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "stopped");
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(unknown_and_forbidden_tools),
		WITH_FOLDER(background_jobs_are_announced_once),
		WITH_FOLDER(a_wrong_shape_goes_back),
		WITH_FOLDER(a_shape_that_stays_wrong_is_mended_by_rule),
		WITH_FOLDER(output_schema_is_asked_for),
		WITH_FOLDER(text_alone_is_nudged_then_reported_by_rule),
		WITH_FOLDER(report_runs_last_wherever_it_stands),
		WITH_FOLDER(a4_long_reports_are_bounded),
		WITH_FOLDER(a_report_that_the_parent_refuses),
		WITH_FOLDER(stop_while_the_report_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
