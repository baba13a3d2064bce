/*
 * test_agent_ladder.c - whole agents: compaction by notes (H4), behind an earlier summary and by hand (H6, H8),
 * undone (X4), and by summaries that do not pass the check (R4).
 */
#include "agent_rig.h"

#include <stdio.h>

#define SUMMARY_OF(files)                                                                          \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nfix the test\n2. " \
	"Key technical concepts:\nC\n3. Files and code sections:\n" files "\n4. Errors and "       \
	"fixes:\nnone\n5. Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. "       \
	"Pending tasks:\nnone\n8. Current work:\na.txt, KEPT-FACT\n9. Optional next "              \
	"step:\nreport\n</summary>"
#define WINDOW	 "\"model\":{\"window\":60000,\"max_output\":2000}"
#define SETTINGS "{" WINDOW ",\"context\":{\"compact\":true,\"collapse\":false}}"
#define FULL	 47000 /* above compact, below closing */

#define CALL(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "\"}"                           \
	}
#define LONG(n, mark)                                                                              \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "; seq 5000\"}"                 \
	}
#define USED(n, mark, tokens)                                                                      \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"echo " mark "\"}", .input = (tokens)        \
	}

/* ---- notes ---- */

/* A pass begins when what is left until the threshold can stay; its answer is there a round later; the
 * compaction then makes no call. */
static void h4_notes_stand_for_the_rounds(void **state)
{
	static const struct fake_step script[] = {
		LONG(1, "OLD-1"),
		LONG(2, "OLD-2"),
		USED(3, "OLD-3", 36000), /* 8,000 to go: a pass begins before the next request */
		USED(4, "NEW-4", 38000),
		{.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = FULL},
		{.calls = REPORT_CALL},
	};
	static const struct fake_step notes = {
		.text = "<section name=\"current state\">NOTED-STATE</section>"
			"<section name=\"worklog\">Hard constraint: never push.</section>",
	};
	struct fake_parent p = {.background = &notes};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"notes\":true,\"collapse\":false}}");
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, 6); /* no call for a summary */
	assert_true(p.n_background >= 1);
	assert_non_null(strstr(buf_str(&p.background_body), "Bring the notes"));
	assert_non_null(strstr(buf_str(&p.background_body), "OLD-1"));
	fake_expect(&p, 4, "OLD-1");
	fake_expect(&p, 5, "NOTED-STATE");
	fake_expect(&p, 5, "Fix the test.");
	fake_expect(&p, 5, "NEW-5");
	fake_expect_not(&p, 5, "OLD-1");
	fake_expect_not(&p, 5, "never push"); /* trap 16 */
	assert_true(fake_event_seen(&p, "compact", "\"kind\":\"notes\""));
	fake_release(&p);
}

/* Where the pass fails the summary is asked for: nothing waits and nothing is lost. */
static void h4_a_failed_pass_falls_through(void **state)
{
	static const struct fake_step script[] = {
		LONG(1, "OLD-1"),
		LONG(2, "OLD-2"),
		USED(3, "OLD-3", 36000),
		USED(4, "NEW-4", 38000),
		{.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = FULL},
		{.text = SUMMARY_OF("a.txt")},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.background = NULL};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"notes\":true,\"collapse\":false}}");
	assert_string_equal(p.result, "done");
	assert_true(p.n_background >= 1);
	fake_expect(&p, 6, "KEPT-FACT");
	assert_true(fake_event_seen(&p, "compact", "\"kind\":\"full\""));
	fake_release(&p);
}

/* ---- by hand ---- */

static void ask_at_4(struct fake_parent *p, size_t index)
{
	if (index == 3)
		fake_control_body(p, "compact", p->arg);
}

static void manual(struct fake_parent *p, const struct fake_step *script, size_t n,
		   const char *wish)
{
	p->on_request = ask_at_4;
	p->arg = (void *)wish;
	rig_run(p, "anthropic", script, n, SETTINGS);
	assert_string_equal(p->result, "done");
}

#define ROUNDS                                                                                     \
	LONG(1, "OLD-1"), LONG(2, "OLD-2"), CALL(3, "NEW-3"),                                      \
	{                                                                                          \
		.calls = "c4 shell {\"command\":\"sleep 0.3; echo NEW-4\"}"                        \
	}

static void h6_a_focus_is_followed(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS, {.text = SUMMARY_OF("a.txt")}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	manual(&p, script, ARRAY_SIZE(script), "{\"focus\":\"keep the schema\"}");
	fake_expect(&p, 4, "keep the schema");
	fake_expect(&p, 5, "KEPT-FACT");
	fake_expect_not(&p, 5, "OLD-1\\n");
	assert_true(rig_transcript_has("\"trigger\":\"manual\""));
	fake_release(&p);
}

/* What lies before the pivot stays, byte for byte. */
static void h8_from_keeps_the_beginning(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS, {.text = SUMMARY_OF("a.txt")}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};
	const char *opening;

	manual(&p, script, ARRAY_SIZE(script), "{\"mode\":\"from\",\"round\":1}");
	assert_true(fake_event_seen(&p, "compact", "\"kind\":\"from\""));
	fake_expect(&p, 4, "so leave it out");
	fake_expect(&p, 5, "KEPT-FACT");
	fake_expect(&p, 5, "NEW-4");
	fake_expect_not(&p, 5, "OLD-1\\n");
	opening = strstr(buf_str(&p.requests[5]), "Use tabs.");
	assert_non_null(opening);
	assert_null(strstr(opening + 1, "Use tabs.")); /* once: the head was not made anew */
	fake_release(&p);
}

/* A word that comes when no compaction waits for it is no wish for one. */
static void x4_a_late_word_compacts_nothing(void **state)
{
	static const struct fake_step script[] = {ROUNDS, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	manual(&p, script, ARRAY_SIZE(script), "{\"accept\":true}");
	assert_true(fake_event_seen(&p, "warning", "no compaction waits"));
	fake_expect(&p, 4, "OLD-1");
	fake_release(&p);
}

static void h8_a_wrong_pivot_is_told(void **state)
{
	static const struct fake_step script[] = {ROUNDS, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	manual(&p, script, ARRAY_SIZE(script), "{\"mode\":\"up_to\",\"round\":1}");
	assert_true(fake_event_seen(&p, "warning", "nothing lies before round 1"));
	fake_expect(&p, 4, "OLD-1");
	fake_release(&p);
}

/* ---- undone ---- */

static void ask_and_undo(struct fake_parent *p, size_t index)
{
	if (index == 3)
		fake_control_body(p, "compact", "{}");
	if (index == 5)
		fake_control_body(p, "compact", "{\"undo\":true}");
}

static void x4_undo(void **state)
{
	static const struct fake_step script[] = {
		ROUNDS,
		{.text = SUMMARY_OF("a.txt")},
		{.calls = "c5 shell {\"command\":\"sleep 0.3; echo NEW-5\"}"},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.on_request = ask_and_undo};

	rig_run(&p, "anthropic", script, ARRAY_SIZE(script), SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect_not(&p, 5, "OLD-1\\n");
	fake_expect(&p, 6, "OLD-1\\n");
	fake_expect(&p, 6, "NEW-5");
	fake_expect_not(&p, 6, "KEPT-FACT");
	assert_true(rig_transcript_has("\"subtype\":\"compact_undone\""));
	fake_release(&p);
}

/* ---- the check ---- */

/* R4: a summary that names files nobody knows is asked for again, with what was wrong; twice, and the
 * window is left in good order. */
static void r4_twice_means_reset(void **state)
{
	static const struct fake_step script[] = {
		LONG(1, "OLD-1"),
		LONG(2, "OLD-2"),
		CALL(3, "NEW-3"),
		CALL(4, "NEW-4"),
		{.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = FULL},
		{.text = SUMMARY_OF("src/made_up.c")},
		{.text = SUMMARY_OF("src/also_made_up.c")},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "limit"); /* with the report that it was forced to */
	fake_expect(&p, 6, "src/made_up.c");
	fake_expect(&p, 6, "could not be used");
	fake_expect(&p, 7, "a reset of the context is wanted");
	fake_expect(&p, 7, "NEW-5");
	assert_true(fake_event_seen(&p, "warning", "did not pass the check"));
	fake_release(&p);
}

static void r4_the_second_summary_counts(void **state)
{
	static const struct fake_step script[] = {
		LONG(1, "OLD-1"),
		LONG(2, "OLD-2"),
		CALL(3, "NEW-3"),
		CALL(4, "NEW-4"),
		{.calls = "c5 shell {\"command\":\"echo NEW-5\"}", .input = FULL},
		{.text = SUMMARY_OF("src/made_up.c")},
		{.text = SUMMARY_OF("a.txt")},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 7, "KEPT-FACT");
	fake_release(&p);
}

/* Trap 11: bare errors of the server near the limit are taken for an overflow, once. */
static void trap_11_bare_500(void **state)
{
	static const struct fake_step script[] = {
		LONG(1, "OLD-1"),
		LONG(2, "OLD-2"),
		CALL(3, "NEW-3"),
		{.calls = "c4 shell {\"command\":\"echo NEW-4\"}", .input = 50000},
		{.kind = FAKE_500},
		{.text = SUMMARY_OF("a.txt")},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, "{" WINDOW ",\"context\":{\"compact_pct\":95}}");
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "KEPT-FACT");
	assert_true(rig_transcript_has("\"trigger\":\"reactive\""));
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(h4_notes_stand_for_the_rounds),
		WITH_FOLDER(h4_a_failed_pass_falls_through),
		WITH_FOLDER(h6_a_focus_is_followed),
		WITH_FOLDER(h8_from_keeps_the_beginning),
		WITH_FOLDER(x4_a_late_word_compacts_nothing),
		WITH_FOLDER(h8_a_wrong_pivot_is_told),
		WITH_FOLDER(x4_undo),
		WITH_FOLDER(r4_twice_means_reset),
		WITH_FOLDER(r4_the_second_summary_counts),
		WITH_FOLDER(trap_11_bare_500),
	};
	return cmocka_run_group_tests_name("agent/ladder", tests, NULL, NULL);
}
