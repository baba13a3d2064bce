/*
 * test_agent_resume.c - a generation that was killed goes on from its transcript (R6, X12; traps 138, 140, 142).
 *
 * The first life is ended with SIGKILL at a moment that the test chooses; the second one gets the same start document
 * with "resume". What it asks for first must have all of the first life at its beginning, byte for byte.
 */
#include "agent_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define AGAIN "{\"resume\":true}"

static const struct fake_step report_only[] = {{.calls = REPORT_CALL}};

/* ---- the first life ---- */

static void kill_when_started(struct fake_parent *p)
{
	AUTO_FREE char *mark = rig_path("worktree/started");

	if (file_exists(mark))
		kill(p->pid, SIGKILL);
}

static void live_and_die(struct fake_parent *p, const char *api, const struct fake_step *script,
			 size_t n)
{
	p->on_tick = kill_when_started;
	rig_run(p, api, script, n, NULL);
	assert_int_equal(p->status, -SIGKILL);
}

static void go_on(struct fake_parent *p, const char *api)
{
	rig_run(p, api, report_only, ARRAY_SIZE(report_only), AGAIN);
	assert_int_equal(p->status, 0);
	assert_string_equal(p->result, "done");
}

/* The messages of `a` are those that `b` begins with. */
static void expect_prefix(const struct buf *a, const struct buf *b)
{
	const char *of_a = strstr(buf_str(a), "\"messages\":[");
	const char *of_b = strstr(buf_str(b), "\"messages\":[");
	const char *end = strrchr(of_a, ']');

	assert_memory_equal(of_a, of_b, (size_t)(end - of_a) - 1);
}

static char *read_worktree(const char *name)
{
	AUTO_FREE char *path = rig_path(name);
	AUTO_BUF struct buf bytes = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &bytes, NULL), 0);
	return mem_strdup(buf_str(&bytes));
}

/* Two rounds that are whole, then three calls in the midst of which it dies. */
static const struct fake_step three_calls[] = {
	{.text = "I look.", .calls = "a1 read {\"path\":\"AGENTS.md\"}"},
	{.calls = "b1 shell {\"command\":\"echo one >> count.txt\"}"},
	{.calls = "c1 shell {\"command\":\"echo two >> count.txt; echo said; exit 3\"}\n"
		  "c2 read {\"path\":\"count.txt\"}\n"
		  "c3 shell {\"command\":\"echo begun; touch started; sleep 300\"}\n"
		  "c4 write {\"path\":\"never.txt\",\"content\":\"x\"}"},
};

static void check_killed_in_a_tool(const char *api)
{
	struct fake_parent first = {.pid = 0}, second = {.pid = 0};

	live_and_die(&first, api, three_calls, ARRAY_SIZE(three_calls));
	go_on(&second, api);
	if (!strcmp(api, "openai"))
		expect_prefix(&first.requests[2], &second.requests[0]);
	fake_expect(&second, 0, "this call had ended with exit code 3");
	fake_expect(&second, 0, "one\\n"); /* c2 ran again */
	fake_expect(&second, 0, "the outcome of this call is unknown");
	fake_expect(&second, 0, "begun");
	fake_expect(&second, 0, "this call had not begun");
	fake_expect(&second, 0, "This work was cut off");
	AUTO_FREE char *count = read_worktree("worktree/count.txt");
	assert_string_equal(count, "one\ntwo\n"); /* nothing ran twice */
	AUTO_FREE char *never = rig_path("worktree/never.txt");
	assert_false(file_exists(never));
	/* Its own count: the calls of both lives. */
	assert_true(json_i64(second.report, "tool_calls", 0) == 5);
	assert_int_equal(json_i64(second.result_body, "rounds", 0), 4);
	assert_true(rig_transcript_has("\"type\":\"resume\""));
	struct conversation c;
	rig_load(&c);
	conversation_release(&c);
	fake_release(&first);
	fake_release(&second);
}

static void killed_in_a_tool_openai(void **state)
{
	check_killed_in_a_tool("openai");
}

static void killed_in_a_tool_anthropic(void **state)
{
	check_killed_in_a_tool("anthropic");
}

/* W11: a model that binds thinking to its prefix refuses for ever what another model has signed. */
static void thinking_of_another_model_is_left_out(void **state)
{
	static const struct fake_step script[] = {
		{.thinking = "THOUGHT", .calls = "a1 read {\"path\":\"AGENTS.md\"}"},
		{.calls = "b1 shell {\"command\":\"touch started; sleep 300\"}"},
	};
	static const char *const settings[] = {
		"{\"resume\":true,\"model\":{\"preserved_thinking\":true}}",
		"{\"resume\":true,\"model\":{\"preserved_thinking\":true,\"name\":\"another\"}}"};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		struct fake_parent first = {.pid = 0}, second = {.pid = 0};
		AUTO_FREE char *mark = rig_path("worktree/started");
		AUTO_FREE char *transcript = rig_path("generation/transcript.jsonl");

		unlink(mark);
		unlink(transcript);
		live_and_die(&first, "anthropic", script, ARRAY_SIZE(script));
		rig_run(&second, "anthropic", report_only, ARRAY_SIZE(report_only), settings[i]);
		assert_string_equal(second.result, "done");
		assert_true((strstr(buf_str(&second.requests[0]), "THOUGHT") != NULL) == (i == 0));
		fake_release(&first);
		fake_release(&second);
	}
}

/* ---- power cuts: what was not synced is gone ---- */

static void rewrite_transcript(bool (*keep)(const char *line, size_t n), const char *tail)
{
	AUTO_FREE char *path = rig_path("generation/transcript.jsonl");
	AUTO_BUF struct buf bytes = BUF_INIT, out = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 64 << 20, &bytes, NULL), 0);
	for (const char *line = buf_str(&bytes), *lf; (lf = strchr(line, '\n')); line = lf + 1)
		if (keep(line, (size_t)(lf - line)))
			buf_add(&out, line, (size_t)(lf + 1 - line));
	buf_adds(&out, tail);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, NULL), 0);
}

static bool is_no_end(const char *line, size_t n)
{
	return !memmem(line, n, "\"type\":\"tool_ended\"", 19);
}

/* Without the records of ends the first call is the one in doubt, and its file tells. A torn last line is skipped. */
static void power_cut_takes_the_ends(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 write {\"path\":\"a.txt\",\"content\":\"hello\\n\"}\n"
			  "c2 shell {\"command\":\"touch started; sleep 300\"}"},
	};
	struct fake_parent first = {.pid = 0}, second = {.pid = 0};

	live_and_die(&first, "openai", script, 1);
	rewrite_transcript(is_no_end, "{\"t\":\"2026-11-30T00:00:00.000Z\",\"type\":\"mess");
	go_on(&second, "openai");
	fake_expect(&second, 0, "'a.txt' holds the new text: the call took effect");
	fake_expect(&second, 0, "this call had not begun");
	assert_true(rig_transcript_has("\"bad_lines\":1"));
	fake_release(&first);
	fake_release(&second);
}

static bool is_no_message(const char *line, size_t n)
{
	return !memmem(line, n, "\"type\":\"message\"", 16);
}

/* Nothing was on disk: the generation begins as a new one. */
static void power_cut_takes_everything(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"touch started; sleep 300\"}"}};
	struct fake_parent first = {.pid = 0}, second = {.pid = 0};

	live_and_die(&first, "openai", script, 1);
	rewrite_transcript(is_no_message, "");
	go_on(&second, "openai");
	fake_expect(&second, 0, "Fix the test.");
	fake_expect_not(&second, 0, "This work was cut off");
	fake_release(&first);
	fake_release(&second);
}

/* ---- other moments ---- */

static void kill_at_second_request(struct fake_parent *p, size_t index)
{
	if (index == 1)
		kill(p->pid, SIGKILL);
}

/* Until the clock of file times, which stands some milliseconds behind, has passed what was written so far. */
static void wait_for_file_clock(void)
{
	int64_t now = clock_wall_ms(), there = 0;

	while (there <= now) {
		struct timespec tick;
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &tick), 0);
		there = (int64_t)tick.tv_sec * 1000 + tick.tv_nsec / 1000000;
	}
}

/* With all results on record the request is made once more, and the changed file is named (T8). */
static void killed_while_the_model_thinks(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 write {\"path\":\"a.txt\",\"content\":\"hello\\n\"}"},
		{.text = "never said"},
	};
	struct fake_parent first = {.on_request = kill_at_second_request}, second = {.pid = 0};
	AUTO_FREE char *path = rig_path("worktree/a.txt");

	rig_run(&first, "openai", script, ARRAY_SIZE(script), NULL);
	assert_int_equal(first.status, -SIGKILL);
	wait_for_file_clock();
	assert_int_equal(file_write_atomic(AT_FDCWD, path, "other\n", 6, 0600, NULL), 0);
	go_on(&second, "openai");
	expect_prefix(&first.requests[1], &second.requests[0]);
	fake_expect(&second, 0, "not as they were then");
	fake_expect(&second, 0, "- a.txt");
	fake_release(&first);
	fake_release(&second);
}

static void kill_when_reported(struct fake_parent *p)
{
	if (p->report)
		kill(p->pid, SIGKILL);
}

/* The report was sent and its answer never came: the same key again, and no request. */
static void an_open_report_is_sent_again(void **state)
{
	struct fake_parent first = {.mute_reports = true, .on_tick = kill_when_reported};
	struct fake_parent second = {.pid = 0};

	rig_run(&first, "openai", report_only, 1, NULL);
	assert_int_equal(first.status, -SIGKILL);
	rig_run(&second, "openai", NULL, 0, AGAIN);
	assert_string_equal(second.result, "done");
	assert_string_equal(second.report_call, first.report_call);
	assert_int_equal(second.n_requests, 0);
	fake_release(&first);
	fake_release(&second);
}

/* A third life tells of itself, and what the parent found out is said. */
static void resumed_twice(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"touch started; sleep 300\"}"}};
	static const struct fake_step more[] = {
		{.calls = "d1 shell {\"command\":\"touch started; sleep 300\"}"}};
	struct fake_parent first = {.pid = 0}, second = {.on_tick = kill_when_started};
	struct fake_parent third = {.pid = 0};
	AUTO_FREE char *mark = rig_path("worktree/started");

	live_and_die(&first, "anthropic", script, 1);
	assert_int_equal(unlink(mark), 0);
	rig_run(&second, "anthropic", more, 1, AGAIN);
	assert_int_equal(second.status, -SIGKILL);
	rig_run(&third, "anthropic", report_only, 1,
		"{\"resume\":true,\"resume_note\":\"The worktree was made again.\"}");
	assert_string_equal(third.result, "done");
	fake_expect(&third, 0, "The worktree was made again.");
	fake_expect(&third, 0, "d1");
	fake_release(&first);
	fake_release(&second);
	fake_release(&third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(killed_in_a_tool_openai),
		WITH_FOLDER(killed_in_a_tool_anthropic),
		WITH_FOLDER(thinking_of_another_model_is_left_out),
		WITH_FOLDER(power_cut_takes_the_ends),
		WITH_FOLDER(power_cut_takes_everything),
		WITH_FOLDER(killed_while_the_model_thinks),
		WITH_FOLDER(an_open_report_is_sent_again),
		WITH_FOLDER(resumed_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
