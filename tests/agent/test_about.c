/*
 * test_about.c - what a call is about, and which commands only look (T7, H1).
 */
#include "tests/base/test_base.h"

#include "agent/context/about.h"

static void check_target(const char *tool, const char *input, const char *want)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	struct block *b = message_add_call(m, "c1", tool, input, strlen(input), NULL);
	AUTO_FREE char *target = about_target(b);

	if (want)
		assert_string_equal(target, want);
	else
		assert_null(target);
	message_free(m);
}

static void test_target(void **state)
{
	check_target("read", "{\"path\":\"a.c\"}", "a.c");
	check_target("read", "{ \"limit\" : 3 , \"path\" : \"a.c\" }", "a.c");
	check_target("read", "{\"x\":{\"path\":\"no\"},\"y\":[\"path\"],\"path\":\"a.c\"}", "a.c");
	check_target("read", "{\"x\":\"path\",\"z\":\"\\\"path\\\":\\\"no\\\"\",\"path\":\"a.c\"}",
		     "a.c");
	check_target("edit", "{\"old\":\"a\\\\\",\"path\":\"d\\u0031/\\\"q\\\".c\"}", "d1/\"q\".c");
	check_target("shell", "{\"command\":\"a\\nb\"}", "a\nb");
	check_target("grep", "{\"pattern\":\"\"}", "");
	check_target("read", "{\"path\":7}", NULL);
	check_target("read", "{\"path\":\"a", NULL);
	check_target("read", "{}", NULL);
	check_target("read", "", NULL);
	check_target("agent", "{\"path\":\"a.c\"}", NULL);
}

static void test_only_looks(void **state)
{
	static const char *const yes[] = {
		"ls",
		" ls -la src",
		"git status",
		"git log --oneline | head -3",
		"cat a && wc -l a",
		"grep -rn x . | sort | uniq -c",
		"env",
		"cd src; ls",
		"sed -n 2,9p a",
		"sed -n '$p' a | wc -l",
		"sed -n \"2,+4p\" a b",
	};
	static const char *const no[] = {
		"",
		"make",
		"git commit -m x",
		"ls > f",
		"echo `rm f`",
		"echo $(rm f)",
		"ls; rm f",
		"cat a &rm f",
		"env rm f",
		"sort -o f f",
		"git diff --output=f",
		"git",
		"lsx",
		"cat <(rm f)",
		"ls\nrm f",
		"git stash list",
		"find . -delete",
		"a.sh",
		"sed 2p a",
		"sed -i s/a/b/ a",
		"sed -n 2,9p -i a",
		"sed -n '2p' -e 'w b' a",
		"sed -n '2w b' a",
		"sed -n '/x/p' a",
		"sed -n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!about_only_looks(yes[i]))
			fail_msg("'%s' only looks", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (about_only_looks(no[i]))
			fail_msg("'%s' may have effects", no[i]);
}

/* T7: the white list, and what a placeholder says. */
static void test_placeholder(void **state)
{
	static const struct {
		const char *tool, *line;
	} cases[] = {
		{"read", CLEARED},	  {"grep", CLEARED},	     {"glob", CLEARED},
		{"web_fetch", CLEARED},	  {"web_search", CLEARED},   {"shell", CLEARED_EFFECT},
		{"edit", CLEARED_EFFECT}, {"write", CLEARED_EFFECT}, {"agent", NULL},
		{"notes", NULL},	  {"report", NULL},	     {"task_list", NULL},
		{"mcp_call", NULL},
	};
	struct context_knobs knobs;

	knobs_init(&knobs);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct message *m = message_new(MESSAGE_USER);
		struct block *b = message_add_result(m, "c", cases[i].tool, "x", 1, false);
		const char *line = about_placeholder(b, &knobs);

		assert_true(line == cases[i].line || !strcmp(line, cases[i].line));
		knobs.clear_mcp = 1;
		if (!strcmp(cases[i].tool, "mcp_call"))
			assert_string_equal(about_placeholder(b, &knobs), CLEARED_EFFECT);
		knobs.clear_mcp = 0;
		message_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_only_looks),
		cmocka_unit_test(test_placeholder),
	};
	return cmocka_run_group_tests_name("agent/about", tests, NULL, NULL);
}
