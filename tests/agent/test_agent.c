/*
 * test_agent.c - a whole agent in its own process, against a parent that answers from a script.
 */
#include "agent_fixture.h"
#include "fake_parent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "agent/transcript.h"
#include "agent/validate.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define REPORT_CALL                                                                                \
	"r1 report {\"status\":\"done\",\"summary\":\"The test "                                   \
	"passes.\",\"changed_files\":[\"a.txt\"]}"

static char *folder;

static int setup(void **state)
{
	AUTO_FREE char *worktree = NULL;

	folder = fixture_folder();
	worktree = file_join(folder, "worktree");
	return file_mkdirs(worktree, 0700, NULL);
}

static int teardown(void **state)
{
	fixture_remove(folder);
	return 0;
}

/* Runs a script to the agent's end. */
static void run(struct fake_parent *p, const char *api, const struct fake_step *script, size_t n,
		const char *members)
{
	AUTO_FREE char *document = fixture_start(folder, api, members);

	p->api = api;
	p->script = script;
	p->n_script = n;
	fake_start(p, document);
	fake_run(p);
	assert_true(p->hello);
}

#define RUN(p, script, members) run(p, "anthropic", script, ARRAY_SIZE(script), members)

static struct json_object *report_of(const struct fake_parent *p)
{
	assert_non_null(p->report);
	return json_obj(p->report, "report");
}

static void load_transcript(struct conversation *c)
{
	AUTO_FREE char *path = file_join(folder, "generation/transcript.jsonl");
	struct transcript_stats stats;
	struct err e = ERR_INIT;

	conversation_init(c);
	if (transcript_load(path, c, &stats, &e) < 0)
		fail_msg("%s", e.message);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(validate_all(c->messages, c->n, NULL), 0);
}

static bool transcript_has(const char *text)
{
	AUTO_FREE char *path = file_join(folder, "generation/transcript.jsonl");
	AUTO_BUF struct buf bytes = BUF_INIT;

	assert_int_equal(file_read(AT_FDCWD, path, 64 << 20, &bytes, NULL), 0);
	return strstr(buf_str(&bytes), text) != NULL;
}

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
	AUTO_FREE char *path = file_join(folder, "worktree/a.txt");
	struct conversation c;

	run(&p, api, whole_run, ARRAY_SIZE(whole_run), NULL);
	assert_int_equal(p.status, 0);
	assert_string_equal(p.result, "done");
	assert_true(file_exists(path));
	fake_expect(&p, 0, "Fix the test.");
	fake_expect(&p, 0, "Use tabs.");
	fake_expect_not(&p, 0, folder); /* no absolute path, no agent id (W11) */
	fake_expect_not(&p, 0, "\"a1\"");
	fake_expect(&p, 1, "hello");
	assert_string_equal(json_str(report_of(&p), "summary", ""), "The test passes.");
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
	load_transcript(&c);
	assert_int_equal(c.n, 5); /* opening, answer, results, answer, result of the report */
	conversation_release(&c);
	assert_true(transcript_has("\"type\":\"end\",\"status\":\"done\""));
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

	run(&p, "openai", script, ARRAY_SIZE(script), NULL);
	for (size_t i = 0; i + 1 < p.n_requests; i++) {
		const char *a = strstr(buf_str(&p.requests[i]), "\"messages\":[");
		const char *b = strstr(buf_str(&p.requests[i + 1]), "\"messages\":[");
		const char *last = strrchr(a, ']');

		assert_memory_equal(a, b, (size_t)(last - a) - 1);
	}
	fake_release(&p);
}

/* ---- stop, death, interruption ---- */

static void stop_at_request(struct fake_parent *p, size_t index)
{
	fake_control(p, "stop", "the user wants it");
}

static void stop_in_mid_stream(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_STALL, .text = "A long answer that stops"}};
	struct fake_parent p = {.on_request = stop_at_request};

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
	AUTO_FREE char *path = file_join(folder, name);
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
	AUTO_FREE char *never = file_join(folder, "worktree/never.txt");
	struct conversation c;
	const struct block *first, *second;

	RUN(&p, slow_tool, NULL);
	assert_string_equal(p.result, "stopped");
	assert_true(is_gone(read_pid("worktree/pid")));
	assert_true(is_gone(read_pid("worktree/pid2")));
	assert_false(file_exists(never));
	load_transcript(&c);
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
	AUTO_FREE char *document = fixture_start(folder, "anthropic", NULL);
	struct conversation c;

	fake_start(&p, document);
	while (!p.closed)
		fake_serve(&p);
	fake_die(&p);
	assert_int_equal(p.status, 1);
	assert_true(is_gone(read_pid("worktree/pid")));
	assert_true(is_gone(read_pid("worktree/pid2")));
	load_transcript(&c);
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
	assert_string_equal(json_str(report_of(&p), "summary", ""), "The test passes.");
	fake_release(&p);
}

static void forced_and_still_no_report(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"true\"}"},
		{.calls = "c2 shell {\"command\":\"touch never.txt\"}", .text = "One more look."},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *never = file_join(folder, "worktree/never.txt");

	RUN(&p, script, "{\"role\":{\"max_rounds\":1}}");
	assert_false(file_exists(never));
	assert_string_equal(p.result, "limit");
	assert_true(json_flag(report_of(&p), "by_rule", false));
	assert_string_equal(json_str(report_of(&p), "status", ""), "partial");
	fake_release(&p);
}

static void term_is_a_stop(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_STALL, .text = "An answer, in part"}};
	AUTO_FREE char *document = fixture_start(folder, "anthropic", NULL);
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

		run(&p, "anthropic", NULL, 0, cases[i].members);
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
	run(&p, "anthropic", NULL, 0, members);
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

/* ---- limits ---- */

static void w8_max_rounds(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"echo 1\"}"},
		{.calls = "c2 shell {\"command\":\"echo 2\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{\"role\":{\"max_rounds\":2}}");
	assert_int_equal(p.n_requests, 3);
	fake_expect_not(&p, 1, "limit of 2 rounds");
	fake_expect(&p, 2, "limit of 2 rounds");
	assert_string_equal(p.result, "limit");
	assert_non_null(strstr(p.reason, "2 rounds"));
	assert_string_equal(json_str(report_of(&p), "summary", ""), "The test passes.");
	fake_release(&p);
}

/* W2, I3: usage jumps over the blocking limit: no further request, and a report from the records.
 */
static void i3_blocking_limit(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"echo seen\"}", .input = 179000},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_int_equal(p.n_requests, 1);
	assert_string_equal(p.result, "limit");
	assert_string_equal(json_str(p.result_body, "class", ""), "overflow");
	assert_true(json_flag(report_of(&p), "by_rule", false));
	assert_non_null(strstr(json_str(report_of(&p), "summary", ""), "exit code 0"));
	fake_release(&p);
}

/* Near the limit the model is asked to report while that still fits; results are cut to it (W7). */
static void w7_near_the_limit(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"seq 1 40000\"}\nc2 read {\"path\":\"big.txt\"}",
		 .input = 165000},
		{.calls = REPORT_CALL, .input = 172000},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = file_join(folder, "worktree/big.txt");
	AUTO_BUF struct buf big = BUF_INIT;

	for (int i = 0; i < 1900; i++)
		buf_addf(&big, "int value_%d = %d; /* the line with the number %d */\n", i, i * 3,
			 i);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, big.data, big.len, 0600, NULL), 0);
	RUN(&p, script, NULL);
	assert_string_equal(p.result, "limit");
	fake_expect(&p, 1, "offset and limit");
	fake_expect(&p, 1, "context window is nearly full");
	assert_string_equal(json_str(report_of(&p), "summary", ""), "The test passes.");
	assert_true(fake_event_seen(&p, "warning", "tokens of the context"));
	fake_release(&p);
}

/* Trap 86: window 32,768, dense text: by a counter of 1.5 characters a token no request is above
 * it. */
static void trap_86_no_request_above_the_window(void **state)
{
	struct fake_step script[30];
	struct fake_parent p = {.pid = 0};

	for (size_t i = 0; i < ARRAY_SIZE(script); i++)
		script[i] = (struct fake_step){
			.calls = mem_printf("c%zu shell {\"command\":\"head -c 6000 /dev/urandom | "
					    "od -An -vtx1 | tr -d ' \\\\n'; echo %zu\"}",
					    i, i),
			.input = -1,
		};
	/* Usage is not told: the ledger has nothing but its own estimate. */
	RUN(&p, script, "{\"model\":{\"window\":32768,\"max_output\":8192}}");
	assert_string_equal(p.result, "limit");
	assert_true(p.n_requests >= 3);
	for (size_t i = 0; i < p.n_requests; i++) {
		AUTO_JSON struct json_object *body = NULL;

		assert_int_equal(json_parse(p.requests[i].data, p.requests[i].len, &body, NULL), 0);
		assert_true((int64_t)(p.requests[i].len * 2 / 3) +
				    json_i64(body, "max_tokens", 0) <=
			    32768);
	}
	for (size_t i = 0; i < ARRAY_SIZE(script); i++)
		free((char *)script[i].calls);
	fake_release(&p);
}

/* ---- answers that are not as they should be ---- */

/* Traps 26, 28: thinking alone, or nothing at all, is an empty answer; it is never sent back. */
static void trap_28_blank_answers(void **state)
{
	static const struct fake_step script[] = {
		{.thinking = "hm"},
		{.text = NULL},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 1, "Your last answer was empty");
	fake_expect_not(&p, 1, "\"assistant\"");
	fake_expect_not(&p, 2, "\"text\":\"\"");
	fake_release(&p);
}

static void blank_answers_in_a_row_fail(void **state)
{
	static const struct fake_step script[] = {
		{.text = NULL}, {.text = " \n"}, {.thinking = "hm"}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "3 empty answers"));
	fake_release(&p);
}

/* X13, trap 154 */
static void trap_154_loop(void **state)
{
	struct fake_step script[5];
	struct fake_parent p = {.pid = 0};

	for (size_t i = 0; i < ARRAY_SIZE(script); i++)
		script[i] = (struct fake_step){
			.calls = mem_printf("c%zu shell {\"command\":\"echo same\"}", i)};
	RUN(&p, script, NULL);
	assert_int_equal(p.n_requests, 5);
	fake_expect_not(&p, 2, "the same result");
	fake_expect(&p, 3, "the same result 3 times");
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "5 times"));
	assert_true(json_flag(report_of(&p), "by_rule", false)); /* its work is not lost */
	for (size_t i = 0; i < ARRAY_SIZE(script); i++)
		free((char *)script[i].calls);
	fake_release(&p);
}

/* Trap 37: a call that the limit cut is not run, even if its arguments look whole. */
static void check_cut_call(const char *api, const char *stop)
{
	struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"touch first.txt\"}\n"
			  "c2 write {\"path\":\"cut.txt\",\"content\":\"part\"}",
		 .stop = stop},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *first = file_join(folder, "worktree/first.txt");
	AUTO_FREE char *cut = file_join(folder, "worktree/cut.txt");

	run(&p, api, script, ARRAY_SIZE(script), NULL);
	assert_true(file_exists(first));
	assert_false(file_exists(cut));
	fake_expect(&p, 1, "smaller parts");
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void trap_37_cut_call(void **state)
{
	check_cut_call("anthropic", "max_tokens");
}

static void trap_37_cut_call_openai(void **state)
{
	check_cut_call("openai", "length");
}

static void cut_text_goes_on(void **state)
{
	static const struct fake_step script[] = {
		{.text = "It begins", .stop = "max_tokens"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	fake_expect(&p, 1, "cut at the output limit");
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

/* Trap 60: the stream ends before its stop reason: asked for again, nothing of it is kept. */
static void trap_60_broken_stream(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_CUT, .text = "half", .calls = "c1 shell {\"command\":\"touch x\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_int_equal(p.n_requests, 2);
	assert_int_equal(p.requests[0].len, p.requests[1].len);
	assert_memory_equal(p.requests[0].data, p.requests[1].data, p.requests[0].len);
	assert_string_equal(p.result, "done");
	assert_int_equal(json_i64(p.result_body, "rounds", 0), 1);
	assert_true(fake_event_seen(&p, "retry", "\"attempt\":2"));
	assert_int_equal(p.usages, 2);
	assert_int_equal(p.estimated_usages, 1);
	fake_release(&p);
}

static void broken_streams_end(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_CUT, .text = "a"},
		{.kind = FAKE_CUT, .text = "b"},
		{.kind = FAKE_CUT, .text = "c"},
		{.kind = FAKE_CUT, .text = "d"},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_int_equal(p.n_requests, 4);
	assert_string_equal(p.result, "failed");
	assert_string_equal(json_str(p.result_body, "class", ""), "network");
	fake_release(&p);
}

static void again_sends_the_same_body(void **state)
{
	static const struct fake_step script[] = {
		{.kind = FAKE_AGAIN,
		 .text = "I am",
		 .calls = "c1 shell {\"command\":\"echo x >> n\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = file_join(folder, "worktree/n");
	AUTO_BUF struct buf text = BUF_INIT;

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "done");
	assert_int_equal(file_read(AT_FDCWD, path, 100, &text, NULL), 0);
	assert_string_equal(buf_str(&text), "x\n"); /* once */
	assert_true(fake_event_seen(&p, "retry", "cut"));
	fake_release(&p);
}

static void failed_calls_carry_their_class(void **state)
{
	static const struct {
		const char *class, *status;
		bool report;
	} cases[] = {
		{"authentication", "failed", false},
		{"overflow", "limit", true},
		{"budget", "limit", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = i ? cases[i].class : call_class_name(CALL_AUTH);
		struct fake_step script[] = {{.kind = FAKE_FAIL, .text = name}};
		struct fake_parent p = {.pid = 0};

		RUN(&p, script, NULL);
		assert_string_equal(p.result, cases[i].status);
		assert_string_equal(json_str(p.result_body, "class", ""), name);
		assert_non_null(strstr(p.reason, "the server says no"));
		assert_int_equal(p.report != NULL, cases[i].report);
		fake_release(&p);
	}
}

static void refusal_ends_with_the_reason(void **state)
{
	static const struct fake_step script[] = {{.text = "I cannot", .stop = "refusal"}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "failed");
	assert_string_equal(json_str(p.result_body, "class", ""), call_class_name(CALL_REFUSED));
	assert_non_null(strstr(p.reason, "declined"));
	fake_release(&p);
}

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
	AUTO_FREE char *path = file_join(folder, "worktree/a.txt");

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
	AUTO_FREE char *go = file_join(folder, "worktree/go");
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
	assert_string_equal(json_str(report_of(&p), "summary", ""), "At last.");
	assert_false(json_flag(report_of(&p), "by_rule", false));
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
	assert_true(json_flag(report_of(&p), "by_rule", false));
	assert_non_null(strstr(json_str(report_of(&p), "summary", ""), "What I did."));
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
	assert_int_equal(json_i64(json_obj(report_of(&p), "data"), "score", 0), 7);
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
	assert_true(json_flag(report_of(&p), "by_rule", false));
	assert_string_equal(json_str(report_of(&p), "status", ""), "partial");
	assert_non_null(strstr(json_str(report_of(&p), "summary", ""), "The answer is 42"));
	assert_string_equal(p.result, "done");
	fake_release(&p);
}

static void report_runs_last_wherever_it_stands(void **state)
{
	static const struct fake_step script[] = {
		{.calls = REPORT_CALL "\nc2 shell {\"command\":\"echo x > after.txt\"}"},
	};
	struct fake_parent p = {.pid = 0};
	AUTO_FREE char *path = file_join(folder, "worktree/after.txt");

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
	AUTO_FREE char *path = file_join(folder, "generation/report.json");
	AUTO_BUF struct buf call = BUF_INIT;
	struct fake_step script[1] = {{.text = NULL}};

	buf_adds(&call, "r1 report {\"status\":\"done\",\"summary\":\"START ");
	for (int i = 0; i < 3000; i++)
		buf_addf(&call, "word%d ", i);
	buf_adds(&call, "VERDICT\"}");
	script[0].calls = call.data;
	RUN(&p, script, "{\"limits\":{\"report_tokens\":500}}");
	assert_true(json_flag(report_of(&p), "truncated", false));
	assert_non_null(strstr(json_str(report_of(&p), "summary", ""), "START"));
	assert_non_null(strstr(json_str(report_of(&p), "summary", ""), "VERDICT"));
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
	struct fake_parent p = {.mute_reports = true, .on_request = stop_at_request};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "stopped");
	fake_release(&p);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
		WITH_FOLDER(w8_max_rounds),
		WITH_FOLDER(i3_blocking_limit),
		WITH_FOLDER(w7_near_the_limit),
		WITH_FOLDER(trap_86_no_request_above_the_window),
		WITH_FOLDER(trap_28_blank_answers),
		WITH_FOLDER(blank_answers_in_a_row_fail),
		WITH_FOLDER(trap_154_loop),
		WITH_FOLDER(trap_37_cut_call),
		WITH_FOLDER(trap_37_cut_call_openai),
		WITH_FOLDER(cut_text_goes_on),
		WITH_FOLDER(trap_60_broken_stream),
		WITH_FOLDER(broken_streams_end),
		WITH_FOLDER(again_sends_the_same_body),
		WITH_FOLDER(failed_calls_carry_their_class),
		WITH_FOLDER(refusal_ends_with_the_reason),
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
