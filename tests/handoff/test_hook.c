/*
 * test_hook.c - hooks (M6): which events a matcher matches, and what is made of a hook's output, whatever it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "handoff/hook.h"

#define EXIT(n) ((n) << 8)

static struct hook_answer read_out(enum hook_event event, int status, const char *out,
				   const char *error)
{
	struct hook_result r = {.event = event,
				.wait_status = status,
				.out = out,
				.out_len = strlen(out),
				.err = error,
				.err_len = strlen(error)};
	struct hook_answer a;

	hook_read(&r, &a);
	return a;
}

static void expect_text(enum hook_event event, const char *out, const char *want)
{
	struct hook_answer a = read_out(event, EXIT(0), out, "");

	if (a.failure)
		fail_msg("%s: %s", out, a.failure);
	assert_string_equal(buf_str(&a.text), want);
	hook_answer_release(&a);
}

static void expect_failure(int status, const char *out, const char *error, const char *part)
{
	struct hook_answer a = read_out(HOOK_PRE_COMPACT, status, out, error);

	if (!a.failure || !strstr(a.failure, part))
		fail_msg("%s: '%s' lacks '%s'", out, a.failure ? a.failure : "", part);
	assert_int_equal(a.decision, HOOK_UNDECIDED);
	assert_int_equal(a.text.len, 0);
	assert_null(a.reason);
	hook_answer_release(&a);
}

static void expect_decision(const char *out, enum hook_decision want, const char *reason)
{
	struct hook_answer a = read_out(HOOK_PRE_TOOL_USE, EXIT(0), out, "");

	if (a.failure)
		fail_msg("%s: %s", out, a.failure);
	assert_int_equal(a.decision, want);
	if (reason)
		assert_string_equal(a.reason, reason);
	else
		assert_null(a.reason);
	hook_answer_release(&a);
}

static void matchers(void **state)
{
	assert_true(hook_matches(NULL, "shell"));
	assert_true(hook_matches("", "shell"));
	assert_true(hook_matches("*", "shell"));
	assert_true(hook_matches("read|shell", "shell"));
	assert_true(hook_matches("mcp__*", "mcp__git__push"));
	assert_false(hook_matches("she", "shell"));
	assert_false(hook_matches("shell", "shells"));
	assert_false(hook_matches("read|write", "shell"));
	assert_false(hook_matches("Shell", "shell"));
}

/* The table is whole, and what M6 names beside it is known to be for later. */
static void events(void **state)
{
	static const char *const m6[] = {
		"SessionStart", "InstructionsLoaded", "PreToolUse",   "PostToolUse", "PreCompact",
		"PostCompact",	"SubagentStart",      "SubagentStop", "PreReset",    "Stop"};

	for (size_t i = 0; i < ARRAY_SIZE(m6); i++)
		assert_true((hook_event_find(m6[i]) >= 0) != hook_event_is_later(m6[i]));
	for (int i = 0; i < HOOK_EVENTS_COUNT; i++)
		assert_int_equal(hook_event_find(hook_event_name((enum hook_event)i)), i);
	assert_int_equal(hook_event_find("sessionstart"), -1);
	assert_false(hook_event_is_later("Other"));
}

static void plain_text(void **state)
{
	expect_text(HOOK_SESSION_START, "  two\nlines \n\n", "two\nlines");
	expect_text(HOOK_SESSION_START, "", "");
	expect_text(HOOK_SESSION_START, " \n\t ", "");
	expect_text(HOOK_SESSION_START, "[1, 2]", "[1, 2]");
	/* Nobody waits for the words of these. */
	expect_text(HOOK_PRE_TOOL_USE, "chatter", "");
	expect_text(HOOK_POST_TOOL_USE, "chatter", "");
}

static void texts_in_json(void **state)
{
	expect_text(HOOK_SESSION_START, "\n {\"additionalContext\": \" a\\nb \"}\n", "a\nb");
	expect_text(HOOK_PRE_COMPACT, "{\"instructions\": \"keep x\", \"other\": 3}", "keep x");
	expect_text(HOOK_POST_COMPACT,
		    "{\"hookSpecificOutput\": {\"hookEventName\": \"x\", \"additionalContext\": "
		    "\"c\"}}",
		    "c");
	expect_text(HOOK_SESSION_START, "{}", "");
	expect_text(HOOK_SESSION_START, "{\"additionalContext\": null}", "");
}

static void decisions(void **state)
{
	expect_decision("{\"decision\": \"block\", \"reason\": \"no\"}", HOOK_DENY, "no");
	expect_decision("{\"decision\": \"deny\"}", HOOK_DENY, "no reason was given");
	expect_decision("{\"decision\": \"approve\", \"reason\": \"x\"}", HOOK_ALLOW, NULL);
	expect_decision("{\"hookSpecificOutput\": {\"permissionDecision\": \"deny\", "
			"\"permissionDecisionReason\": \"why\"}}",
			HOOK_DENY, "why");
	expect_decision("{\"hookSpecificOutput\": {\"permissionDecision\": \"allow\"}}", HOOK_ALLOW,
			NULL);
	expect_decision("{}", HOOK_UNDECIDED, NULL);
}

/* exit 2: stderr is the reason; where nothing can be denied it is a failure. */
static void exit_two(void **state)
{
	struct hook_answer a =
		read_out(HOOK_PRE_TOOL_USE, EXIT(2), "ignored", " not\033[1m here\n");

	assert_int_equal(a.decision, HOOK_DENY);
	assert_string_equal(a.reason, "not here");
	assert_int_equal(a.text.len, 0);
	hook_answer_release(&a);
	a = read_out(HOOK_SESSION_START, EXIT(2), "", "no");
	assert_int_equal(a.decision, HOOK_UNDECIDED);
	assert_non_null(strstr(a.failure, "nothing that it could deny: no"));
	hook_answer_release(&a);
}

/* Half of what a hook meant may mean the opposite: a failed one says nothing at all. */
static void failures(void **state)
{
	expect_failure(EXIT(1), "text", "went wrong", "status 1: went wrong");
	expect_failure(EXIT(127), "", "", "status 127");
	expect_failure(9, "text", "", "signal 9");
	expect_failure(EXIT(0), "{\"additionalContext\": \"x\"", "", "begins as JSON and is none");
	expect_failure(EXIT(0), "{\"additionalContext\": \"x\"} trailing", "", "none");
	expect_failure(EXIT(0), "{\"additionalContext\": 5}", "", "additionalContext");
	expect_failure(EXIT(0), "{\"decision\": \"ask\"}", "", "ask");
	expect_failure(EXIT(0), "{\"decision\": \"deny\", \"reason\": [1]}", "", "reason");
	expect_failure(EXIT(0),
		       "{\"decision\": \"deny\", \"hookSpecificOutput\": {\"permissionDecision\": "
		       "\"perhaps\"}}",
		       "", "perhaps");
}

static void required_hooks_deny_when_they_fail(void **state)
{
	struct hook_result r = {.event = HOOK_PRE_TOOL_USE,
				.timed_out = true,
				.limit_ms = 50,
				.required = true,
				.out = "{}",
				.out_len = 2,
				.err = ""};
	struct hook_answer a;

	hook_read(&r, &a);
	assert_int_equal(a.decision, HOOK_DENY);
	assert_non_null(strstr(a.reason, "time limit of 50 ms"));
	assert_non_null(a.failure);
	hook_answer_release(&a);
	r.required = false;
	hook_read(&r, &a);
	assert_int_equal(a.decision, HOOK_UNDECIDED);
	hook_answer_release(&a);
	r.event = HOOK_SESSION_START;
	r.required = true; /* there is nothing to deny */
	hook_read(&r, &a);
	assert_int_equal(a.decision, HOOK_UNDECIDED);
	hook_answer_release(&a);
}

static size_t chars(const char *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

/* M6: 10,000 characters, of any length in bytes; head and tail stay, and characters whole. */
static void long_texts_are_cut(void **state)
{
	static const char *const units[] = {"x", "\xc3\xa4", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80"};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		AUTO_BUF struct buf text = BUF_INIT;

		buf_adds(&text, "HEAD");
		for (int k = 0; k < 9992; k++)
			buf_adds(&text, units[i]);
		buf_adds(&text, "TAIL");
		struct hook_answer whole = read_out(HOOK_SESSION_START, EXIT(0), text.data, "");
		assert_int_equal(whole.text.len, text.len); /* exactly at the limit */
		hook_answer_release(&whole);
		buf_adds(&text, "S");
		struct hook_answer cut = read_out(HOOK_SESSION_START, EXIT(0), text.data, "");
		assert_true(chars(cut.text.data, cut.text.len) <= HOOK_TEXT_CHARS);
		assert_true(chars(cut.text.data, cut.text.len) > HOOK_TEXT_CHARS - 100);
		assert_true(text_is_utf8(cut.text.data, cut.text.len));
		assert_true(text_starts(cut.text.data, "HEAD"));
		assert_true(text_ends(cut.text.data, "TAILS"));
		assert_non_null(strstr(cut.text.data, "left out"));
		hook_answer_release(&cut);
	}
}

/* I12: control sequences and bytes that are no text do not pass. */
static void controls_are_taken_out(void **state)
{
	expect_text(HOOK_SESSION_START,
		    "a\033]0;title\007b\033[2Jc\x01"
		    "d\xff",
		    "abcd\xef\xbf\xbd");
	expect_text(HOOK_SESSION_START, "{\"additionalContext\": \"a\\u001b[31mb\\u202ec\"}",
		    "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matchers),
		cmocka_unit_test(events),
		cmocka_unit_test(plain_text),
		cmocka_unit_test(texts_in_json),
		cmocka_unit_test(decisions),
		cmocka_unit_test(exit_two),
		cmocka_unit_test(failures),
		cmocka_unit_test(required_hooks_deny_when_they_fail),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(controls_are_taken_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
