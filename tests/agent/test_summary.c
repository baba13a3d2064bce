/*
 * test_summary.c - what is taken of an answer that should be a summary (H5, X3).
 */
#include "tests/base/test_base.h"

#include "agent/context/summary.h"

#define HEADS                                                                                      \
	"1. Primary request and intent:\nfix it\n2. Key technical concepts:\nC\n3. Files and "     \
	"code "                                                                                    \
	"sections:\nsrc/a.c\n4. Errors and fixes:\nnone\n5. Problem solving:\nnone\n6. All user "  \
	"messages:\n\"fix it\"\n7. Pending tasks:\nnone\n8. Current work:\nsrc/a.c\n"
#define WHOLE HEADS "9. Optional next step:\nrun make test\n"

/* NULL: taken; else the error's text. `ret` holds what was taken. */
static const char *take(const char *text, bool cut, size_t max, struct buf *ret, struct err *err)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);

	message_add_text(m, ORIGIN_MODEL, text, strlen(text));
	int rc = summary_take(m, cut, max, ret, err);
	message_free(m);
	return rc < 0 ? err->message : NULL;
}

static void test_a_whole_summary(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;

	assert_null(take("<analysis>first</analysis>\n<summary>\n" WHOLE "</summary>", false, 9000,
			 &out, &err));
	assert_non_null(strstr(buf_str(&out), "run make test"));
	assert_null(strstr(buf_str(&out), "first"));
	assert_null(strstr(buf_str(&out), "summary>"));
}

/* Models put marks round headings, and name the tags in their analysis. */
static void test_forms_that_models_use(void **state)
{
	static const char marked[] =
		"<analysis>I close with <summary> and </summary>.</analysis><summary>\n## 1. "
		"**Primary "
		"Request** and intent\nx\n## 2. Key Technical Concepts\nx\n**3. Files and "
		"Code**\nx\n4) errors\nx\n"
		"5. Problem Solving\n1. a list in the text\n2. with numbers\n6. All user "
		"messages\n7. Pending "
		"Tasks\n8. Current Work\n9. Next step\n\xe8\xbf\x90\xe8\xa1\x8c\n</summary>";
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;

	assert_null(take(marked, false, 9000, &out, &err));
	assert_true(strncmp(buf_str(&out), "## 1.", 5) == 0);
}

/* X3: each of these is thrown away, and the reason names the defect. */
static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text;
		bool cut;
		size_t max;
		const char *why;
	} cases[] = {
		{"<summary>" HEADS "</summary>", false, 9000, "section 9"},
		{"<summary>2. Key technical concepts</summary>", false, 9000, "section 1"},
		{"<summary>" WHOLE "</summary>", true, 9000, "cut"},
		{"<summary>" WHOLE, false, 9000, "no whole"},
		{WHOLE, false, 9000, "no whole"},
		{"</summary><summary>", false, 9000, "no whole"},
		{"<analysis>only</analysis><summary>  \n</summary>", false, 9000, "empty"},
		{"<summary>" WHOLE "</summary>", false, 100, "larger"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		struct err err = ERR_INIT;
		const char *why = take(cases[i].text, cases[i].cut, cases[i].max, &out, &err);

		assert_non_null(why);
		if (!strstr(why, cases[i].why))
			fail_msg("case %zu: '%s'", i, why);
		assert_int_equal(out.len, 0);
	}
}

static void test_a_tool_call_is_no_summary(void **state)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	AUTO_BUF struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	static const char text[] = "<summary>" WHOLE "</summary>";

	message_add_text(m, ORIGIN_MODEL, text, strlen(text));
	message_add_call(m, "c1", "shell", "{}", 2, NULL);
	assert_int_equal(summary_take(m, false, 9000, &out, &err), -1);
	assert_non_null(strstr(err.message, "calls a tool"));
	message_free(m);
}

/* H5: tool calls are forbidden in the first and in the last lines; H6: the focus is in it. */
static void test_the_request(void **state)
{
	struct message *m = summary_request(&(struct summary_wish){.focus = "the schema"});
	const char *text = m->blocks[0].text;

	assert_true(strncmp(text, "Do not call any tool", 20) == 0);
	assert_non_null(strstr(text + strlen(text) - 30, "Do not call any tool."));
	assert_non_null(strstr(text, "the schema"));
	for (int i = 1; i <= SUMMARY_SECTIONS; i++) {
		char number[8];

		snprintf(number, sizeof(number), "\n%d. ", i);
		assert_non_null(strstr(text, number));
	}
	message_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_summary),
		cmocka_unit_test(test_forms_that_models_use),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_a_tool_call_is_no_summary),
		cmocka_unit_test(test_the_request),
	};
	return cmocka_run_group_tests_name("agent/summary", tests, NULL, NULL);
}
