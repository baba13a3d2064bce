/*
 * test_handoff_truth.c - what the records answer about a handoff (R4): words of the user, the last calls, git's answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "orchestrator/handoff_truth.h"

struct rig {
	char dir[64];
	struct handoff_records *records;
	struct handoff_truth truth;
};

static int setup(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));

	strncpy(rig->dir, "/tmp/baton-truth-XXXXXX", sizeof(rig->dir) - 1);
	if (!mkdtemp(rig->dir))
		return -1;
	rig->records = handoff_records_new();
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	handoff_records_free(rig->records);
	file_remove_tree(rig->dir, NULL);
	free(rig);
	return 0;
}

static char *put(struct rig *rig, const char *name, const char *text)
{
	char *path = file_join(rig->dir, name);
	struct err err = ERR_INIT;

	if (file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err.message);
	return path;
}

static void expect_said(struct rig *rig, const char *text, enum handoff_answer want)
{
	struct handoff *handoff = handoff_new();
	struct handoff_statement *s =
		handoff_add(handoff, HANDOFF_WORDS, HANDOFF_FROM_USER, text, strlen(text));
	AUTO_BUF struct buf why = BUF_INIT;

	if (rig->truth.said(rig->records, s, &why) != want)
		fail_msg("'%s'", text);
	handoff_free(handoff);
}

/* A sentence counts as a whole: a piece of it may say the opposite. */
static void test_words(void **state)
{
	struct rig *rig = *state;
	AUTO_FREE char *path = put(
		rig, "words.jsonl",
		"{\"type\":\"word\",\"generation\":1,\"uid\":1,\"text\":\"Fix the test.\\nNever "
		"push. Use C, not Rust!\\n\\n"
		"- keep it small\\n\",\"constraints\":[[14,11],[900,2]]}\n"
		"torn\n{\"type\":\"rendered\",\"bytes\":1}\n"
		"{\"type\":\"word\",\"generation\":1,\"uid\":1,\"text\":\"Fix the test.\\nNever "
		"push. Use C, not Rust!\\n\\n"
		"- keep it small\\n\",\"constraints\":[[14,11]]}\n"
		"{\"type\":\"word\",\"generation\":2,\"uid\":9,\"text\":\"?\",\"hex\":\"c3a9ff21\","
		"\"constraints\":[[0,4]]}\n"
		"{\"type\":\"word\",\"generation\":2,\"uid\":10,\"text\":"
		"\"\xe4\xb8\x8d\xe8\xa6\x81\xe6\x8e\xa8\xe9\x80\x81\xe3\x80\x82"
		"\xe7\x94\xa8 C\xe3\x80\x82\"}\n");
	struct err err = ERR_INIT;
	size_t n = 0;

	rig->truth = handoff_records_truth(rig->records);
	expect_said(rig, "Never push.", HANDOFF_UNKNOWN);
	assert_int_equal(handoff_records_words(rig->records, "/nowhere/words.jsonl", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	if (handoff_records_words(rig->records, path, &err) < 0)
		fail_msg("%s", err.message);
	static const char *const yes[] = {"Never push.",
					  "Never push",
					  "Use C, not Rust!",
					  "keep it small",
					  "- keep it small",
					  "Fix the test.",
					  "Never push. Use C, not Rust!",
					  "Fix the test.\nNever push.",
					  "\xc3\xa9\xef\xbf\xbd!",
					  "\xe7\x94\xa8 C"};
	static const char *const no[] = {
		"push",	     "push.",	     "Use C",
		"not Rust!", "Do not push.", "keep it",
		"small",     "never push.",  "\xe8\xa6\x81\xe6\x8e\xa8\xe9\x80\x81\xe3\x80\x82",
		""};
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		expect_said(rig, yes[i], HANDOFF_YES);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		expect_said(rig, no[i], HANDOFF_NO);
	assert_memory_equal(rig->truth.constraint(rig->records, 0, &n), "Never push.", 11);
	assert_int_equal(n, 11);
	assert_memory_equal(rig->truth.constraint(rig->records, 1, &n), "\xc3\xa9\xff!", 4);
	assert_null(rig->truth.constraint(rig->records, 2, &n));
	assert_memory_equal(rig->truth.message(rig->records, 0, &n), "Fix the test.\n", 14);
	assert_non_null(rig->truth.message(rig->records, 2, &n));
	assert_null(rig->truth.message(rig->records, 3, &n));
}

static void expect_recent(struct rig *rig, const char *target, enum handoff_answer want)
{
	if (rig->truth.recent(rig->records, target) != want)
		fail_msg("'%s'", target);
}

static void test_last_calls(void **state)
{
	struct rig *rig = *state;
	AUTO_BUF struct buf text = BUF_INIT;
	struct err err = ERR_INIT;

	for (int i = 1; i <= 22; i++)
		buf_addf(&text,
			 "{\"type\":\"message\",\"role\":\"assistant\",\"blocks\":[{\"kind\":"
			 "\"text\",\"text\":\"said_%d\"},"
			 "{\"kind\":\"tool_call\",\"id\":\"c%d\",\"name\":\"shell\",\"text\":\"{"
			 "\\\"command\\\":\\\"make "
			 "\\\\\\\"t%d\\\\\\\"\\\"}\"}]}\n{\"type\":\"message\",\"role\":\"user\","
			 "\"blocks\":[{\"kind\":"
			 "\"tool_result\",\"id\":\"c%d\",\"text\":\"src/f%d.c failed\"}]}\n",
			 i, i, i, i, i);
	buf_adds(&text, "{\"type\":\"message\",\"blo");
	AUTO_FREE char *path = put(rig, "transcript.jsonl", buf_str(&text));
	rig->truth = handoff_records_truth(rig->records);
	expect_recent(rig, "src/f22.c", HANDOFF_UNKNOWN);
	if (handoff_records_calls(rig->records, path, &err) < 0)
		fail_msg("%s", err.message);
	expect_recent(rig, "src/f22.c", HANDOFF_YES);
	expect_recent(rig, "f3.c", HANDOFF_YES);
	expect_recent(rig, "make \"t22\"", HANDOFF_YES);
	expect_recent(rig, "src/f2.c", HANDOFF_NO); /* the 21st from the end */
	expect_recent(rig, "src/f1.c", HANDOFF_NO);
	expect_recent(rig, "said_22", HANDOFF_NO); /* words are no calls */
	expect_recent(rig, "f22", HANDOFF_YES);
	expect_recent(rig, "ailed", HANDOFF_NO);
}

static enum handoff_answer ask_command(struct rig *rig, const char *command, const char *test,
				       int exit_code)
{
	struct handoff *handoff = handoff_new();
	struct handoff_statement *s =
		handoff_add(handoff, HANDOFF_FAILURES, HANDOFF_FROM_RECORD, "x", 1);
	AUTO_BUF struct buf why = BUF_INIT;

	handoff_set(&s->command, command);
	handoff_set(&s->test, test);
	s->has_exit = exit_code >= 0;
	s->exit_code = exit_code;
	enum handoff_answer answer = rig->truth.command(rig->records, s, &why);
	handoff_free(handoff);
	return answer;
}

static void test_git_and_commands(void **state)
{
	struct rig *rig = *state;
	static const char answer[] =
		"{\"commits\":{\"aa\":\"on\",\"bb\":\"off\",\"cc\":\"none\"},"
		"\"files\":{\"src/a.c\":\"11\",\"gone.c\":\"\",\"link\":null,\"./run.sh\":\"22\"},"
		"\"names\":{\"test_a\":true,\"test_b\":false,\"test_x.py\":false,\"py\":true}}";
	AUTO_JSON struct json_object *git = NULL;
	AUTO_BUF struct buf why = BUF_INIT;
	void *r = rig->records;

	assert_null(handoff_records_truth(rig->records).commit);
	assert_int_equal(json_parse(answer, strlen(answer), &git, NULL), 0);
	handoff_records_git(rig->records, git);
	rig->truth = handoff_records_truth(rig->records);
	assert_int_equal(rig->truth.commit(r, "aa", &why), HANDOFF_YES);
	assert_int_equal(rig->truth.commit(r, "bb", &why), HANDOFF_NO);
	assert_string_equal(buf_str(&why), "is not on the branch");
	assert_int_equal(rig->truth.commit(r, "cc", NULL), HANDOFF_NO);
	assert_int_equal(rig->truth.commit(r, "dd", NULL), HANDOFF_UNKNOWN);
	assert_int_equal(rig->truth.file(r, "src/a.c", NULL, NULL), HANDOFF_YES);
	assert_int_equal(rig->truth.file(r, "src/a.c", "11", NULL), HANDOFF_YES);
	assert_int_equal(rig->truth.file(r, "src/a.c", "12", NULL), HANDOFF_NO);
	assert_int_equal(rig->truth.file(r, "gone.c", NULL, NULL), HANDOFF_NO);
	assert_int_equal(rig->truth.file(r, "link", NULL, NULL), HANDOFF_YES);
	assert_int_equal(rig->truth.file(r, "link", "11", NULL), HANDOFF_UNKNOWN);
	assert_int_equal(rig->truth.file(r, "other.c", NULL, NULL), HANDOFF_UNKNOWN);

	assert_int_equal(ask_command(rig, "sh -c x", NULL, -1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, "A=1 B='2' no-such-program-here x", NULL, 1), HANDOFF_NO);
	assert_int_equal(ask_command(rig, "(cd src && ./run.sh)", NULL, 1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, "./run.sh all", NULL, 1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, "build/test_a", NULL, 1), HANDOFF_UNKNOWN);
	assert_int_equal(ask_command(rig, "  ", NULL, 1), HANDOFF_NO);
	assert_int_equal(ask_command(rig, "! sh -c x", NULL, 1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, "$CC -c x.c", NULL, 1), HANDOFF_UNKNOWN);
	assert_int_equal(ask_command(rig, "'my tool' x", NULL, 1), HANDOFF_UNKNOWN);
	assert_int_equal(ask_command(rig, NULL, "tests/x.c::test_a", -1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, NULL, "suite.test_b", -1), HANDOFF_NO);
	assert_int_equal(ask_command(rig, NULL, "test_b", -1), HANDOFF_NO);
	assert_int_equal(ask_command(rig, NULL, "test_z", -1), HANDOFF_UNKNOWN);
	assert_int_equal(ask_command(rig, "sh run", "test_b", 1), HANDOFF_NO);
	/* It was run: what it ended with decides. */
	handoff_records_ran(rig->records, "sh run", 2, NULL);
	handoff_records_ran(rig->records, "sh slow", 0, "reached its time limit");
	assert_int_equal(ask_command(rig, "sh run", "test_b", 1), HANDOFF_YES);
	assert_int_equal(ask_command(rig, "sh run", NULL, 0), HANDOFF_NO);
	assert_int_equal(ask_command(rig, "sh slow", NULL, 0), HANDOFF_UNKNOWN);
}

static void test_question(void **state)
{
	static const char want[] = "{\"commits\":[\"b\",\"h\",\"c\"],\"files\":[\"src/a.c\",\"./"
				   "t.sh\",\"x/y.c::test_a\"],"
				   "\"names\":[\"test_a\"]}";
	struct handoff *handoff = handoff_new();
	struct handoff_statement *s;
	AUTO_BUF struct buf text = BUF_INIT;

	handoff_set(&handoff->base, "b");
	handoff_set(&handoff->head, "h");
	s = handoff_add(handoff, HANDOFF_FINISHED, HANDOFF_FROM_RECORD, "x", 1);
	handoff_set(&s->commit, "c");
	handoff_set(&s->file, "results:a");
	s = handoff_add(handoff, HANDOFF_FAILURES, HANDOFF_FROM_RECORD, "x", 1);
	handoff_set(&s->file, "src/a.c");
	handoff_set(&s->command, "A=1 ./t.sh");
	handoff_set(&s->test, "x/y.c::test_a");
	AUTO_JSON struct json_object *body = handoff_facts_question(handoff);
	json_write(&text, body);
	assert_string_equal(buf_str(&text), want);
	handoff_free(handoff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_git_and_commands, setup, teardown),
		cmocka_unit_test(test_question),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
