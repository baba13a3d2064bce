/*
 * test_document_check.c - a handoff is checked before it is trusted (R4). One sound document in Markdown, and
 * what each row of the table makes of it by replacing a piece of it: all of them are refused, each for its reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_check.h"
#include "handoff/document_vague.h"

#define A40  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C40  "cccccccccccccccccccccccccccccccccccccccc" /* a commit of another branch */
#define D40  "dddddddddddddddddddddddddddddddddddddddd" /* no commit */
#define BLOB "1111111111111111111111111111111111111111"
#define OLD  "2222222222222222222222222222222222222222"

#define TASK "Make the reader survive torn lines. Never change the file format."
#define RULE "Never change the file format."

static const char sound[] =
	"---\nschema: baton.handoff\nversion: 1\ngeneration: 2\nbase: \"" A40 "\"\nhead: \"" B40
	"\"\n---\n"
	"## Goal\n- " TASK "\n  - origin: user, generation 1, message 1\n"
	"## Finished work\n- read_line reports the byte offset\n  - origin: record\n  - state: "
	"verified\n"
	"  - commit: " B40 "\n"
	"## Point of work\n- read_torn drops the last record\n  - origin: record\n  - file: "
	"src/reader.c\n"
	"  - function: read_torn\n"
	"## Constraints, in the user's words\n- " RULE "\n  - origin: user\n"
	"## Tried and ruled out\n- Padding each line: the format must stay\n  - origin: model\n"
	"## Present failures\n- test_torn expects 7 records and gets 6\n  - origin: record\n  - "
	"file: tests/test_reader.c\n"
	"  - test: test_torn\n  - command: make check\n  - exit_code: 2\n"
	"## First action\n- Keep the unfinished line in read_torn\n  - origin: model\n  - "
	"function: read_torn\n"
	"  - command: make check\n"
	"## Commits\n- reader: report the offset\n  - origin: record\n  - commit: " B40 "\n"
	"## Task list\n- survive a torn last line\n  - origin: record\n  - state: open\n  - id: "
	"t1\n"
	"## Files touched\n- changed\n  - origin: record\n  - state: changed\n  - file: "
	"src/reader.c\n  - hash: " BLOB "\n"
	"- removed\n  - origin: record\n  - state: deleted\n  - file: src/gone.c\n"
	"## What the user said\n- " TASK "\n  - origin: user, generation 1, message 1\n";

/* ---- the records ---- */

static enum handoff_answer is_commit(void *arg, const char *id, struct buf *why)
{
	if (strcmp(id, A40) == 0 || strcmp(id, B40) == 0)
		return HANDOFF_YES;
	buf_adds(why, strcmp(id, C40) == 0 ? "is not on the branch" : "does not exist");
	return HANDOFF_NO;
}

static enum handoff_answer is_file(void *arg, const char *path, const char *hash, struct buf *why)
{
	if (strcmp(path, "src/reader.c") != 0 && strcmp(path, "tests/test_reader.c") != 0)
		return HANDOFF_NO;
	if (!hash || strcmp(hash, BLOB) == 0)
		return HANDOFF_YES;
	buf_adds(why, "was changed since");
	return HANDOFF_NO;
}

static enum handoff_answer was_said(void *arg, const struct handoff_statement *s, struct buf *why)
{
	return strcmp(s->text, TASK) == 0 || strcmp(s->text, RULE) == 0 ? HANDOFF_YES : HANDOFF_NO;
}

static enum handoff_answer is_command(void *arg, const struct handoff_statement *s, struct buf *why)
{
	if (s->command && strcmp(s->command, "make check") != 0)
		return HANDOFF_NO;
	return s->test && strcmp(s->test, "test_torn") != 0 ? HANDOFF_NO : HANDOFF_YES;
}

static enum handoff_answer is_recent(void *arg, const char *target)
{
	return strcmp(target, "src/reader.c") == 0 || strcmp(target, "read_torn") == 0 ? HANDOFF_YES
										       : HANDOFF_NO;
}

static const char *constraint_at(void *arg, size_t i, size_t *ret_n)
{
	*ret_n = strlen(RULE);
	return i == 0 ? RULE : NULL;
}

static const struct handoff_truth truth = {
	.commit = is_commit,
	.file = is_file,
	.said = was_said,
	.command = is_command,
	.recent = is_recent,
	.constraint = constraint_at,
};

/* ---- spoiled documents ---- */

static struct handoff *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct handoff *handoff = NULL;

	if (handoff_parse(text, strlen(text), &handoff, &err) < 0)
		fail_msg("%s\n%s", text, err.message);
	return handoff;
}

/* The sound document with the first `from` replaced. */
static struct handoff *spoiled(const char *from, const char *to)
{
	const char *at = strstr(sound, from);
	AUTO_FREE char *text = NULL;

	if (!at)
		fail_msg("'%s' is not in the document", from);
	text = mem_printf("%.*s%s%s", (int)(at - sound), sound, to, at + strlen(from));
	return parse(text);
}

static bool has_finding(const struct handoff_findings *findings, const char *want)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < findings->n; i++) {
		const struct handoff_finding *f = &findings->list[i];
		buf_clear(&text);
		buf_addf(&text, "%s %s: %s", handoff_part_key(f->part),
			 handoff_fault_name(f->fault), f->text);
		if (f->fault != HANDOFF_UNPROVED && strstr(buf_str(&text), want))
			return true;
	}
	return false;
}

#define ACTION                                                                                     \
	"- Keep the unfinished line in read_torn\n  - origin: model\n  - function: read_torn\n  "  \
	"- command: make check\n"
#define VAGUE_ACTION(text)                                                                         \
	ACTION, "- " text "\n  - origin: model\n", "first_action vague: '" text "' fits any task"
#define POINT                                                                                      \
	"- read_torn drops the last record\n  - origin: record\n  - file: src/reader.c\n  - "      \
	"function: read_torn\n"
#define FAILED                                                                                     \
	"- test_torn expects 7 records and gets 6\n  - origin: record\n  - file: "                 \
	"tests/test_reader.c\n"                                                                    \
	"  - test: test_torn\n  - command: make check\n  - exit_code: 2\n"
#define USER_RULE "- " RULE "\n  - origin: user\n"

static const struct {
	const char *from, *to, *want;
} rows[] = {
	/* Stale, foreign, invented. */
	{"hash: " BLOB, "hash: " OLD, "files untrue: 'src/reader.c' was changed since"},
	{"base: \"" A40, "base: \"" C40, "commits untrue: base cccccccccccc is not on the branch"},
	{"head: \"" B40, "head: \"" D40, "commits untrue: head dddddddddddd does not exist"},
	{"head: \"" B40, "head: \"main", "commits vague: head 'main"},
	{"commit: " B40, "commit: " C40,
	 "finished untrue: commit cccccccccccc is not on the branch"},
	{"commit: " B40, "commit: bbbbbbb",
	 "finished vague: commit 'bbbbbbb' is no full commit id"},
	{"reader: report the offset\n  - origin: record\n  - commit: " B40,
	 "reader: report the offset\n  - origin: record\n  - commit: " D40,
	 "commits untrue: commit dddddddddddd"},
	{"reader: report the offset\n  - origin: record\n  - commit: " B40,
	 "reader: report the offset\n  - origin: record",
	 "commits vague: give the id of the commit"},
	{"file: src/reader.c\n  - function", "file: src/lexer.c\n  - function",
	 "point untrue: 'src/lexer.c' is not there"},
	{"file: tests/test_reader.c", "file: tests/test_lexer.c",
	 "failures untrue: 'tests/test_lexer.c'"},
	{"file: tests/test_reader.c", "file: ../other/test.c",
	 "failures untrue: '../other/test.c' lies outside"},
	{"file: tests/test_reader.c", "file: /etc/passwd",
	 "failures untrue: '/etc/passwd' lies outside"},
	{"file: src/gone.c", "file: src/reader.c",
	 "files untrue: 'src/reader.c' is said to be deleted"},
	{"  - file: src/gone.c\n", "", "files vague: name the file"},
	{"test: test_torn", "test: test_turn", "failures untrue: 'make check' is not there"},
	{"command: make check\n  - exit_code", "command: make chekc\n  - exit_code",
	 "failures untrue: 'make chekc' is not there"},
	/* Words that the user did not say, or said and that are gone. */
	{"- " TASK, "- Make the reader survive torn lines and change the file format.",
	 "goal untrue: the user did not say"},
	{USER_RULE, "- Do not change the file format.\n  - origin: user\n",
	 "constraints untrue: the user did not say"},
	{USER_RULE, "- change the file format.\n  - origin: user\n",
	 "constraints absent: a constraint of the user's"},
	{USER_RULE, "- The format is fixed.\n  - origin: model\n",
	 "constraints untrue: these are no words of a model"},
	{"## Constraints, in the user's words\n" USER_RULE, "",
	 "constraints absent: a constraint of the user's"},
	{"## What the user said\n- " TASK, "## What the user said\n- Make it survive torn lines.",
	 "words untrue: the user did not say 'Make it survive"},
	/* Missing parts. */
	{"## Goal\n- " TASK "\n  - origin: user, generation 1, message 1\n", "",
	 "goal absent: the part 'goal' is missing"},
	{"## Point of work\n" POINT, "", "point absent"},
	{"## First action\n" ACTION, "", "first_action absent"},
	{ACTION, "-\n", "first_action vague: it says nothing"},
	{"- Padding each line: the format must stay", "-  ", "ruled_out vague: it says nothing"},
	/* Actions that fit any task. */
	{VAGUE_ACTION("continue the remaining tasks")},
	{VAGUE_ACTION("Continue with the remaining tasks.")},
	{VAGUE_ACTION("Go on.")},
	{VAGUE_ACTION("see above")},
	{VAGUE_ACTION("Please finish what is left, then run all tests!")},
	{VAGUE_ACTION("pick up where we left off")},
	{VAGUE_ACTION("Proceed to step 3 of the plan")},
	{VAGUE_ACTION("TODO")},
	{VAGUE_ACTION("n/a")},
	{VAGUE_ACTION("`true`")},
	{VAGUE_ACTION("\xe7\xbb\xa7\xe7\xbb\xad\xe5\xae\x8c\xe6\x88\x90\xe5\x89\xa9\xe4\xbd\x99\xe7"
		      "\x9a\x84\xe4\xbb\xbb\xe5\x8a\xa1\xe3\x80\x82")},
	{VAGUE_ACTION("\xe8\xa7\x81\xe4\xb8\x8a\xe6\x96\x87")},
	{VAGUE_ACTION("\xe8\xaf\xb7\xe7\xbb\xa7\xe7\xbb\xad\xef\xbc\x8c\xe8\xbf\x90\xe8\xa1\x8c\xe6"
		      "\x89\x80\xe6\x9c\x89\xe6\xb5\x8b\xe8\xaf\x95")},
	{"Keep the unfinished line in read_torn", "Continue with the remaining tasks",
	 "first_action vague: 'Continue with the remaining tasks' fits any task"},
	{"  - function: read_torn\n  - command: make check\n## Commits",
	 "  - function: read_torn\n  - command: \"true\"\n## Commits",
	 "first_action vague: the command 'true' does nothing"},
	{"  - function: read_torn\n  - command: make check\n## Commits",
	 "  - command: \"\"\n## Commits", "first_action vague: the command '' does nothing"},
	{"  - function: read_torn\n  - command: make check\n## Commits",
	 "  - command: cd src && echo done; exit 0\n## Commits", "does nothing"},
	{ACTION, "- Rewrite the lexer from scratch\n  - origin: model\n",
	 "first_action vague: name a file, function, test or command"},
	{ACTION, "- Rewrite the lexer\n  - origin: model\n  - file: src/lexer.c\n",
	 "first_action untrue: what it names stands neither in the last 20 calls"},
	{ACTION, "- Split `lex_all` in two\n  - origin: model\n",
	 "first_action untrue: what it names stands neither"},
	{ACTION, "- Look at torn_x\n  - origin: model\n",
	 "first_action untrue: what it names stands neither"},
	/* Vague or untrue elsewhere. */
	{POINT, "- in the middle of the reader\n  - origin: model\n",
	 "point vague: name a file, function, test or command"},
	{POINT, "- working on it\n  - origin: model\n  - file: src/reader.c\n",
	 "point vague: 'working on it' fits any task"},
	{"- read_line reports the byte offset", "- done", "finished vague: 'done' fits any task"},
	{"  - state: verified\n  - commit: " B40, "  - commit: " B40,
	 "finished vague: say of finished work whether"},
	{"  - state: verified\n  - commit: " B40, "  - state: verified",
	 "finished vague: 'verified' needs a record"},
	{"  - state: verified\n  - commit: " B40,
	 "  - state: verified\n  - command: make check\n  - exit_code: 1",
	 "finished untrue: 'verified', but its command ended with exit code 1"},
	{"exit_code: 2", "exit_code: 0", "failures untrue: exit code 0 is no failure"},
	{"  - test: test_torn\n  - command: make check\n  - exit_code: 2\n", "",
	 "failures vague: say how the failure is seen again"},
	{"  - command: make check\n  - exit_code: 2\n", "  - exit_code: 2\n",
	 "failures vague: an exit code needs the command"},
	{FAILED, "- some tests fail\n  - origin: model\n  - command: make check\n",
	 "failures vague: 'some tests fail' fits any task"},
	{"- survive a torn last line", "- rest", "tasks vague: 'rest' fits any task"},
};

static void test_spoiled_are_refused(void **state)
{
	assert_true(ARRAY_SIZE(rows) >= 50);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct handoff *handoff = spoiled(rows[i].from, rows[i].to);
		struct handoff_findings findings;
		bool passed = handoff_check(handoff, &truth, &findings);
		if (passed || !findings.refusing || !has_finding(&findings, rows[i].want)) {
			for (size_t k = 0; k < findings.n; k++)
				print_message("  found: %s\n", findings.list[k].text);
			fail_msg("row %zu: '%s' is not refused for '%s'", i, rows[i].to,
				 rows[i].want);
		}
		handoff_findings_release(&findings);
		handoff_free(handoff);
	}
}

static void expect_findings(struct handoff *handoff, const struct handoff_truth *with, bool good,
			    size_t n)
{
	struct handoff_findings findings;

	if (handoff_check(handoff, with, &findings) != good || findings.n != n) {
		for (size_t k = 0; k < findings.n; k++)
			print_message("  found: %s: %s\n", handoff_part_key(findings.list[k].part),
				      findings.list[k].text);
		fail_msg("%zu findings", findings.n);
	}
	handoff_findings_release(&findings);
	handoff_free(handoff);
}

static void test_sound_passes(void **state)
{
	expect_findings(parse(sound), &truth, true, 0);
	/* A first action that an open task or a failure knows; one in Chinese; one that names it in its text alone. */
	expect_findings(spoiled(ACTION, "- Split `test_torn` in two\n  - origin: model\n"), &truth,
			true, 0);
	expect_findings(spoiled(ACTION, "- \xe4\xbf\xae\xe5\xa4\x8d src/reader.c "
					"\xe9\x87\x8c\xe7\x9a\x84\xe6\xb3\x84\xe6\xbc\x8f\n"
					"  - origin: model\n"),
			&truth, true, 0);
	expect_findings(spoiled("Keep the unfinished line in read_torn", "Run the tests again"),
			&truth, true, 0);
	/* What the user calls his goal is for him to say. */
	expect_findings(
		spoiled("## Goal\n- " TASK "\n  - origin: user, generation 1, message 1\n",
			"## Goal\n- fix tests\n  - origin: record\n  - file: src/reader.c\n"),
		&truth, false, 1);
}

/* Nobody to ask: each question is told once, and refuses nothing. */
static void test_unknown_is_told(void **state)
{
	const struct handoff_truth nobody = {0};

	expect_findings(spoiled(ACTION, "- Split `lex_all` in two\n  - origin: model\n"), &nobody,
			true, 5);
}

static const char *message_at(void *arg, size_t i, size_t *ret_n)
{
	static const char *const said[] = {TASK "\n", "And keep it\tshort.", "Thanks."};

	*ret_n = i < 3 ? strlen(said[i]) : 0;
	return i < 3 ? said[i] : NULL;
}

static void expect_messages(const char *words, const char *missing, size_t refusing)
{
	const struct handoff_truth told = {.message = message_at};
	struct handoff *handoff = parse(sound);
	struct handoff_findings findings;

	if (words)
		handoff_add(handoff, HANDOFF_WORDS, HANDOFF_FROM_USER, words, strlen(words));
	if (missing)
		handoff_add(handoff, HANDOFF_MISSING, HANDOFF_FROM_RECORD, missing,
			    strlen(missing));
	assert_int_equal(handoff_check(handoff, &told, &findings), refusing == 0);
	assert_int_equal(findings.refusing, refusing);
	if (refusing && !has_finding(&findings, "words absent: a message is not there"))
		fail_msg("%s", "it is not said which");
	handoff_findings_release(&findings);
	handoff_free(handoff);
}

/* R4: every message is covered, or it is said how many are not. */
static void r4_every_message_is_covered(void **state)
{
	expect_messages(NULL, NULL, 2);
	expect_messages("And keep it\tshort.", NULL, 1);
	expect_messages("And keep it short.", NULL, 2);
	expect_messages("And keep it\tshort. Thanks.", NULL, 0);
	expect_messages(NULL, "words: 2 older messages are in the transcripts only", 0);
	expect_messages(NULL, "1 older messages of the user were left out for want of room", 1);
	expect_messages("Thanks.", "1 older messages of the user were left out", 0);
	expect_messages(NULL, "9 older commits were left out for want of room", 2);
}

/* Without a model nobody says what to do first; and what is named as missing may be missing. */
static void test_what_may_be_missing(void **state)
{
	struct handoff *handoff = spoiled("## First action\n" ACTION, "");

	handoff->facts_only = true;
	expect_findings(handoff, &truth, true, 0);
	handoff = spoiled("## First action\n" ACTION, "");
	handoff_add(handoff, HANDOFF_MISSING, HANDOFF_FROM_RECORD,
		    "first_action: the model did not answer", 38);
	expect_findings(handoff, &truth, true, 0);
}

static void test_vague_words(void **state)
{
	static const char *const some[] = {
		"Fix the torn-line reader",
		"look at parse()",
		"\xe4\xbf\xae\xe5\xa4\x8d\xe8\xa7\xa3\xe6\x9e\x90\xe5\x99\xa8",
		"run ninja",
		"don't",
		"\xff"};
	static const char *const none[] = {
		"",  " \n", "...", "-", "the next steps, as planned", "Run the failing tests again",
		"12"};

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		if (vague_text(some[i]))
			fail_msg("'%s' says something", some[i]);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (!vague_text(none[i]))
			fail_msg("'%s' says nothing", none[i]);
	assert_true(vague_command(" # nothing"));
	assert_true(vague_command("(cd src; true) && :"));
	assert_false(vague_command("echo x > file"));
	assert_false(vague_command("true && make"));
	assert_false(vague_command("truecolor-test"));
}

static void test_targets(void **state)
{
	static const char text[] =
		"See `make all`, src/a.c: and parse_line(), not this. Do Call() or `open";
	static const char *const want[] = {"make all", "src/a.c", "parse_line", "Call"};
	const char *at = text, *name;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(vague_next_target(&at, &name, &n));
		assert_int_equal(n, strlen(want[i]));
		assert_memory_equal(name, want[i], n);
	}
	assert_false(vague_next_target(&at, &name, &n));
	assert_true(vague_stands_in("in src/a.c:12", "a.c", 3));
	assert_true(vague_stands_in("read_torn, then torn", "torn", 4));
	assert_false(vague_stands_in("read_torn", "torn", 4));
	assert_false(vague_stands_in(NULL, "torn", 4));
}

/* ---- room ---- */

static void add_many(struct handoff *handoff, enum handoff_part_name part, enum handoff_state kind,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO_FREE char *text =
			mem_printf("number %zu of these, and some more words about it", i);
		handoff_add(handoff, part, HANDOFF_FROM_RECORD, text, strlen(text))->state = kind;
	}
}

/* R2: 10,000 tokens at most; outputs and what is old go first, each loss is told, the rest stays whole. */
static void test_bound(void **state)
{
	struct handoff *handoff = parse(sound);
	struct handoff_statement *failure = &handoff->parts[HANDOFF_FAILURES].list[0];
	AUTO_FREE char *output = mem_alloc(60001);
	AUTO_BUF struct buf text = BUF_INIT;

	memset(output, 'x', 60000);
	handoff_set(&failure->output, output);
	handoff_set(&failure->log, "/run/results/7.txt");
	int64_t now = handoff_bound(handoff, 4000, NULL, NULL);
	assert_true(now <= 4000 && now > 1000);
	assert_int_equal(handoff->parts[HANDOFF_MISSING].n, 0);
	assert_non_null(strstr(failure->output, "/run/results/7.txt"));
	assert_int_equal(handoff->parts[HANDOFF_WORDS].n, 1);

	add_many(handoff, HANDOFF_FILES, HANDOFF_READ, 300);
	add_many(handoff, HANDOFF_WORDS, HANDOFF_NO_STATE, 300);
	add_many(handoff, HANDOFF_FAILURES, HANDOFF_FAILED, 20);
	now = handoff_bound(handoff, 6000, NULL, NULL);
	assert_true(now <= 6000);
	handoff_to_markdown(handoff, &text);
	assert_true((int64_t)(text.len + 3) / 4 == now);
	assert_int_equal(handoff->parts[HANDOFF_FAILURES].n, 21);
	assert_int_equal(handoff->parts[HANDOFF_CONSTRAINTS].n, 1);
	assert_int_equal(handoff->parts[HANDOFF_FILES].n, 2);
	struct handoff_part *words = &handoff->parts[HANDOFF_WORDS];
	assert_true(words->n > 50 && words->n < 301);
	assert_non_null(strstr(words->list[words->n - 1].text, "number 299"));
	assert_int_equal(handoff->parts[HANDOFF_MISSING].n, 2);
	assert_true(text_starts(handoff->parts[HANDOFF_MISSING].list[0].text,
				"300 files that were only read"));
	/* X14: whatever grows with a job's generations gives way, too, and the oldest of it first. */
	add_many(handoff, HANDOFF_FINISHED, HANDOFF_VERIFIED, 300);
	add_many(handoff, HANDOFF_TRIED, HANDOFF_NO_STATE, 300);
	add_many(handoff, HANDOFF_DECISIONS, HANDOFF_NO_STATE, 300);
	add_many(handoff, HANDOFF_RISKS, HANDOFF_NO_STATE, 300);
	add_many(handoff, HANDOFF_DONE_MEANS, HANDOFF_NO_STATE, 300);
	assert_true(handoff_bound(handoff, 6000, NULL, NULL) <= 6000);
	struct handoff_part *means = &handoff->parts[HANDOFF_DONE_MEANS];
	assert_non_null(strstr(means->list[means->n - 1].text, "number 299"));
	assert_int_equal(handoff->parts[HANDOFF_FAILURES].n, 21);
	/* What it must not lose may not fit: it says so. */
	assert_true(handoff_bound(handoff, 10, NULL, NULL) > 10);
	assert_int_equal(handoff->parts[HANDOFF_FAILURES].n, 21);
	handoff_free(handoff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spoiled_are_refused),
		cmocka_unit_test(test_sound_passes),
		cmocka_unit_test(test_unknown_is_told),
		cmocka_unit_test(r4_every_message_is_covered),
		cmocka_unit_test(test_what_may_be_missing),
		cmocka_unit_test(test_vague_words),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
