/*
 * test_agent_hooks.c - whole agents with hooks (M6): when they ask, and what of the answers stands in which
 * request. The scripted parent answers as a real one would; what it runs is tests/integration/test_hooks.py.
 */
#include "agent_rig.h"

#include <stdio.h>

#define SUMMARY                                                                                    \
	"<summary>\n1. Primary request and intent:\nfix\n2. Key technical concepts:\nC\n3. "       \
	"Files and code sections:\na.txt\n4. Errors and fixes:\nnone\n5. Problem "                 \
	"solving:\nnone\n6. All user messages:\nFix the test.\n7. Pending tasks:\nnone\n8. "       \
	"Current work:\na.txt, KEPT-FACT\n9. Optional next step:\nreport\n</summary>"
#define HOOK(event) "{\"event\":\"" event "\",\"matcher\":\"*\"}"
#define WINDOW                                                                                     \
	"\"model\":{\"window\":60000,\"max_output\":2000},\"context\":{\"compact\":true,"          \
	"\"collapse\":false}"
#define SETTINGS                                                                                   \
	"{" WINDOW                                                                                 \
	",\"hooks\":[" HOOK("SessionStart") "," HOOK("PreCompact") "," HOOK("PostCompact") "]}"
#define FULL	  47000 /* above compact, below closing */
#define FULLER	  54000 /* above closing */
#define SAY(text) "{\"texts\":[{\"from\":\"project\",\"text\":\"" text "\"}]}"

#define CALL(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "\"}"                           \
	}
#define LONG(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "; seq 5000\"}"                 \
	}
#define HISTORY LONG(1, "OLD-1"), LONG(2, "OLD-2"), CALL(3, "NEW-3"), CALL(4, "NEW-4")
#define FILLED(n)                                                                                  \
	{                                                                                          \
		.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = n                       \
	}

static size_t asked(const struct fake_parent *p, const char *line)
{
	size_t n = 0;

	for (const char *at = buf_str(&p->hooks); (at = strstr(at, line)); at++)
		n++;
	return n;
}

static const char *speak(struct fake_parent *p, const char *event, const char *subject,
			 struct json_object *body)
{
	if (!strcmp(event, "PreCompact"))
		return SAY("WISH-FACT");
	if (!strcmp(event, "PostCompact"))
		return SAY("POST-FACT");
	return !strcmp(subject, "startup") ? SAY("FIRST-FACT") : SAY("AGAIN-FACT");
}

/* PreCompact's words stand in the request for the summary and in no other; SessionStart's in the first message
 * until a newer one takes their place; PostCompact's behind all. */
static void texts_stand_where_they_belong(void **state)
{
	static const struct fake_step script[] = {
		HISTORY, FILLED(FULL), {.text = SUMMARY, .input = FULL}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = speak};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_string_equal(buf_str(&p.hooks), "SessionStart startup\nPreCompact auto\n"
					       "SessionStart compact\nPostCompact auto\n");
	fake_expect(&p, 0, "FIRST-FACT");
	fake_expect(&p, 0, "<hook_output event=\\\"SessionStart\\\" from=\\\"project");
	fake_expect_not(&p, 4, "WISH-FACT");
	fake_expect(&p, 5, "WISH-FACT");
	fake_expect(&p, 5, "Do not call any tool.\""); /* still its last words (H5) */
	fake_expect_not(&p, 6, "WISH-FACT");
	fake_expect_not(&p, 6, "FIRST-FACT");
	fake_expect(&p, 6, "AGAIN-FACT");
	fake_expect(&p, 6, "POST-FACT");
	fake_expect(&p, 6, "KEPT-FACT");
	assert_true(strstr(buf_str(&p.requests[6]), "POST-FACT") >
		    strstr(buf_str(&p.requests[6]), "NEW-5")); /* W11: at the end */
	fake_release(&p);
}

static const char *silent_later(struct fake_parent *p, const char *event, const char *subject,
				struct json_object *body)
{
	return !strcmp(subject, "startup") ? SAY("FIRST-FACT") : "{\"texts\":[]}";
}

/* What was said at the start comes back where nothing newer is said. */
static void the_first_words_come_back(void **state)
{
	static const struct fake_step script[] = {
		HISTORY, FILLED(FULL), {.text = SUMMARY, .input = FULL}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = silent_later};

	RUN(&p, script, SETTINGS);
	fake_expect(&p, 6, "FIRST-FACT");
	fake_expect(&p, 6, "KEPT-FACT");
	fake_release(&p);
}

static const char *veto(struct fake_parent *p, const char *event, const char *subject,
			struct json_object *body)
{
	return strcmp(event, "PreCompact") ? "{\"texts\":[]}"
					   : "{\"decision\":\"deny\",\"reason\":\"VETO-REASON\"}";
}

/* X1: below the point where the agent would have to end, a veto holds, and the next request leaves whole. */
static void a_veto_puts_off(void **state)
{
	static const struct fake_step script[] = {HISTORY, FILLED(FULL), {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = veto};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 6);
	fake_expect(&p, 5, "OLD-1");
	assert_true(fake_event_seen(&p, "warning", "VETO-REASON"));
	fake_release(&p);
}

/* X1: above it the compaction is made all the same. */
static void a_veto_cannot_end_the_work(void **state)
{
	static const struct fake_step script[] = {HISTORY,
						  FILLED(FULLER),
						  {.text = SUMMARY, .input = FULLER},
						  {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = veto};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "KEPT-FACT");
	assert_true(fake_event_seen(&p, "warning", "without it no request is possible"));
	fake_release(&p);
}

/* H9: the provider does not take the request; there is nothing to put off. */
static void a_reactive_compaction_cannot_be_vetoed(void **state)
{
	static const struct fake_step script[] = {HISTORY,
						  {.kind = FAKE_FAIL, .text = "overflow"},
						  {.text = SUMMARY},
						  {.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = veto};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	assert_int_equal(asked(&p, "PreCompact reactive"), 1);
	fake_expect(&p, 6, "KEPT-FACT");
	fake_release(&p);
}

/* No hook, no question: the list in the start document decides, with its matchers. */
static void nothing_is_asked_in_vain(void **state)
{
	static const struct fake_step script[] = {CALL(1, "x"), {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script,
	    "{\"hooks\":[{\"event\":\"PreToolUse\",\"matcher\":\"write|edit\"},"
	    "{\"event\":\"SessionStart\",\"matcher\":\"compact\"}]}");
	assert_string_equal(p.result, "done");
	assert_string_equal(buf_str(&p.hooks), "");
	fake_release(&p);
}

/* One call, asked before and told after; report is asked about never. */
static void tools_are_asked_and_told(void **state)
{
	static const struct fake_step script[] = {CALL(1, "x"), {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{\"hooks\":[" HOOK("PreToolUse") "," HOOK("PostToolUse") "]}");
	assert_string_equal(p.result, "done");
	assert_string_equal(buf_str(&p.hooks), "PreToolUse shell\nPostToolUse shell\n");
	fake_release(&p);
}

static const char *deny_one(struct fake_parent *p, const char *event, const char *subject,
			    struct json_object *body)
{
	bool first = !strcmp(json_str(body, "tool_use_id", ""), "c1");

	return first ? "{\"decision\":\"deny\",\"reason\":\"DENY-REASON\",\"from\":\"managed\"}"
		     : "{\"decision\":\"allow\"}";
}

/* Of two calls in one answer one is denied: each has its result, and the other one runs (I2). */
static void a_denied_call_has_its_result(void **state)
{
	static const struct fake_step script[] = {
		{.calls = "c1 shell {\"command\":\"touch denied.txt\"}\n"
			  "c2 shell {\"command\":\"ls; echo RAN-2\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.on_hook = deny_one};

	RUN(&p, script, "{\"hooks\":[" HOOK("PreToolUse") "]}");
	assert_string_equal(p.result, "done");
	fake_expect(&p, 1,
		    "Not run: a hook of the managed configuration denies this call. It says: "
		    "DENY-REASON");
	fake_expect(&p, 1, "RAN-2");
	fake_expect_not(&p, 1, "denied.txt\\nRAN"); /* ls saw no such file */
	assert_true(fake_event_seen(&p, "tool", "\"ok\":false"));
	fake_release(&p);
}

static const char *mute(struct fake_parent *p, const char *event, const char *subject,
			struct json_object *body)
{
	fake_control(p, "stop", "the user wants it");
	return NULL;
}

/* A stop is seen while a hook runs, at each place where one is waited for. */
static void a_stop_ends_the_wait(void **state)
{
	static const struct fake_step script[] = {CALL(1, "x"), CALL(2, "y")};
	static const char *const events[] = {HOOK("SessionStart"), HOOK("InstructionsLoaded"),
					     HOOK("PreToolUse"), HOOK("PostToolUse")};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		AUTO_FREE char *members = mem_printf("{\"hooks\":[%s]}", events[i]);
		struct fake_parent p = {.on_hook = mute};

		RUN(&p, script, members);
		assert_string_equal(p.result, "stopped");
		assert_string_equal(p.reason, "the user wants it");
		fake_release(&p);
		rig_teardown(state);
		rig_setup(state);
	}
}

static char long_text[12000];

static const char *talk(struct fake_parent *p, const char *event, const char *subject,
			struct json_object *body)
{
	return long_text;
}

/* X1: ten thousand characters are a quarter of a small window, and a hook gets a tenth. */
static void a_small_window_takes_a_part(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL}};
	struct fake_parent p = {.on_hook = talk};
	size_t n = (size_t)snprintf(long_text, sizeof(long_text),
				    "{\"texts\":[{\"from\":\"user\",\"text\":\"HEAD ");

	while (n < 10000)
		n += (size_t)snprintf(long_text + n, sizeof(long_text) - n, "word%zu ", n);
	snprintf(long_text + n, sizeof(long_text) - n, "TAIL\"}]}");
	RUN(&p, script,
	    "{\"model\":{\"window\":12000,\"max_output\":1000},\"hooks\":[" HOOK(
		    "SessionStart") "]}");
	assert_string_equal(p.result, "done");
	fake_expect(&p, 0, "HEAD");
	fake_expect(&p, 0, "TAIL");
	const char *from = strstr(buf_str(&p.requests[0]), "<hook_output");
	const char *to = strstr(buf_str(&p.requests[0]), "</hook_output>");
	assert_in_range(to - from, 1000, 6000);
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(texts_stand_where_they_belong),
		WITH_FOLDER(the_first_words_come_back),
		WITH_FOLDER(a_veto_puts_off),
		WITH_FOLDER(a_veto_cannot_end_the_work),
		WITH_FOLDER(a_reactive_compaction_cannot_be_vetoed),
		WITH_FOLDER(nothing_is_asked_in_vain),
		WITH_FOLDER(tools_are_asked_and_told),
		WITH_FOLDER(a_denied_call_has_its_result),
		WITH_FOLDER(a_stop_ends_the_wait),
		WITH_FOLDER(a_small_window_takes_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
