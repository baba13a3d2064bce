/*
 * test_agent_seeing.c - whole agents: what is told of their windows, to the user and to the model (W2, W4, W5,
 * W13, H15, H22).
 *
 * The scripted parent says how full the window is by the usage of its answers.
 */
#include "agent_rig.h"

#include <stdio.h>

#define WINDOW	 "\"model\":{\"window\":60000,\"max_output\":2000}"
#define NO_NOTES "\"notes\":false,\"compact_price\":false"

#define USED(n, tokens)                                                                            \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " #n "\"}", .input = tokens            \
	}

static struct json_object *event_body(const struct fake_parent *p, const char *name)
{
	AUTO_FREE char *start = mem_printf("%s {", name);
	const char *at = p->events.data;
	struct json_object *body = NULL;

	while (at && strncmp(at, start, strlen(start)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		fail_msg("no event '%s'", name);
	at += strlen(name) + 1;
	assert_int_equal(json_parse(at, strcspn(at, "\n"), &body, NULL), 0);
	return body;
}

static int events_of(const struct fake_parent *p, const char *name, const char *part)
{
	AUTO_FREE char *start = mem_printf("%s {", name);
	AUTO_FREE char *all = mem_strndup(p->events.data, p->events.len);
	int n = 0;

	for (char *rest = all, *line; (line = strsep(&rest, "\n"));)
		n += strncmp(line, start, strlen(start)) == 0 && strstr(line, part);
	return n;
}

/* W5: the working space and all thresholds stand at the start. */
static void w5_the_window_at_the_start(void **state)
{
	static const struct fake_step script[] = {{.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{\"model\":{\"window\":200000,\"max_output\":20000}}");
	AUTO_JSON struct json_object *b = event_body(&p, "budget");
	int64_t fixed = json_i64(b, "system", 0) + json_i64(b, "tools", 0);

	assert_true(fixed > 500);
	assert_int_equal(json_i64(b, "working_space", 0), 200000 - fixed - 20000 - 13000);
	assert_int_equal(json_i64(json_obj(b, "thresholds"), "blocking", 0), 177000);
	fake_release(&p);
}

/* Each request's record and each round's event have the thresholds; the round's also how the provider's count
 * divides, and its sum is the provider's number. */
static void w5_the_shares_of_each_answer(void **state)
{
	static const struct fake_step script[] = {USED(1, 9000),
						  {.calls = REPORT_CALL, .input = 9600}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW "}");
	AUTO_JSON struct json_object *b = event_body(&p, "round");
	struct json_object *by = json_obj(b, "by");
	int64_t sum = 0;

	json_object_object_foreach (by, name, value)
		sum += json_object_get_int64(value), (void)name;
	assert_int_equal(sum, 9000);
	assert_true(json_i64(by, "tools", 0) > json_i64(by, "user", 0));
	assert_true(json_has(by, "skills") && json_has(by, "reports") && json_has(by, "memory"));
	assert_int_equal(json_i64(json_obj(b, "thresholds"), "effective", 0), 58000);
	assert_false(json_flag(b, "error", true));
	assert_true(rig_transcript_has("\"no_spawn\":"));
	fake_release(&p);
}

/* W2, H22: each once, however many rounds stay above; the warning names the next step. */
static void w2_reminder_and_warning_are_told_once(void **state)
{
	static const struct fake_step script[] = {
		USED(1, 10000), USED(2, 24000), USED(3, 25000),
		USED(4, 34000), USED(5, 35000), {.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{" NO_NOTES "}}");
	assert_int_equal(events_of(&p, "reminder", "\"threshold\":23200"), 1);
	assert_int_equal(events_of(&p, "warning", "it is compacted at 45000"), 1);
	assert_int_equal(events_of(&p, "round", "\"error\":true"), 3);
	fake_release(&p);
}

/* W2: with automatic compaction off it is repeated at 92 %, and 'baton compact' is named. */
static void w2_the_warning_is_repeated_without_compaction(void **state)
{
	static const struct fake_step script[] = {
		USED(1, 40000), USED(2, 47000),		USED(3, 48000),
		USED(4, 52500), {.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"compact\":false,\"notes\":false}}");
	assert_int_equal(events_of(&p, "warning", "baton compact"), 2);
	assert_int_equal(events_of(&p, "warning", "once more"), 1);
	fake_release(&p);
}

/* W4: no compaction of any kind, and nobody is told to ask for one. */
static void w4_no_compaction_of_any_kind(void **state)
{
	static const struct fake_step script[] = {USED(1, 47500), {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"compact_any\":false}}");
	assert_int_equal(events_of(&p, "warning", "of the context are used"), 1);
	assert_int_equal(events_of(&p, "warning", "baton compact"), 0);
	assert_int_equal(events_of(&p, "compact", ""), 0);
	fake_release(&p);
}

/* W13: each mark once, in the message of the results; only where the role asks; no call to finish. */
static void w13_budget_notes(void **state)
{
	static const struct fake_step script[] = {
		USED(1, 5000),	USED(2, 15000),		USED(3, 16000),
		USED(4, 30000), {.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"budget_notes\":true," NO_NOTES "}}");
	fake_expect_not(&p, 1, "[Context window:");
	fake_expect(&p, 2, "[Context window: 25 % are used (15");
	fake_expect(&p, 3, "[Context window: 25 %");
	fake_expect_not(&p, 3, "[Context window: 50 %");
	fake_expect(&p, 4, "[Context window: 50 %");
	for (int i = 0; i < 2; i++) { /* once in the conversation */
		const char *at = strstr(buf_str(&p.requests[4]), i ? "50 % are" : "25 % are");
		assert_non_null(at);
		assert_null(strstr(at + 1, i ? "50 % are" : "25 % are"));
	}
	fake_expect_not(&p, 4, "report now");
	fake_release(&p);
}

static void w13_only_if_the_role_asks(void **state)
{
	static const struct fake_step script[] = {
		USED(1, 5000), USED(2, 30000), {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{" NO_NOTES "}}");
	fake_expect_not(&p, 2, "[Context window:");
	fake_release(&p);
}

#define SUMMARY                                                                                    \
	"<summary>\n1. Primary request and intent:\nfix the test\n2. Key technical concepts:\nC\n" \
	"3. Files and code sections:\nnone\n4. Errors and fixes:\nnone\n5. Problem "               \
	"solving:\nnone\n"                                                                         \
	"6. All user messages:\nFix the test.\n7. Pending tasks:\nnone\n8. Current work:\nthe "    \
	"test\n"                                                                                   \
	"9. Optional next step:\nreport\n</summary>"
#define LONG(n)                                                                                    \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " #n "; seq 5000\"}"                   \
	}
#define PRICED                                                                                     \
	"\"model\":{\"window\":60000,\"max_output\":2000,\"price\":{\"input\":3,\"output\":15,"    \
	"\"cache_read\":0.3,\"cache_write\":3.75}}"

/* H15: the span's names, the cost, a summary near its reserve, and the return at the end. */
static void h15_what_a_compaction_tells(void **state)
{
	static const struct fake_step script[] = {
		LONG(1),       LONG(2),	       USED(3, 100),
		USED(4, 100),  USED(5, 47000), {.text = SUMMARY, .input = 47000, .output = 1900},
		USED(6, 9000), USED(7, 9100),  {.calls = REPORT_CALL, .input = 9200},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script,
	    "{" PRICED ",\"context\":{" NO_NOTES ",\"snip\":false,\"collapse\":false,"
	    "\"clear_share\":100}}");
	AUTO_JSON struct json_object *c = event_body(&p, "compact");
	AUTO_JSON struct json_object *r = event_body(&p, "compact_return");

	assert_string_equal(json_str(c, "trigger_source", ""), "threshold");
	assert_int_equal(json_i64(c, "input_tokens", 0), 47000);
	assert_int_equal(json_i64(c, "output_tokens", 0), 1900);
	assert_true(json_i64(c, "messages_compacted", 0) >= 4);
	assert_true(json_has(c, "duration_ms") && json_i64(c, "cache_lost", 0) > 0);
	assert_true(json_double(c, "call_cost", 0) > 0.02 && json_double(c, "next_cost", 0) > 0);
	int64_t saved = json_i64(c, "before", 0) - json_i64(c, "after", 0);
	assert_int_equal(json_i64(r, "saved", 0), saved);
	assert_int_equal(json_i64(r, "rounds", 0), 3);
	assert_int_equal(json_i64(r, "tokens", 0), 3 * saved);
	double gained = 3.0 * (double)saved * 0.3e-6;
	assert_true(json_double(r, "gained", 0) > gained * 0.99 &&
		    json_double(r, "gained", 0) < gained * 1.01);
	assert_true(json_double(r, "return", 1) < 0); /* three rounds do not pay for it */
	assert_int_equal(events_of(&p, "warning", "reserved for it"), 1);
	fake_release(&p);
}

/* H10, H15: an opened breaker is an alarm: here the window is full again after each compaction. */
static void h15_an_open_breaker_is_an_alarm(void **state)
{
	static struct fake_step script[40];
	struct fake_parent p = {.pid = 0};
	size_t n = 0;

	script[n++] = (struct fake_step)USED(1, 100);
	while (n < 39) {
		script[n++] = (struct fake_step){.calls = "c9 shell {\"command\":\"date +%N\"}",
						 .input = 47000};
		script[n++] = (struct fake_step){.text = SUMMARY};
	}
	rig_run(&p, "anthropic", script, n, "{" WINDOW ",\"context\":{" NO_NOTES "}}");
	assert_int_equal(events_of(&p, "alarm", "\"kind\":\"breaker\""), 1);
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(w5_the_window_at_the_start),
		WITH_FOLDER(w5_the_shares_of_each_answer),
		WITH_FOLDER(w2_reminder_and_warning_are_told_once),
		WITH_FOLDER(w2_the_warning_is_repeated_without_compaction),
		WITH_FOLDER(w4_no_compaction_of_any_kind),
		WITH_FOLDER(w13_budget_notes),
		WITH_FOLDER(w13_only_if_the_role_asks),
		WITH_FOLDER(h15_what_a_compaction_tells),
		WITH_FOLDER(h15_an_open_breaker_is_an_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
