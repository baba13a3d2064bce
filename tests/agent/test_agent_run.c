/*
 * test_agent_run.c - the life of an agent: whole runs, stops, deaths, starts.
 *
 * The agent runs in a process of its own, against a parent that answers from a script.
 */
#include "agent_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "agent/validate.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

/* ---- a whole run ---- */

static const struct fake_step whole_run[] = {
	{.text = "I write it.",
	 .calls = "c1 write {\"path\":\"a.txt\",\"content\":\"hello\\n\"}\n"
		  "c2 shell {\"command\":\"cat a.txt; exit 3\"}"},
	{.calls = REPORT_CALL},
};

static void check_whole_run(const char *api)
{
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = rig_path("worktree/a.txt");
	struct conversation c;

	rig_run(&p, api, whole_run, ARRAY_SIZE(whole_run), NULL);
	assert_int_equal(p.status, 0);
	assert_string_equal(p.result, "done");
	assert_true(file_exists(path));
	fake_expect(&p, 0, "Fix the test.");
	fake_expect(&p, 0, "Use tabs.");
	fake_expect_not(&p, 0, rig_folder); /* no absolute path, no agent id (W11) */
	fake_expect_not(&p, 0, "\"a1\"");
	fake_expect(&p, 1, "hello");
	assert_string_equal(json_str(rig_report(&p), "summary", ""), "The test passes.");
	assert_string_equal(p.report_call, "r1");
	assert_int_equal(json_i64(p.report, "tool_calls", 0), 2);
	assert_int_equal(json_object_get_int(json_at(json_arr(p.report, "last_exit_codes"), 0)), 3);
	assert_int_equal(json_i64(p.result_body, "rounds", 0), 2);
	assert_int_equal(p.usages, 2);
	assert_int_equal(p.estimated_usages, 0);
	assert_true(fake_event_seen(&p, "round", "\"round\":1"));
	assert_true(fake_event_seen(&p, "tool", "\"exit_code\":3"));
	assert_true(fake_event_seen(&p, "text", "I write it."));
	assert_true(fake_event_seen(&p, "state", "reporting"));
	rig_load(&c);
	assert_int_equal(c.n, 5); /* opening, answer, results, answer, result of the report */
	conversation_release(&c);
	assert_true(rig_transcript_has("\"type\":\"end\",\"status\":\"done\""));
	fake_release(&p);
}

static void whole_run_anthropic(void **state)
{
	check_whole_run("anthropic");
}

static void whole_run_openai(void **state)
{
	check_whole_run("openai");
}

/* I4, W11: the messages of a request are a prefix of those of the next one, byte for byte. */
static void i4_requests_only_grow(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"echo one\"}"},
		{.calls = "c2 shell {\"command\":\"echo two\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	rig_run(&p, "openai", script, ARRAY_SIZE(script), NULL);
	for (size_t i = 0; i + 1 < p.n_requests; i++) {
		const char *a = strstr(buf_str(&p.requests[i]), "\"messages\":[");
		const char *b = strstr(buf_str(&p.requests[i + 1]), "\"messages\":[");
		const char *last = strrchr(a, ']');

		assert_memory_equal(a, b, (size_t)(last - a) - 1);
	}
	fake_release(&p);
}

/* ---- stop, death, interruption ---- */

static void stop_in_mid_stream(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_STALL, .text = "A long answer that stops"}};
	struct fake_parent p = {.on_request = rig_stop_at_request};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "stopped");
	assert_string_equal(p.reason, "the user wants it");
	assert_int_equal(p.cancels, 1);
	assert_int_equal(p.status, 0);
	assert_null(p.report);
	fake_release(&p);
}

static const struct fake_step slow_tool[] = {
	{.calls = "c1 shell {\"command\":\"echo $$ > pid; (sleep 300 & echo $! > pid2); sleep "
		  "300\"}\n"
		  "c2 write {\"path\":\"never.txt\",\"content\":\"x\"}"},
	{.calls = REPORT_CALL},
};

static pid_t read_pid(const char *name)
{
	AUTO_FREE char *path = rig_path(name);
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t pid = 0;

	if (file_read(AT_FDCWD, path, 100, &text, NULL) < 0 || !text.len)
		return 0;
	buf_truncate(&text, strcspn(text.data, "\n"));
	return text_parse_i64(buf_str(&text), &pid) < 0 ? 0 : (pid_t)pid;
}

static bool is_gone(pid_t pid)
{
	int64_t deadline = clock_mono_ms() + 5000;

	while (kill(pid, 0) == 0 && clock_mono_ms() < deadline)
		poll(NULL, 0, 5);
	return kill(pid, 0) < 0;
}

static void stop_when_tool_runs(struct fake_parent *p)
{
	if (!p->arg && read_pid("worktree/pid") && read_pid("worktree/pid2")) {
		p->arg = p;
		fake_control(p, "stop", "enough");
	}
}

static void stop_kills_the_tool_and_records_it(void **state)
{
	struct fake_parent p = {.on_tick = stop_when_tool_runs};
	AUTO_FREE char *never = rig_path("worktree/never.txt");
	struct conversation c;
	const struct block *first, *second;

	RUN(&p, slow_tool, NULL);
	assert_string_equal(p.result, "stopped");
	assert_true(is_gone(read_pid("worktree/pid")));
	assert_true(is_gone(read_pid("worktree/pid2")));
	assert_false(file_exists(never));
	rig_load(&c);
	first = validate_find_result(conversation_last(&c), "c1");
	second = validate_find_result(conversation_last(&c), "c2");
	assert_true(first->is_error && second->is_error);
	assert_non_null(strstr(first->text, "Interrupted"));
	assert_non_null(strstr(second->text, "Not run"));
	conversation_release(&c);
	fake_release(&p);
}

static void leave_when_tool_runs(struct fake_parent *p)
{
	if (read_pid("worktree/pid") && read_pid("worktree/pid2"))
		p->closed = true;
}

/* I9: the parent dies; the agent and all that its tool started are gone. */
static void i9_parent_death(void **state)
{
	struct fake_parent p = {.on_tick = leave_when_tool_runs,
				.api = "anthropic",
				.script = slow_tool,
				.n_script = ARRAY_SIZE(slow_tool)};
	AUTO_FREE char *document = fixture_start(rig_folder, "anthropic", NULL);
	struct conversation c;

	fake_start(&p, document);
	while (!p.closed)
		fake_serve(&p);
	fake_die(&p);
	assert_int_equal(p.status, 1);
	assert_true(is_gone(read_pid("worktree/pid")));
	assert_true(is_gone(read_pid("worktree/pid2")));
	rig_load(&c);
	assert_true(validate_find_result(conversation_last(&c), "c1")->is_error);
	conversation_release(&c);
	fake_release(&p);
}

static void ask_for_report_when_tool_runs(struct fake_parent *p)
{
	if (!p->arg && read_pid("worktree/pid")) {
		p->arg = p;
		fake_control(p, "report", "the time limit is reached");
	}
}

static void control_report_interrupts_and_forces(void **state)
{
	struct fake_parent p = {.on_tick = ask_for_report_when_tool_runs};

	RUN(&p, slow_tool, NULL);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 1, "the time limit is reached");
	fake_expect(&p, 1, "Interrupted");
	fake_expect(&p, 1, "Not run: only `report`");
	assert_string_equal(json_str(rig_report(&p), "summary", ""), "The test passes.");
	fake_release(&p);
}

static void forced_and_still_no_report(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"true\"}"},
		{.calls = "c2 shell {\"command\":\"touch never.txt\"}", .text = "One more look."},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *never = rig_path("worktree/never.txt");

	RUN(&p, script, "{\"role\":{\"max_rounds\":1}}");
	assert_false(file_exists(never));
	assert_string_equal(p.result, "limit");
	assert_true(json_flag(rig_report(&p), "by_rule", false));
	assert_string_equal(json_str(rig_report(&p), "status", ""), "partial");
	fake_release(&p);
}

static void term_is_a_stop(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_STALL, .text = "An answer, in part"}};
	AUTO_FREE char *document = fixture_start(rig_folder, "anthropic", NULL);
	struct fake_parent p = {.api = "anthropic", .script = script, .n_script = 1};

	fake_start(&p, document);
	while (!p.n_requests)
		fake_serve(&p);
	kill(p.pid, SIGTERM);
	fake_run(&p);
	assert_string_equal(p.result, "stopped");
	assert_int_equal(p.status, 0);
	fake_release(&p);
}

/* ---- starts ---- */

static void bad_start_documents(void **state)
{
	static const struct {
		const char *members, *reason;
	} cases[] = {
		{"{\"role\":{\"max_rounds\":\"many\"}}", "role.max_rounds"},
		{"{\"model\":{\"window\":0}}", "--window"},
		{"{\"dirs\":{\"generation\":\"/proc/none/x\"}}", "/proc/none"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_parent p = {.pid = 0};

		rig_run(&p, "anthropic", NULL, 0, cases[i].members);
		assert_int_equal(p.status, 2);
		assert_string_equal(p.result, "failed");
		assert_non_null(strstr(p.reason, cases[i].reason));
		fake_release(&p);
	}
}

static void no_start_and_the_parent_leaves(void **state)
{
	struct fake_parent p = {.pid = 0};

	fake_start(&p, NULL);
	while (!p.hello)
		fake_serve(&p);
	fake_die(&p);
	assert_int_equal(p.status, 1);
	fake_release(&p);
}

/* W2: a fixed part above half of the window is refused with the figures. */
static void w2_fixed_part_too_large(void **state)
{
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *text = mem_alloc(40001);
	AUTO_FREE char *members = NULL;

	for (int i = 0; i < 40000; i++)
		text[i] = i % 6 ? 'a' : ' ';
	members = mem_printf("{\"model\":{\"window\":16000},\"instructions\":[{\"origin\":\"user\","
			     "\"path\":\"AGENTS.md\",\"text\":\"%s\"}]}",
			     text);
	rig_run(&p, "anthropic", NULL, 0, members);
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "instructions"));
	assert_string_equal(json_str(p.result_body, "class", ""), "overflow");
	fake_release(&p);
}

/* ---- the worktree comes later ---- */

static void ready_at_request(struct fake_parent *p, size_t index)
{
	if (index == 0)
		fake_ready(p, p->arg);
}

static void request_leaves_before_the_worktree_is_there(void **state)
{
	struct fake_parent p = {.on_request = ready_at_request, .arg = (void *)"{\"ok\":true}"};

	RUN(&p, whole_run, "{\"worktree_ready\":false}");
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void worktree_that_could_not_be_made(void **state)
{
	struct fake_parent p = {.on_request = ready_at_request,
				.arg = (void *)"{\"ok\":false,\"message\":\"no room on disk\"}"};

	RUN(&p, whole_run, "{\"worktree_ready\":false}");
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "no room on disk"));
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(whole_run_anthropic),
		WITH_FOLDER(whole_run_openai),
		WITH_FOLDER(i4_requests_only_grow),
		WITH_FOLDER(stop_in_mid_stream),
		WITH_FOLDER(stop_kills_the_tool_and_records_it),
		WITH_FOLDER(i9_parent_death),
		WITH_FOLDER(control_report_interrupts_and_forces),
		WITH_FOLDER(forced_and_still_no_report),
		WITH_FOLDER(term_is_a_stop),
		WITH_FOLDER(bad_start_documents),
		WITH_FOLDER(no_start_and_the_parent_leaves),
		WITH_FOLDER(w2_fixed_part_too_large),
		WITH_FOLDER(request_leaves_before_the_worktree_is_there),
		WITH_FOLDER(worktree_that_could_not_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
