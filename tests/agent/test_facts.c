/*
 * test_facts.c - R3, H21: what happened is read off calls and results, and comes back without a model.
 */
#include "agent_fixture.h"

#include <stdio.h>
#include <string.h>

#include "agent/context/facts.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static struct conversation conversation;
static struct facts facts;

static int setup(void **state)
{
	conversation_init(&conversation);
	facts = (struct facts){.files = NULL};
	return 0;
}

static int teardown(void **state)
{
	facts_release(&facts);
	conversation_release(&conversation);
	return 0;
}

/* One round: text, one call with one argument, its result. */
static void round_of(const char *text, const char *tool, const char *key, const char *value,
		     const char *result, bool is_error)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT), *user = message_new(MESSAGE_USER);
	AUTO_JSON struct json_object *input = json_object_new_object();
	AUTO_BUF struct buf arguments = BUF_INIT;

	json_set_str(input, key, value);
	json_write(&arguments, input);
	if (text)
		message_add_text(answer, ORIGIN_MODEL, text, strlen(text));
	message_add_call(answer, "c1", tool, arguments.data, arguments.len, NULL);
	message_add_result(user, "c1", tool, result, strlen(result), is_error);
	conversation_next_round(&conversation);
	conversation_append(&conversation, answer);
	conversation_append(&conversation, user);
}

static void shell(const char *command, const char *result)
{
	round_of(NULL, "shell", "command", command, result, text_starts(result, "exit code"));
}

/* What is written, in a static buffer. */
static const char *written(int64_t tokens)
{
	static struct buf out = BUF_INIT;
	struct facts_spec spec = {.tokens = tokens};

	facts_take(&facts, &conversation);
	buf_clear(&out);
	facts_write(&facts, &spec, &out);
	facts_write_sayings(&facts, &spec, &out);
	return buf_str(&out);
}

static void expect(const char *text)
{
	const char *all = written(2000);

	if (!strstr(all, text))
		fail_msg("'%s' is not in:\n%s", text, all);
}

static void expect_not(const char *text)
{
	const char *all = written(2000);

	if (strstr(all, text))
		fail_msg("'%s' is in:\n%s", text, all);
}

static void r3_nothing_happened_nothing_is_written(void **state)
{
	assert_string_equal(written(2000), "");
}

static void r3_a_failure_stays_until_it_passes(void **state)
{
	shell("make check",
	      "exit code 2\ntest_a: ok\ntest_b FAILED: got 3\n1\n2\n3\n4\n5\nmake: Error 2\n");
	expect("Failed when they last ran");
	expect("`make check` (exit code 2, round 1)");
	expect("    test_b FAILED: got 3");
	expect("    make: Error 2");
	expect_not("test_a: ok");
	shell("make check", "all passed\n");
	expect_not("Failed when they last ran");
	expect_not("test_b FAILED");
	expect("`make check` (exit code 0, round 2, run 2 times)");
}

/* Looking is no fact, and "no match" is no failure. */
static void r3_commands_that_only_look_are_left_out(void **state)
{
	shell("grep -rn foo src", "exit code 1\n");
	shell("cd src && git log --oneline | head -5; ls", "abc\n");
	shell("cat a.c | sort", "abc\n");
	assert_string_equal(written(2000), "");
	shell("git log | tee log.txt > copy.txt", "");
	shell("sed -i s/a/b/ a.c", "");
	shell("cat a.c && make", "");
	shell("git commit -m x", "");
	expect("`git log | tee");
	expect("`sed -i");
	expect("`cat a.c && make`");
	expect("`git commit");
}

static void r3_a_command_that_was_not_run_is_no_fact(void **state)
{
	round_of(NULL, "shell", "command", "make install",
		 "Not run: only report may be called now.", true);
	assert_string_equal(written(2000), "");
}

static void r3_files(void **state)
{
	round_of(NULL, "read", "path", "src/only_read.c", "     1\tx", false);
	round_of(NULL, "edit", "path", "src/changed.c", "edited src/changed.c", false);
	round_of(NULL, "read", "path", "src/changed.c", "     1\tx", false);
	round_of(NULL, "edit", "path", "src/refused.c", "old_string was not found", true);
	expect("Files changed:\n- src/changed.c (round 3)\n");
	expect("Files read:\n- src/only_read.c (round 1)\n");
	expect_not("src/refused.c");
}

static void r3_the_next_step_is_the_last_one_that_was_announced(void **state)
{
	round_of("Next: run `make one`.", "read", "path", "a.c", "x", false);
	round_of("Reading b.c next.", "read", "path", "b.c", "x", false);
	expect("make one");
	round_of("That works. The next step is the guard in close(),\nthen `make two`.", "read",
		 "path", "b.c", "x", false);
	expect("- round 3: The next step is the guard in close(), then `make two`.");
	expect_not("make one");
	round_of("接下来删掉释放，再运行 `make three`。", "read", "path", "b.c", "x", false);
	expect("make three");
	expect_not("make two");
}

static void r3_decisions_and_what_was_ruled_out(void **state)
{
	round_of("The cause is the lock. Decision: no lock, since the handler spins. Rejected: "
		 "masking.",
		 "read", "path", "a.c", "x", false);
	round_of("放弃的方案：引用计数，因为中断里不能做原子加。", "read", "path", "a.c", "x",
		 false);
	expect("Decision: no lock, since the handler spins.");
	expect("Rejected: masking.");
	expect("放弃的方案：引用计数");
	expect_not("The cause is the lock");
}

/* The newest and the named stay; it is never more than was asked for. */
static void r3_bounded_in_tokens(void **state)
{
	for (int i = 0; i < 300; i++) {
		AUTO_FREE char *command =
			mem_printf("./tool-%d --check part/%d of %d", i, i * 7919, i * i);
		AUTO_FREE char *path = mem_printf("src/module_%d/file_%d.c", i, i * i);

		shell(command, i % 3 ? "done\n" : "exit code 1\nError: broken\n");
		round_of(NULL, "write", "path", path, "created", false);
	}
	assert_true(strlen(written(400)) < 400 * 4 + 500);
	assert_non_null(strstr(written(400), "./tool-297 ")); /* the newest failure */
	assert_non_null(strstr(written(400), "src/module_299/"));
	assert_null(strstr(written(400), "./tool-3 "));
}

/* Each message is looked at once, also when answer and result come in two parts. */
static void r3_taken_in_parts(void **state)
{
	struct message *answer = message_new(MESSAGE_ASSISTANT), *user = message_new(MESSAGE_USER);

	message_add_call(answer, "x", "shell", "{\"command\":\"make\"}", 18, NULL);
	message_add_result(user, "x", "shell", "exit code 3\nboom", 16, true);
	conversation_append(&conversation, answer);
	facts_take(&facts, &conversation);
	conversation_append(&conversation, user);
	facts_take(&facts, &conversation);
	facts_take(&facts, &conversation);
	assert_int_equal(facts.n_commands, 1);
	assert_int_equal(facts.commands[0].times, 1);
	assert_int_equal(facts.commands[0].exit_code, 3);
}

/* H21: names of which a lazy summary says nothing. */
static void h21_functions_that_were_spoken_of(void **state)
{
	round_of("while (1) is in ring_level() and not in Ring.popReady(now) or a word (aside).",
		 "read", "path", "a.c", "unspoken_of(1)", false);
	expect("Functions spoken of: ring_level popReady");
	expect_not("unspoken_of");
	expect_not("while");
	expect_not("word");
}

static void h21_identifiers_that_a_result_shows(void **state)
{
	shell("./trace", "board SN-7QF2-00418 digest=sha256:7be1d0a4c2 at 2024-05-17T01:12:09Z, "
			 "x86_64-linux-gnu 0x7fff12345678 commit 45a970fb f(pin_1234_init(x))");
	expect("Identifiers seen: SN-7QF2-00418 sha256:7be1d0a4c2\n");
}

/* A log has one in each line: it can be looked up there. */
static void h21_a_line_full_of_identifiers_is_a_log(void **state)
{
	shell("cat log", "req-10001 a\nreq-10002 b\nreq-10003 c\nreq-10004 d\nreq-10005 e\n");
	expect_not("Identifiers");
	shell("./ask", "req-10006");
	expect("Identifiers seen: req-10006");
}

static void h21_names_are_bounded(void **state)
{
	char text[64];

	shell("make check", "ok");
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "ticket CASE-%05d", i);
		shell("./ask", text);
	}
	facts_take(&facts, &conversation);
	assert_true(facts.n_names <= 200);
	expect("CASE-00999");
	expect_not("CASE-00500");
	assert_true(strlen(written(400)) < 400 * 4);
	expect("`make check`");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(r3_nothing_happened_nothing_is_written),
		TEST(r3_a_failure_stays_until_it_passes),
		TEST(r3_commands_that_only_look_are_left_out),
		TEST(r3_a_command_that_was_not_run_is_no_fact),
		TEST(r3_files),
		TEST(r3_the_next_step_is_the_last_one_that_was_announced),
		TEST(r3_decisions_and_what_was_ruled_out),
		TEST(r3_bounded_in_tokens),
		TEST(h21_functions_that_were_spoken_of),
		TEST(h21_identifiers_that_a_result_shows),
		TEST(h21_a_line_full_of_identifiers_is_a_log),
		TEST(h21_names_are_bounded),
		TEST(r3_taken_in_parts),
	};
	return cmocka_run_group_tests_name("agent/facts", tests, NULL, NULL);
}
