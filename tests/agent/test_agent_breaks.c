/*
 * test_agent_breaks.c - whole agents that compact at natural breaks above proactive_pct (H22): at which, and
 * with which focus; not in mid-work and not below.
 */
#include "agent_rig.h"

#include <fcntl.h>

#include "base/file.h"

#define SUMMARY                                                                                    \
	"<analysis>dropped</analysis><summary>\n1. Primary request and intent:\nfix the test\n2. " \
	"Key technical concepts:\nC\n3. Files and code sections:\na.txt\n4. Errors and "           \
	"fixes:\nnone\n5. Problem solving:\nnone\n6. All user messages:\nFix the test.\n7. "       \
	"Pending tasks:\nnone\n8. Current work:\nKEPT-FACT\n9. Optional next "                     \
	"step:\nreport\n</summary>"
/* effective 58,000: 70 % are 40,600, and the threshold is at 45,000. */
#define SETTINGS(knobs)                                                                            \
	"{\"role\":{\"tools\":[\"read\",\"write\",\"shell\",\"notes\"]},"                          \
	"\"model\":{\"window\":60000,\"max_output\":2000},"                                        \
	"\"context\":{\"compact\":true,\"collapse\":false" knobs "}}"
#define LOW  38000
#define HIGH 42000

#define SHELL(n, command, tokens)                                                                  \
	{                                                                                          \
		.calls = "c" #n " shell {\"command\":\"" command "\"}", .input = (tokens)          \
	}
#define NOTES(n, json, tokens)                                                                     \
	{                                                                                          \
		.calls = "c" #n " notes {" json "}", .input = (tokens)                             \
	}
#define TICK(n, item, tokens)                                                                      \
	NOTES(n, "\"operation\":\"plan_tick\",\"numbers\":[" #item "]", tokens)
#define PLAN  "\"operation\":\"plan_write\",\"plan\":\"- [ ] s1\\n- [ ] s2\\n- [ ] s3\""
#define LONG  "echo OLD-1; seq 5000"
#define QUIET SHELL(2, "echo OLD-2; seq 5000", 0), SHELL(3, "echo NEW-3", LOW)

static bool compacted(const struct fake_parent *p)
{
	return fake_event_seen(p, "compact", "\"trigger\":\"break\"");
}

/* Ticked below 70 %: nothing. Above it in mid-work: nothing. Ticked above it: compacted. */
static void h22_at_a_break_above_the_share(void **state)
{
	static const struct fake_step script[] = {
		SHELL(1, LONG, 0),
		QUIET,
		NOTES(4, PLAN, LOW),
		TICK(5, 1, LOW + 500),
		SHELL(6, "echo NEW-6", HIGH),
		SHELL(7, "echo NEW-7", HIGH + 500),
		TICK(8, 2, HIGH + 1000),
		{.text = SUMMARY},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS(",\"proactive_pct\":70"));
	assert_string_equal(p.result, "done");
	assert_int_equal(p.n_requests, ARRAY_SIZE(script));
	fake_expect(&p, 5, "OLD-1\\n");
	fake_expect(&p, 7, "OLD-1\\n");
	fake_expect(&p, 9, "KEPT-FACT");
	fake_expect_not(&p, 9, "OLD-1\\n");
	assert_true(compacted(&p));
	fake_release(&p);
}

/* The default, and a break that is switched off. */
static void h22_never_where_it_is_off(void **state)
{
	static const char *const settings[] = {
		SETTINGS(""), SETTINGS(",\"proactive_pct\":70,\"break_task\":false")};
	static const struct fake_step script[] = {SHELL(1, LONG, 0),
						  QUIET,
						  NOTES(4, PLAN, HIGH),
						  TICK(5, 1, HIGH),
						  {.calls = REPORT_CALL}};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		struct fake_parent p = {.pid = 0};

		RUN(&p, script, settings[i]);
		assert_string_equal(p.result, "done");
		fake_expect(&p, 5, "OLD-1\\n");
		assert_false(compacted(&p));
		fake_release(&p);
		rig_teardown(NULL);
		rig_setup(NULL);
	}
}

#define PASSES                                                                                     \
	SHELL(1, LONG, 0), QUIET, SHELL(4, "test -e done", HIGH), SHELL(5, "touch done", HIGH),    \
		SHELL(6, "test -e done", HIGH)

static void h22_when_a_failing_command_passes(void **state)
{
	static const struct fake_step script[] = {
		PASSES, {.text = SUMMARY}, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS(",\"proactive_pct\":70"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 5, "OLD-1\\n"); /* a failure is none */
	fake_expect(&p, 7, "KEPT-FACT");
	assert_true(compacted(&p));
	fake_release(&p);
}

static void h22_not_when_that_is_off(void **state)
{
	static const struct fake_step script[] = {PASSES, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS(",\"proactive_pct\":70,\"break_pass\":false"));
	assert_string_equal(p.result, "done");
	assert_false(compacted(&p));
	fake_release(&p);
}

#define REPEATED                                                                                   \
	SHELL(1, LONG, 0), QUIET, SHELL(4, "echo SAME", HIGH), SHELL(5, "echo SAME", HIGH),        \
		SHELL(6, "echo SAME", HIGH)

static void h22_when_calls_repeat(void **state)
{
	static const struct fake_step script[] = {
		REPEATED, {.text = SUMMARY}, {.calls = REPORT_CALL}};
	static const struct fake_step off[] = {REPEATED, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0}, q = {.pid = 0};

	RUN(&p, script, SETTINGS(",\"proactive_pct\":70"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 7, "KEPT-FACT");
	assert_true(compacted(&p));
	fake_release(&p);
	rig_teardown(NULL);
	rig_setup(NULL);
	RUN(&q, off, SETTINGS(",\"proactive_pct\":70,\"break_repeat\":false"));
	assert_string_equal(q.result, "done");
	assert_false(compacted(&q));
	fake_release(&q);
}

/* The agent's own repository is a folder: a commit is another name in the branch's file. */
static char *with_git(const char *knobs)
{
	AUTO_FREE char *git = rig_path("git");
	AUTO_FREE char *heads = rig_path("git/refs/heads");
	AUTO_FREE char *branch = rig_path("git/refs/heads/work");
	AUTO_FREE char *head = rig_path("git/HEAD");

	assert_int_equal(file_mkdirs(heads, 0700, NULL), 0);
	assert_int_equal(
		file_write_atomic(AT_FDCWD, head, "ref: refs/heads/work\n", 21, 0600, NULL), 0);
	assert_int_equal(file_write_atomic(AT_FDCWD, branch, "1111\n", 5, 0600, NULL), 0);
	return mem_printf("{\"dirs\":{\"git\":\"%s\"},\"head_ref\":\"refs/heads/work\",%s", git,
			  knobs + 1);
}

#define COMMITTED                                                                                  \
	SHELL(1, LONG, 0), QUIET, SHELL(4, "echo NEW-4", HIGH),                                    \
		SHELL(5, "echo 2222 > ../git/refs/heads/work", HIGH)

static void h22_when_a_commit_was_made(void **state)
{
	static const struct fake_step script[] = {
		COMMITTED, {.text = SUMMARY}, {.calls = REPORT_CALL}};
	static const struct fake_step off[] = {COMMITTED, {.calls = REPORT_CALL}};
	struct fake_parent p = {.pid = 0}, q = {.pid = 0};
	AUTO_FREE char *on_settings = with_git(SETTINGS(",\"proactive_pct\":70"));

	RUN(&p, script, on_settings);
	assert_string_equal(p.result, "done");
	fake_expect(&p, 6, "KEPT-FACT");
	assert_true(compacted(&p));
	fake_release(&p);
	rig_teardown(NULL);
	rig_setup(NULL);
	AUTO_FREE char *off_settings =
		with_git(SETTINGS(",\"proactive_pct\":70,\"break_commit\":false"));
	RUN(&q, off, off_settings);
	assert_string_equal(q.result, "done");
	assert_false(compacted(&q));
	fake_release(&q);
}

/* H22's focus is made by rule: what is in work, what was ruled out, what fails. */
static void h22_focus(void **state)
{
	static const struct fake_step script[] = {
		SHELL(1, LONG, 0),
		QUIET,
		{.calls = "c4 write {\"path\":\"work.c\",\"content\":\"x\"}", .input = LOW},
		NOTES(5,
		      "\"operation\":\"add\",\"field\":\"rejected\",\"lines\":[\"a lock: too "
		      "slow\"]",
		      LOW),
		NOTES(6, "\"operation\":\"add\",\"field\":\"files\",\"lines\":[\"key.h\"]", LOW),
		SHELL(7, "./old-test", LOW),
		SHELL(8, "./failing-test", LOW),
		NOTES(9, PLAN, LOW),
		TICK(10, 1, HIGH),
		{.text = SUMMARY},
		{.calls = REPORT_CALL},
	};
	struct fake_parent p = {.pid = 0};

	RUN(&p, script, SETTINGS(",\"proactive_pct\":70"));
	assert_string_equal(p.result, "done");
	fake_expect(&p, 10, "What matters most now");
	fake_expect(&p, 10, "the work on \\\"work.c\\\"");
	fake_expect(&p, 10, "the failing command \\\"./failing-test\\\"");
	fake_expect(&p, 10, "the files key.h");
	fake_expect(&p, 10, "ruled out: a lock: too slow");
	fake_expect(&p, 10, "what fails: ./old-test");
	fake_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(h22_at_a_break_above_the_share),
		WITH_FOLDER(h22_never_where_it_is_off),
		WITH_FOLDER(h22_when_a_failing_command_passes),
		WITH_FOLDER(h22_not_when_that_is_off),
		WITH_FOLDER(h22_when_calls_repeat),
		WITH_FOLDER(h22_when_a_commit_was_made),
		WITH_FOLDER(h22_focus),
	};
	return cmocka_run_group_tests_name("agent/breaks", tests, NULL, NULL);
}
