/*
 * test_display.c - the fold over a journal's records, plain lines, and the table (issue 2, journal
 * and views; I12).
 */
#include "tests/base/test_base.h"

#include "base/clock.h"
#include "base/text.h"
#include "orchestrator/view/display.h"

#define T0 "2026-11-30T10:00:00.000Z"

/* Folds one record given as its members and returns its plain line, "" for none. Caller frees. */
static char *fold(struct display *v, const char *t, const char *members)
{
	AUTO_FREE char *text = mem_printf("{\"t\":\"%s\",%s}", t, members);
	AUTO_JSON struct json_object *record = NULL;
	struct buf line = BUF_INIT;

	if (json_parse(text, strlen(text), &record, NULL) < 0)
		fail_msg("%s", text);
	display_fold(v, record, &line);
	return line.data ? buf_take(&line) : mem_strdup("");
}

static void says(struct display *v, const char *members, const char *want)
{
	AUTO_FREE char *line = fold(v, T0, members);

	assert_string_equal(line, want);
}

static void test_each_record_type(void **state)
{
	static const struct {
		const char *record, *line;
	} rows[] = {
		{"\"type\":\"run.started\",\"run\":\"r1\",\"command\":\"run\",\"model\":\"p/m\","
		 "\"window\":200000,\"box\":\"landlock\"",
		 "baton run r1 on p/m, window 200000, box: landlock\n"},
		{"\"type\":\"agent.spawned\",\"agent\":\"a1\",\"role\":\"lead\"",
		 "a1: lead started\n"},
		{"\"type\":\"agent.budget\",\"agent\":\"a1\",\"data\":{\"window\":200000,"
		 "\"working_space\":152000}",
		 "a1: working space 152000 of a window of 200000 tokens\n"}, /* W5 */
		{"\"type\":\"agent.state\",\"agent\":\"a1\",\"data\":{\"state\":\"model\"}", ""},
		{"\"type\":\"agent.round\",\"agent\":\"a1\",\"data\":{\"round\":2,\"used\":50000,"
		 "\"window\":200000}",
		 ""},
		{"\"type\":\"agent.tool\",\"agent\":\"a1\",\"data\":{\"tool\":\"shell\","
		 "\"summary\":\"make\","
		 "\"ok\":true}",
		 "a1: make\n"},
		{"\"type\":\"agent.tool\",\"agent\":\"a1\",\"data\":{\"tool\":\"read\",\"ok\":"
		 "false}",
		 "a1: read (failed)\n"},
		{"\"type\":\"agent.text\",\"agent\":\"a1\",\"data\":{\"text\":\"I look.\"}",
		 "a1: I look.\n"},
		{"\"type\":\"agent.warning\",\"agent\":\"a1\",\"data\":{\"message\":\"low\"}",
		 "a1: warning: low\n"},
		{"\"type\":\"agent.warning\",\"agent\":\"a1\",\"message\":\"of the parent\"",
		 "a1: warning: of the parent\n"},
		{"\"type\":\"agent.retry\",\"agent\":\"a1\",\"data\":{\"reason\":\"rate_limit\"}",
		 "a1: asking again: rate_limit\n"},
		{"\"type\":\"call.settled\",\"agent\":\"a1\",\"fresh\":10,\"cache_read\":20,"
		 "\"cache_write\":30,\"output\":5,\"cost\":0.5,\"total_cost\":0.75",
		 ""},
		{"\"type\":\"worktree.kept\",\"agent\":\"a1\",\"reason\":\"merge in progress\"",
		 "a1: worktree kept: merge in progress\n"},
		{"\"type\":\"worktree.failed\",\"agent\":\"a1\",\"message\":\"no space\"",
		 "a1: no space\n"},
		{"\"type\":\"worktree.setup_failed\",\"agent\":\"a1\",\"message\":\"exit 2\"",
		 "a1: exit 2\n"},
		{"\"type\":\"gateway.died\",\"reason\":\"was killed\"",
		 "the gateway was killed; it is started again\n"},
		{"\"type\":\"budget.reached\"", "a budget is reached\n"},
		{"\"type\":\"run.stopping\",\"reason\":\"interrupted\"", "stopping: interrupted\n"},
		{"\"type\":\"agent.ended\",\"agent\":\"a1\",\"status\":\"done\",\"rounds\":3",
		 "a1: done after 3 rounds\n"},
		{"\"type\":\"agent.ended\",\"agent\":\"a1\",\"status\":\"done\",\"rounds\":1",
		 "a1: done after 1 round\n"},
		{"\"type\":\"run.finished\",\"status\":\"succeeded\"", ""},
		{"\"type\":\"of.tomorrow\",\"agent\":\"a1\"", ""},
		{"\"type\":\"of.tomorrow\"", ""},
	};
	struct display v;

	display_init(&v);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		says(&v, rows[i].record, rows[i].line);
	assert_int_equal(v.n_agents, 1);
	const struct display_agent *a = &v.agents[0];
	assert_string_equal(a->role, "lead");
	assert_string_equal(a->state, "done");
	assert_string_equal(a->action, "exit 2");
	assert_int_equal(a->round, 2);
	assert_int_equal(a->used, 50000);
	assert_int_equal(a->input, 60);
	assert_int_equal(a->output, 5);
	assert_true(a->over);
	assert_true(v.cost == 0.75);
	assert_true(v.finished);
	assert_string_equal(v.status, "succeeded");
	display_release(&v);
}

static void test_records_without_their_fields(void **state)
{
	static const char *const types[] = {
		"run.started",	   "run.stopping",  "run.finished", "gateway.died", "agent.spawned",
		"agent.round",	   "agent.budget",  "agent.tool",   "agent.state",  "agent.text",
		"agent.warning",   "agent.retry",   "agent.ended",  "call.settled", "worktree.kept",
		"worktree.failed", "budget.reached"};
	struct display v;

	display_init(&v);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		AUTO_FREE char *bare = mem_printf("\"type\":\"%s\"", types[i]);
		AUTO_FREE char *odd = mem_printf("\"type\":\"%s\",\"agent\":\"a1\",\"data\":[1],"
						 "\"status\":5,\"reason\":{},\"role\":null",
						 types[i]);
		free(fold(&v, "no stamp", bare));
		free(fold(&v, "", odd));
	}
	assert_int_equal(v.n_agents, 1);
	display_release(&v);
}

/* I12: nothing of a model, a tool or a server moves the cursor. */
static void test_control_characters_are_removed(void **state)
{
#define EVIL "x\\u001b[2J\\u009b1m\\u0007\\r\\ny\\u202ez"
	static const char *const records[] = {
		"\"type\":\"run.started\",\"run\":\"" EVIL "\",\"command\":\"" EVIL
		"\",\"model\":\"" EVIL "\",\"box\":\"" EVIL "\"",
		"\"type\":\"run.stopping\",\"reason\":\"" EVIL "\"",
		"\"type\":\"gateway.died\",\"reason\":\"" EVIL "\"",
		"\"type\":\"agent.spawned\",\"agent\":\"" EVIL "\",\"role\":\"" EVIL "\"",
		"\"type\":\"agent.state\",\"agent\":\"" EVIL "\",\"data\":{\"state\":\"" EVIL "\"}",
		"\"type\":\"agent.tool\",\"agent\":\"a\",\"data\":{\"summary\":\"" EVIL "\"}",
		"\"type\":\"agent.text\",\"agent\":\"a\",\"data\":{\"text\":\"" EVIL "\"}",
		"\"type\":\"agent.warning\",\"agent\":\"a\",\"data\":{\"message\":\"" EVIL "\"}",
		"\"type\":\"agent.retry\",\"agent\":\"a\",\"data\":{\"reason\":\"" EVIL "\"}",
		"\"type\":\"worktree.kept\",\"agent\":\"a\",\"reason\":\"" EVIL "\"",
		"\"type\":\"worktree.failed\",\"agent\":\"a\",\"message\":\"" EVIL "\"",
		"\"type\":\"agent.ended\",\"agent\":\"a\",\"status\":\"" EVIL
		"\",\"reason\":\"" EVIL "\"",
	};
	struct display v;
	AUTO_BUF struct buf table = BUF_INIT;
	int lines;

	display_init(&v);
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		AUTO_FREE char *line = fold(&v, T0, records[i]);
		size_t n = strlen(line);
		assert_true(n == 0 || strchr(line, '\n') == line + n - 1);
		for (const char *p = line; n > 0 && p < line + n - 1; p++)
			assert_true((unsigned char)*p >= 0x20);
		assert_null(strstr(line, "\xc2\x9b"));
		assert_null(strstr(line, "\xe2\x80\xae"));
	}
	display_draw(&v, 200, 50, v.now_ms, false, &table, &lines);
	for (const char *p = buf_str(&table); (p = strchr(p, '\033')); p++)
		assert_true(text_starts(p, "\033[K\n"));
	display_release(&v);
}

/* Plain lines say all of it, the table's column only its start. */
static void test_long_texts(void **state)
{
	struct display v;
	AUTO_BUF struct buf text = BUF_INIT;

	for (int i = 0; i < 400; i++)
		buf_adds(&text, "\xc3\xa9");
	AUTO_FREE char *record = mem_printf(
		"\"type\":\"agent.warning\",\"agent\":\"a1\",\"data\":{\"message\":\"%s\"}",
		buf_str(&text));
	AUTO_FREE char *want = mem_printf("a1: warning: %s\n", buf_str(&text));
	display_init(&v);
	says(&v, record, want);
	assert_true(strlen(v.agents[0].action) < sizeof(v.agents[0].action));
	assert_true(text_is_utf8(v.agents[0].action, strlen(v.agents[0].action)));
	for (int i = 0; i < 3; i++)
		says(&v, "\"type\":\"agent.state\",\"agent\":\"a-name-longer-than-its-field\"", "");
	assert_int_equal(v.n_agents, 2);
	display_release(&v);
}

/* ---- the table ---- */

/* Columns of a line as a terminal counts the characters that are used here. */
static int columns_of(const char *line, size_t n)
{
	int columns = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)line[i];
		if ((c & 0xc0) != 0x80)
			columns += c >= 0xe3 ? 2 : 1; /* CJK and emoji are wide */
	}
	return columns;
}

static void check_table(const struct display *v, int columns, int rows, int want_lines)
{
	AUTO_BUF struct buf out = BUF_INIT;
	int lines = 0, seen = 0;

	display_draw(v, columns, rows, v->now_ms, false, &out, &lines);
	for (const char *p = buf_str(&out); *p; seen++) {
		const char *end = strstr(p, "\033[K\n");
		assert_non_null(end);
		assert_true(columns_of(p, (size_t)(end - p)) < columns);
		assert_true(text_is_utf8(p, (size_t)(end - p)));
		p = end + strlen("\033[K\n");
	}
	assert_int_equal(seen, lines);
	assert_int_equal(lines, want_lines);
	assert_true(lines < rows || rows <= 3);
}

static void test_drawing_fits_the_terminal(void **state)
{
	struct display v;

	display_init(&v);
	for (int i = 1; i <= 256; i++) {
		AUTO_FREE char *spawned = mem_printf(
			"\"type\":\"agent.spawned\",\"agent\":\"a%d\",\"role\":\"r\xc3\xb6le-"
			"\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\"",
			i);
		AUTO_FREE char *tool = mem_printf("\"type\":\"agent.tool\",\"agent\":\"a%d\","
						  "\"data\":{\"summary\":\"\xe6\xbc\xa2"
						  "\xe5\xad\x97 \xf0\x9f\x98\x80 and a long line "
						  "of words that goes on and on\"}",
						  i);
		free(fold(&v, T0, spawned));
		free(fold(&v, T0, tool));
	}
	check_table(&v, 80, 24, 23);
	check_table(&v, 200, 500, 257);
	check_table(&v, 41, 10, 9);
	check_table(&v, 2, 5, 4);
	check_table(&v, 1, 1, 2);
	display_release(&v);
}

/* With many agents the ended ones are left out first. */
static void test_agents_at_work_come_first(void **state)
{
	struct display v;
	AUTO_BUF struct buf out = BUF_INIT;
	int lines;

	display_init(&v);
	for (int i = 1; i <= 10; i++) {
		AUTO_FREE char *spawned =
			mem_printf("\"type\":\"agent.spawned\",\"agent\":\"a%d\"", i);
		AUTO_FREE char *ended = mem_printf("\"type\":\"agent.ended\",\"agent\":\"a%d\","
						   "\"status\":\"done\"",
						   i);
		free(fold(&v, T0, spawned));
		if (i <= 8)
			free(fold(&v, T0, ended));
	}
	display_draw(&v, 80, 5, v.now_ms, true, &out, &lines);
	assert_int_equal(lines, 4);
	assert_non_null(strstr(buf_str(&out), "2 of 10 agents at work"));
	assert_non_null(strstr(buf_str(&out), "\033[0ma9 "));
	assert_non_null(strstr(buf_str(&out), "\na10 "));
	assert_true(text_starts(buf_str(&out), "\033[1m"));
	display_release(&v);
}

/* A table of 100 columns in a terminal of 60: each long line wraps, and all of it has to go before
 * the next one is drawn. */
static void test_rows_of_a_narrower_terminal(void **state)
{
	AUTO_BUF struct buf drawn = BUF_INIT;

	buf_adds(&drawn, "\033[1m");
	for (int i = 0; i < 99; i++)
		buf_addc(&drawn, 'h');
	buf_adds(&drawn, "\033[K\n\033[0m");
	for (int i = 0; i < 60; i++)
		buf_adds(&drawn, "\xc3\xa9");
	buf_adds(&drawn, "\033[K\n\033[K\n");
	for (int i = 0; i < 31; i++)
		buf_adds(&drawn, "\xe4\xb8\xad"); /* two columns each */
	buf_adds(&drawn, "\033[K\n");
	assert_int_equal(display_rows(&drawn, 100), 4);
	assert_int_equal(display_rows(&drawn, 60), 2 + 1 + 1 + 2);
	assert_int_equal(display_rows(&drawn, 20), 5 + 3 + 1 + 4);
	buf_clear(&drawn);
	assert_int_equal(display_rows(&drawn, 80), 0);
}

static void test_times_and_shares(void **state)
{
	struct display v;
	AUTO_BUF struct buf out = BUF_INIT;
	int lines;

	display_init(&v);
	free(fold(&v, T0,
		  "\"type\":\"run.started\",\"run\":\"r1\",\"command\":\"run\",\"model\":\"m\""));
	free(fold(&v, "2026-11-30T10:00:10.000Z",
		  "\"type\":\"agent.spawned\",\"agent\":\"a1\","
		  "\"role\":\"lead\""));
	free(fold(&v, "2026-11-30T10:00:15.000Z",
		  "\"type\":\"agent.round\",\"agent\":\"a1\",\"data\":{\"round\":7,\"used\":50000,"
		  "\"window\":200000}"));
	free(fold(&v, "2026-11-30T10:00:20.000Z",
		  "\"type\":\"call.settled\",\"agent\":\"a1\",\"fresh\":12000,\"output\":300,"
		  "\"cost\":0.125,\"total_cost\":0.125"));
	free(fold(&v, "2026-11-30T10:01:15.000Z",
		  "\"type\":\"agent.ended\",\"agent\":\"a1\","
		  "\"status\":\"done\""));
	display_draw(&v, 200, 24, clock_parse_stamp("2026-11-30T10:02:00.000Z"), false, &out,
		     &lines);
	const char *text = buf_str(&out);
	assert_true(text_starts(text, "baton run r1  m  2m00s  0 of 1 agents at work  0.1250 USD"));
	assert_non_null(strstr(text, "a1    lead       done       r7    25%    12k in    300 out"
				     "   0.125$   1m05s  "));
	display_release(&v);
}

/* A view may draw before it has read the journal's first record. */
static void test_no_time_before_the_start_is_known(void **state)
{
	struct display v;
	AUTO_BUF struct buf out = BUF_INIT;
	int lines;

	display_init(&v);
	free(fold(&v, "no stamp", "\"type\":\"agent.spawned\",\"agent\":\"a1\""));
	display_draw(&v, 200, 24, clock_parse_stamp(T0), false, &out, &lines);
	assert_non_null(strstr(buf_str(&out), "  -  1 of 1 agents at work"));
	for (const char *p = buf_str(&out); (p = strchr(p, 'h')); p++)
		assert_false(p > buf_str(&out) && p[-1] >= '0' && p[-1] <= '9');
	display_release(&v);
}

/* The action is what one looks for: counts make way for it. */
static void test_a_narrow_terminal_keeps_the_action(void **state)
{
	static const int widths[] = {60, 76, 77, 80, 97, 98, 120};
	struct display v;

	display_init(&v);
	free(fold(&v, T0, "\"type\":\"run.started\",\"run\":\"r1\""));
	free(fold(&v, T0, "\"type\":\"agent.spawned\",\"agent\":\"a1\",\"role\":\"generator\""));
	free(fold(&v, T0,
		  "\"type\":\"agent.tool\",\"agent\":\"a1\",\"data\":{\"summary\":"
		  "\"01234567890123456789\"}"));
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		int lines;
		display_draw(&v, widths[i], 24, v.now_ms, false, &out, &lines);
		assert_non_null(strstr(buf_str(&out), "01234567890123456789\033"));
		assert_true((widths[i] >= 98) == (strstr(buf_str(&out), " out ") != NULL));
	}
	display_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_record_type),
		cmocka_unit_test(test_records_without_their_fields),
		cmocka_unit_test(test_control_characters_are_removed),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_drawing_fits_the_terminal),
		cmocka_unit_test(test_agents_at_work_come_first),
		cmocka_unit_test(test_rows_of_a_narrower_terminal),
		cmocka_unit_test(test_times_and_shares),
		cmocka_unit_test(test_no_time_before_the_start_is_known),
		cmocka_unit_test(test_a_narrow_terminal_keeps_the_action),
	};
	return cmocka_run_group_tests_name("orchestrator/display", tests, NULL, NULL);
}
