/*
 * test_document_md.c - the handoff document as Markdown (R2): the same document after writing and reading, whatever its
 * texts hold; what people write by hand; and that errors name their line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "document_rig.h"

#define DOCUMENTS 2000
#define HEAD	  "---\nschema: baton.handoff\nversion: 1\n---\n" /* four lines */

static struct handoff *read_text(const char *text, struct err *err)
{
	struct handoff *handoff = NULL;

	return handoff_parse(text, strlen(text), &handoff, err) < 0 ? NULL : handoff;
}

static struct handoff *need_text(const char *text)
{
	struct err err = ERR_INIT;
	struct handoff *handoff = read_text(text, &err);

	if (!handoff)
		fail_msg("%s\n%s", text, err.message);
	return handoff;
}

static void test_keeps_all(void **state)
{
	for (uint32_t seed = 1; seed <= DOCUMENTS; seed++) {
		struct handoff *first = random_document(seed), *second = NULL;
		struct err err = ERR_INIT;
		AUTO_BUF struct buf text = BUF_INIT;
		handoff_to_markdown(first, &text);
		if (handoff_parse(buf_str(&text), text.len, &second, &err) < 0)
			fail_msg("seed %u: %s\n%s", seed, err.message, buf_str(&text));
		const char *where = document_difference(first, second);
		if (where)
			fail_msg("seed %u: %s\n%s", seed, where, buf_str(&text));
		handoff_free(first);
		handoff_free(second);
	}
}

/* Editors put one before either form. */
static void test_byte_order_mark(void **state)
{
	handoff_free(need_text("\xef\xbb\xbf" HEAD "## Goal\nx\n"));
	handoff_free(
		need_text("\xef\xbb\xbf{\"schema\":\"baton.handoff\",\"version\":1,\"parts\":{}}"));
}

/* What it looks like is a promise to readers: this is the text of docs/handoff.md. */
static void test_form(void **state)
{
	static const char want[] = "---\nschema: baton.handoff\nversion: 1\ngeneration: 2\nrun: "
				   "\"20261130-1\"\nbranch: "
				   "baton/r/a1\nfacts_only: false\n---\n# Handoff\n\n"
				   "## Goal\n\n"
				   "- Fix the parser.\n"
				   "\n"
				   "  Never push.\n"
				   "  - origin: user, generation 1, message 3\n"
				   "  - speaker: person\n\n"
				   "## Present failures\n\n"
				   "- test_torn gives line 0\n"
				   "  \\- command: is what it prints\n"
				   "  - origin: record\n"
				   "  - state: failed\n"
				   "  - command: ninja test\n"
				   "  - exit_code: 1\n"
				   "  - output:\n"
				   "    ````\n"
				   "    ```\n"
				   "\n"
				   "    expected 7\n"
				   "    ````\n";
	struct handoff *handoff = handoff_new();
	struct handoff_statement *s;
	AUTO_BUF struct buf out = BUF_INIT;

	handoff->generation = 2;
	handoff_set(&handoff->run, "20261130-1");
	handoff_set(&handoff->branch, "baton/r/a1");
	s = handoff_add(handoff, HANDOFF_GOAL, HANDOFF_FROM_USER, "Fix the parser.\n\nNever push.",
			28);
	s->generation = 1;
	s->uid = 3;
	handoff_set(&s->speaker, "person");
	s = handoff_add(handoff, HANDOFF_FAILURES, HANDOFF_FROM_RECORD,
			"test_torn gives line 0\n- command: is what it prints", 51);
	s->state = HANDOFF_FAILED;
	handoff_set(&s->command, "ninja test");
	handoff_set(&s->output, "```\n\nexpected 7");
	s->has_exit = true;
	s->exit_code = 1;
	handoff_to_markdown(handoff, &out);
	assert_string_equal(buf_str(&out), want);
	handoff_free(handoff);
}

/* A document that a person wrote: no origins, paragraphs, keys for titles, the line ends of another system. */
static void test_by_hand(void **state)
{
	struct handoff *handoff =
		need_text("\xef\xbb\xbf---\r\nschema: baton.handoff # ours\r\nversion: 1\r\n"
			  "why: 'tired'\r\n---\r\n\r\n# My notes\r\n## goal\r\n"
			  "Make it fast,\r\nand keep it small.\r\n\r\nAll of it.\r\n"
			  "## FIRST ACTION\r\n- run the test\r\n\r\n  - test: test_a  \r\n\r\n\r\n"
			  "## Risks\r\n-\r\n- none\r\n\r\n");
	struct handoff_part *goal = &handoff->parts[HANDOFF_GOAL];
	struct handoff_statement *first = handoff_the(handoff, HANDOFF_FIRST_ACTION);

	assert_string_equal(handoff->why, "tired");
	assert_int_equal(goal->n, 2);
	assert_string_equal(goal->list[0].text, "Make it fast,\nand keep it small.");
	assert_int_equal(goal->list[0].origin, HANDOFF_FROM_USER);
	assert_string_equal(goal->list[1].text, "All of it.");
	assert_string_equal(first->test, "test_a");
	assert_int_equal(handoff->parts[HANDOFF_RISKS].n, 2);
	assert_string_equal(handoff->parts[HANDOFF_RISKS].list[0].text, "");
	assert_string_equal(handoff->parts[HANDOFF_RISKS].list[1].text, "none");
	handoff_free(handoff);
}

/* Whose words they are decides what may stand in them. */
static void test_control_sequences(void **state)
{
	struct handoff *handoff = need_text(
		HEAD "## Goal\n- a\x1b[31mb\n  - origin: model\n- a\x1b[31mb\n  - origin: user\n"
		     "- ab\n  - origin: user\n  - verbatim: \"a\\u001b[31mb\"\n");
	struct handoff_part *goal = &handoff->parts[HANDOFF_GOAL];

	assert_string_equal(goal->list[0].text, "ab");
	assert_string_equal(goal->list[1].text, "a\x1b[31mb");
	assert_string_equal(goal->list[2].text, "a\x1b[31mb");
	handoff_free(handoff);
}

static void test_errors_name_the_line(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"",
		 "line 1: this is no handoff: it begins with '---' and 'schema: baton.handoff'"},
		{"# Goal\n",
		 "line 1: this is no handoff: it begins with '---' and 'schema: baton.handoff'"},
		{"---\nversion: 1\n---\n",
		 "line 1: this is no handoff: schema must be \"baton.handoff\""},
		{"---\nschema: baton.handoff\nversion: x\n---\n",
		 "line 3: version must be an integer"},
		{"---\nschema: baton.handoff\nversion: 1\nbranch: 7\n---\n",
		 "line 4: branch must be a string"},
		{"---\nschema: baton.handoff\nversion: 1\nbrunch: a\n---\n",
		 "line 4: 'brunch' is not known; did you mean 'branch'?"},
		{"---\nschema: baton.handoff\nversion: 1\nparts: {}\n---\n",
		 "line 4: parts stand below the header, with '## ' headings"},
		{"---\nx\n---\n", "line 1: the header must be 'key: value' lines"},
		{HEAD "text\n", "line 5: a part ('## Goal') is expected first"},
		{HEAD "## Gaol\n", "line 5: the part 'Gaol' is not known; did you mean 'Goal'?"},
		{HEAD "## Goal\n## goal\n", "line 6: the part 'goal' is there twice"},
		{HEAD "## Goal\n  x\n",
		 "line 6: this belongs to no statement; one begins with '- '"},
		{HEAD "## Goal\n### x\n", "line 6: parts have headings with '## '"},
		{HEAD "## Goal\n- a\nb\n",
		 "line 7: a part is either a list ('- ...', further lines indented by "
		 "two blanks) or plain paragraphs"},
		{HEAD "## Point of work\n- a\n- b\n",
		 "line 7: 'Point of work' holds one statement"},
		{HEAD "## Goal\n- a\n  - origin: god\n",
		 "line 7: 'god' is no origin: record, user or model"},
		{HEAD "## Goal\n- a\n  - origin: user, uid 7\n",
		 "line 7: 'uid 7' is neither 'generation N' nor 'message N'"},
		{HEAD "## Goal\n- a\n  - origin: user\n  - comand: x\n",
		 "line 8: 'comand' is not known; did you mean 'command'?"},
		{HEAD "## Goal\n- a\n  - file: x\n  - file: y\n", "line 8: 'file' is given twice"},
		{HEAD "## Goal\n- a\n  - file: x\n  more\n",
		 "line 8: after a member of a statement ('  - key: value') another one, a "
		 "statement ('- ') or a part "
		 "('## ') is expected"},
		{HEAD "## Goal\n- a\n  - state: good\n", "line 7: 'good' is no state"},
		{HEAD "## Goal\n- a\n  - exit_code: one\n", "line 7: 'one' is no exit code"},
		{HEAD "## Goal\n- a\n  - output:\n", "line 7: 'output' has no value"},
		{HEAD "## Goal\n- a\n  - output:\n    ```\n    x\n",
		 "line 7: the value of 'output' has no end"},
		{HEAD "## Goal\n- a\n  - output:\n    ```\n  x\n    ```\n",
		 "line 9: lines of 'output' are indented by four blanks"},
		{HEAD "## Goal\n- a\n  - file: \"x\n",
		 "line 7: 'file': invalid JSON: unterminated string at byte 2"},
		{HEAD "## Goal\n- a\n  - origin: user\n  - verbatim: \"b\"\n",
		 "line 8: 'verbatim' is not the text above; remove the line if the text was "
		 "changed"},
		{HEAD "## Goal\n- a\n  - origin: model\n  - verbatim: \"a\"\n",
		 "line 8: only what a user said is verbatim"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		struct handoff *handoff = read_text(rows[i].text, &err);
		if (handoff || strcmp(err.message, rows[i].want) != 0)
			fail_msg("%s: '%s' instead of '%s'", rows[i].text, err.message,
				 rows[i].want);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void test_either_form(void **state)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *large = mem_alloc(HANDOFF_BYTES_MAX + 2);

	handoff_free(
		need_text(" \n{\"schema\": \"baton.handoff\", \"version\": 1, \"parts\": {}}"));
	assert_null(read_text("---\nschema: baton.handoff\nversion: 2\n---\n", &err));
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	memset(large, ' ', HANDOFF_BYTES_MAX + 1);
	assert_null(read_text(large, &err));
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_all),
		cmocka_unit_test(test_byte_order_mark),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_control_sequences),
		cmocka_unit_test(test_errors_name_the_line),
		cmocka_unit_test(test_either_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
