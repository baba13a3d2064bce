/*
 * test_notes.c - the notes of a session: what is asked for and what is taken (H4).
 */
#include "agent_fixture.h"

#include <string.h>

#include "agent/context/notes.h"
#include "agent/context/retell.h"

#define SECTION(name, text) "<section name=\"" name "\">\n" text "\n</section>\n"

static struct message *says(const char *text)
{
	return fixture_text(MESSAGE_ASSISTANT, text);
}

static int take(struct notes *notes, const char *text, bool cut, struct err *err)
{
	struct message *m = says(text);
	int rc = notes_take(notes, m, cut, 4000, err);

	message_free(m);
	return rc;
}

/* Only what changes is in an answer: the rest stays. */
static void h4_sections_are_replaced_one_by_one(void **state)
{
	struct notes notes = {0};
	AUTO_BUF struct buf out = BUF_INIT;

	assert_int_equal(take(&notes,
			      SECTION("current state", "reading a.c")
				      SECTION("Workflow", "make test"),
			      false, NULL),
			 0);
	assert_int_equal(
		take(&notes, "Here:\n" SECTION("current state", "mending b.c"), false, NULL), 0);
	notes_render(&notes, &out);
	assert_string_equal(buf_str(&out),
			    "## current state\n\nmending b.c\n\n## workflow\n\nmake test\n\n");
	notes_release(&notes);
}

/* X3: what cannot be trusted changes nothing. */
static void x3_bad_answers_change_nothing(void **state)
{
	static const char *const bad[] = {
		"I will do that later.",
		"<section name=\"current state\">\ncut in the mid",
		"<section name=\"of nobody\">x</section>",
		"",
	};
	struct notes notes = {0};
	struct err err = ERR_INIT;
	struct message *m = says(SECTION("results", "one"));
	char large[5000];

	assert_int_equal(notes_take(&notes, m, true, 4000, &err), -1); /* at its limit */
	message_add_call(m, "c1", "shell", "{}", 2, NULL);
	assert_int_equal(notes_take(&notes, m, false, 4000, &err), -1);
	assert_non_null(strstr(err.message, "calls a tool"));
	message_free(m);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad) - 1; i++)
		assert_int_equal(take(&notes, bad[i], false, NULL), -1);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	AUTO_BUF struct buf text = BUF_INIT;
	buf_addf(&text, "<section name=\"results\">%s</section>", large);
	assert_int_equal(take(&notes, buf_str(&text), false, &err), -1);
	assert_non_null(strstr(err.message, "too large"));
	assert_true(notes_empty(&notes));
	notes_release(&notes);
}

/* Above the limits the next pass is asked to condense. */
static void h4_large_notes_are_to_be_condensed(void **state)
{
	struct notes notes = {0};
	struct ledger ledger;
	struct notes_limits limits = {.section = 50, .total = 80};
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *m;

	ledger_init(&ledger);
	m = notes_request(&notes, &limits, &ledger, NULL, 0);
	assert_null(strstr(m->blocks[0].text, "condense"));
	assert_null(strstr(m->blocks[0].text, "<session>"));
	message_free(m);
	for (int i = 0; i < 60; i++)
		buf_adds(&text, "several more words ");
	AUTO_BUF struct buf answer = BUF_INIT;
	buf_addf(&answer, "<section name=\"learnings\">%s</section>", buf_str(&text));
	assert_int_equal(take(&notes, buf_str(&answer), false, NULL), 0);
	m = notes_request(&notes, &limits, &ledger, "what happened", 13);
	const char *s = m->blocks[0].text;
	assert_non_null(strstr(s, "\"learnings\" has about"));
	assert_non_null(strstr(s, "must come below 80"));
	assert_non_null(strstr(s, "<session>\nwhat happened\n</session>"));
	assert_true(strncmp(s, "Do not call any tool", 20) == 0);
	assert_non_null(strstr(s + strlen(s) - 30, "Do not call any tool."));
	message_free(m);
	notes_release(&notes);
	ledger_release(&ledger);
}

/* notes.md is read back as it was written. */
static void notes_survive_the_file(void **state)
{
	struct notes notes = {0}, back = {0};
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf again = BUF_INIT;

	assert_int_equal(take(&notes,
			      SECTION("files and functions", "- a.c\n\n# not ours\n- b.c")
				      SECTION("worklog", "1. one\n2. two"),
			      false, NULL),
			 0);
	notes_render(&notes, &out);
	notes_parse(&back, buf_str(&out), out.len);
	notes_render(&back, &again);
	assert_string_equal(buf_str(&again), buf_str(&out));
	notes_parse(&back, "no title\n", 9);
	assert_true(notes_empty(&back));
	notes_release(&notes);
	notes_release(&back);
}

/* Trap 3: no reasoning goes into a call, and results are bounded. */
static void trap_3_retold_without_thinking(void **state)
{
	struct message *list[2] = {message_new(MESSAGE_ASSISTANT), message_new(MESSAGE_USER)};
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf result = BUF_INIT;

	for (int i = 0; i < 2000; i++)
		buf_addf(&result, "line %d\n", i);
	message_add_thinking(list[0], "thinking", "SECRET-THOUGHT", 14, "{}");
	message_add_text(list[0], ORIGIN_MODEL, "Reading it.", 11);
	message_add_call(list[0], "c1", "read", "{\"path\":\"a.c\"}", 14, NULL);
	message_add_result(list[1], "c1", "read", buf_str(&result), result.len, false);
	retell_messages(list, 2, 1000, &out);
	assert_null(strstr(buf_str(&out), "SECRET-THOUGHT"));
	assert_non_null(strstr(buf_str(&out), "Reading it."));
	assert_non_null(strstr(buf_str(&out), "call of read: {\"path\":\"a.c\"}"));
	assert_non_null(strstr(buf_str(&out), "line 1999"));
	assert_null(strstr(buf_str(&out), "line 1000\n"));
	assert_true(out.len < 1400);
	message_free(list[0]);
	message_free(list[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h4_sections_are_replaced_one_by_one),
		cmocka_unit_test(x3_bad_answers_change_nothing),
		cmocka_unit_test(h4_large_notes_are_to_be_condensed),
		cmocka_unit_test(notes_survive_the_file),
		cmocka_unit_test(trap_3_retold_without_thinking),
	};
	return cmocka_run_group_tests_name("agent/notes", tests, NULL, NULL);
}
