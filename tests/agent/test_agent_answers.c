/*
 * test_agent_answers.c - limits of a conversation, and answers that are not as they should be.
 *
 * The agent runs in a process of its own, against a parent that answers from a script.
 */
#include "agent_rig.h"

#include <fcntl.h>

#include "base/file.h"

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
	assert_string_equal(json_str(rig_report(&p), "summary", ""), "The test passes.");
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
	assert_true(json_flag(rig_report(&p), "by_rule", false));
	assert_non_null(strstr(json_str(rig_report(&p), "summary", ""), "exit code 0"));
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
	AUTO_FREE char *path = rig_path("worktree/big.txt");
	AUTO_BUF struct buf big = BUF_INIT;

	for (int i = 0; i < 1900; i++)
		buf_addf(&big, "int value_%d = %d; /* the line with the number %d */\n", i, i * 3,
			 i);
	assert_int_equal(file_write_atomic(AT_FDCWD, path, big.data, big.len, 0600, NULL), 0);
	RUN(&p, script, NULL);
	assert_string_equal(p.result, "limit");
	fake_expect(&p, 1, "offset and limit");
	fake_expect(&p, 1, "context window is nearly full");
	assert_string_equal(json_str(rig_report(&p), "summary", ""), "The test passes.");
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

/* Trap 144: the disk is full. The agent stops, says where, and leaves no half record. */
static void trap_144_full_disk(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"seq 1 1500\"}"},
		{.calls = "c2 shell {\"command\":\"seq 1 1500\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.file_limit = 13000};
	struct conversation c;

	RUN(&p, script, NULL);
	assert_int_equal(p.status, 0);
	assert_string_equal(p.result, "failed");
	assert_non_null(strstr(p.reason, "no space on '"));
	assert_non_null(strstr(p.reason, "transcript.jsonl"));
	rig_load_repaired(&c);
	conversation_release(&c);
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
	assert_true(json_flag(rig_report(&p), "by_rule", false)); /* its work is not lost */
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
	AUTO_FREE char *first = rig_path("worktree/first.txt");
	AUTO_FREE char *cut = rig_path("worktree/cut.txt");

	rig_run(&p, api, script, ARRAY_SIZE(script), NULL);
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

/* W6: a request without input does not exist, so a server that counts 0 has said nothing; else
 * budgets would never be reached. */
static void a_usage_of_nothing_is_estimated(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL, .input = FAKE_ZERO}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, NULL);
	assert_string_equal(p.result, "done");
	assert_int_equal(p.usages, 1);
	assert_int_equal(p.estimated_usages, 1);
	fake_release(&p);
}

/* --effort where the model takes a number of tokens. */
static void effort_becomes_a_thinking_budget(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script,
	    "{\"model\":{\"reasoning\":\"budget\"},\"role\":{\"effort\":\"medium\",\"max_output\":"
	    "8000}}");
	fake_expect(&p, 0, "\"budget_tokens\":4000");
	assert_string_equal(p.result, "done");
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
	AUTO_FREE char *path = rig_path("worktree/n");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(w8_max_rounds),
		WITH_FOLDER(i3_blocking_limit),
		WITH_FOLDER(w7_near_the_limit),
		WITH_FOLDER(trap_86_no_request_above_the_window),
		WITH_FOLDER(trap_144_full_disk),
		WITH_FOLDER(trap_28_blank_answers),
		WITH_FOLDER(blank_answers_in_a_row_fail),
		WITH_FOLDER(trap_154_loop),
		WITH_FOLDER(trap_37_cut_call),
		WITH_FOLDER(trap_37_cut_call_openai),
		WITH_FOLDER(cut_text_goes_on),
		WITH_FOLDER(trap_60_broken_stream),
		WITH_FOLDER(a_usage_of_nothing_is_estimated),
		WITH_FOLDER(effort_becomes_a_thinking_budget),
		WITH_FOLDER(broken_streams_end),
		WITH_FOLDER(again_sends_the_same_body),
		WITH_FOLDER(failed_calls_carry_their_class),
		WITH_FOLDER(refusal_ends_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
