/*
 * test_snip.c - superseded rounds go, and nothing else does (H1, I2, W11, X2).
 */
#include "tests/agent/history_fixture.h"

#include "agent/context/snip.h"

#define LARGE 1500 /* words */

static void start(struct history *h)
{
	history_start(h, 50000);
	h->knobs.snip_keep = 2;
}

/* Something newer, so that what matters is not among the newest rounds. */
static void pad(struct history *h)
{
	history_call(h, "shell", "{\"command\":\"make a\"}", 10);
	history_call(h, "shell", "{\"command\":\"make b\"}", 10);
	history_sync(h);
}

static int64_t run(struct history *h)
{
	int64_t before = ledger_used(&h->ledger), freed = -1;
	struct err err = ERR_INIT;

	h->in.done = (struct epoch_done){.freed = 0};
	assert_int_equal(snip_run(&h->in, &freed, &err), 0);
	history_check(h);
	assert_int_equal(before - ledger_used(&h->ledger), freed);
	return freed;
}

/* With three large rounds between them, so that it pays. */
static size_t rounds_left(struct history *h, const char *tool, const char *first,
			  const char *second)
{
	size_t n = 0;

	for (int i = 0; i < 5; i++)
		history_call(h, tool, first, LARGE);
	history_call(h, tool, second, LARGE);
	pad(h);
	run(h);
	for (size_t i = 0; i < h->view.n; i++)
		n += message_count(h->view.list[i], BLOCK_TOOL_CALL) > 0;
	return n - 2;
}

/* What may be asked again in the same words was superseded by it. */
static void test_same_calls(void **state)
{
	static const struct {
		const char *tool, *first, *second;
		size_t left;
	} cases[] = {
		{"read", "{\"path\":\"a.c\"}", "{\"path\":\"a.c\"}", 1},
		{"grep", "{\"pattern\":\"x\"}", "{\"pattern\":\"x\"}", 1},
		{"grep", "{\"pattern\":\"x\"}", "{\"pattern\":\"y\"}", 2},
		{"glob", "{\"pattern\":\"*.c\"}", "{\"pattern\":\"*.c\"}", 1},
		{"shell", "{\"command\":\"git status\"}", "{\"command\":\"git status\"}", 1},
		{"shell", "{\"command\":\"ls | wc -l\"}", "{\"command\":\"ls | wc -l\"}", 1},
		/* Effects, real or possible. */
		{"shell", "{\"command\":\"make\"}", "{\"command\":\"make\"}", 6},
		{"shell", "{\"command\":\"ls > x\"}", "{\"command\":\"ls > x\"}", 6},
		{"shell", "{\"command\":\"cat `rm x`\"}", "{\"command\":\"cat `rm x`\"}", 6},
		{"shell", "{\"command\":\"ls; rm x\"}", "{\"command\":\"ls; rm x\"}", 6},
		{"edit", "{\"path\":\"a.c\"}", "{\"path\":\"a.c\"}", 6},
		/* Cannot be had again. */
		{"agent", "{\"task\":\"x\"}", "{\"task\":\"x\"}", 6},
		{"mcp_call", "{\"tool\":\"x\"}", "{\"tool\":\"x\"}", 6},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct history h;

		start(&h);
		if (rounds_left(&h, cases[i].tool, cases[i].first, cases[i].second) !=
		    cases[i].left)
			fail_msg("%s %s", cases[i].tool, cases[i].first);
		history_check_kept(&h, ORIGIN_USER);
		history_end(&h);
	}
}

static void read_lines(struct history *h, const char *input, int from, int to, int words)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (int i = 0; i < words; i++)
		buf_adds(&text, "line ");
	if (to)
		buf_addf(&text, "\n[lines %d to %d of 900; use offset and limit to read on]\n",
			 from, to);
	history_round(h, NULL,
		      &(struct history_call){.tool = "read", .input = input, .result = text.data},
		      1);
}

/* A read is superseded by lines that show all of its own. */
static void test_ranges(void **state)
{
	struct history h;

	start(&h);
	for (int i = 0; i < 5; i++)
		read_lines(&h, "{\"path\":\"a.c\",\"offset\":10,\"limit\":90}", 10, 100, LARGE);
	read_lines(&h, "{\"path\":\"a.c\",\"limit\":300}", 1, 300, LARGE);
	pad(&h);
	assert_true(run(&h) > 5 * LARGE / 2);
	assert_int_equal(h.view.n, 1 + 2 + 4);
	history_end(&h);

	start(&h);
	for (int i = 0; i < 5; i++)
		read_lines(&h, "{\"path\":\"a.c\"}", 1, 300 + i, LARGE);
	read_lines(&h, "{\"path\":\"a.c\",\"limit\":200}", 1, 200, LARGE);
	read_lines(&h, "{\"path\":\"b.c\"}", 0, 0, LARGE);
	pad(&h);
	run(&h);
	/* The four are the same call; the fifth says more than the shorter one after it. */
	assert_int_equal(h.view.n, 1 + 3 * 2 + 4);
	history_end(&h);
}

/* What was cut or cleared does not stand for the whole. */
static void test_a_cut_result_supersedes_nothing(void **state)
{
	struct history h;
	struct history_call cut = {.tool = "read",
				   .input = "{\"path\":\"a.c\"}",
				   .result =
					   "x\n[... 900 bytes (about 300 tokens) left out ...]\ny"};

	start(&h);
	for (int i = 0; i < 5; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	history_round(&h, NULL, &cut, 1);
	pad(&h);
	run(&h);
	assert_int_equal(h.view.n, 1 + 2 * 2 + 4);
	history_end(&h);
}

/* Failed, and later it worked; an interrupted call may have done something. */
static void test_failures(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct history h;
	struct history_call failed = {.tool = "edit",
				      .input = "{\"path\":\"a.c\",\"old_string\":\"q\"}",
				      .is_error = true};
	struct history_call worked = {.tool = "edit",
				      .input = "{\"path\":\"a.c\",\"old_string\":\"r\"}",
				      .result = "edited a.c"};

	for (int i = 0; i < 700; i++)
		buf_adds(&text, "oh ");
	for (int k = 0; k < 3; k++) {
		start(&h);
		if (k == 1)
			buf_adds(&text, "interrupted");
		failed.result = text.data;
		failed.tool = worked.tool = k == 2 ? "shell" : "edit";
		for (int i = 0; i < 9; i++)
			history_round(&h, NULL, &failed, 1);
		history_round(&h, NULL, &worked, 1);
		pad(&h);
		run(&h);
		assert_int_equal(h.view.n, 1 + (k ? 20 : 2) + 4);
		history_end(&h);
	}
}

/* Words, decisions and news keep their rounds; parallel calls go together or not at all. */
static void test_what_stays(void **state)
{
	struct history_call twice[2] = {
		{.tool = "read", .input = "{\"path\":\"a.c\"}", .result = "a"},
		{.tool = "agent", .input = "{\"task\":\"t\"}", .result = "a report"}};
	struct history h;

	start(&h);
	for (int i = 0; i < 6; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	history_round(&h, "I will not use threads, because the loop is single.", twice, 1);
	history_call(&h, "read", "{\"path\":\"a.c\"}", 5);
	history_user(&h, ORIGIN_USER, "Do not touch b.c.");
	history_call(&h, "read", "{\"path\":\"a.c\"}", 5);
	history_user(&h, ORIGIN_NUDGE, "job j1 ended");
	history_round(&h, NULL, twice, 2);
	history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	pad(&h);
	assert_true(run(&h) > 0);
	assert_true(history_view_has(&h, "not use threads"));
	assert_true(history_view_has(&h, "job j1 ended"));
	assert_true(history_view_has(&h, "a report"));
	history_check_kept(&h, ORIGIN_USER);
	assert_int_equal(h.view.n, 1 + 5 * 2 + 2 + 4);
	assert_true(history_view_has(&h, "[6 rounds of superseded reads and repeated calls "
					 "removed here: read a.c]"));
	history_end(&h);
}

/* Two snips at one place leave one line. */
static void test_markers_merge(void **state)
{
	struct history h;

	start(&h);
	for (int i = 0; i < 6; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	pad(&h);
	assert_true(run(&h) > 0);
	assert_true(history_view_has(&h, "[5 rounds of"));
	for (int i = 0; i < 4; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	history_call(&h, "read", "{\"path\":\"a.c\"}", 1);
	pad(&h);
	assert_true(run(&h) > 0);
	assert_true(history_view_has(&h, "[6 rounds of"));
	assert_false(history_view_has(&h, "[5 rounds of"));
	assert_int_equal(h.view.epoch, 2);
	history_end(&h);
}

/* Below a tenth of effective nothing is done; with little to come it does not pay (W11). */
static void test_it_must_earn(void **state)
{
	struct history h;

	start(&h);
	for (int i = 0; i < 4; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", 200);
	pad(&h);
	assert_int_equal(run(&h), 0);
	assert_int_equal(h.view.epoch, 0);
	history_end(&h);
	start(&h);
	for (int i = 0; i < 6; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", LARGE);
	for (int i = 0; i < 6; i++)
		history_call(&h, "shell", "{\"command\":\"make\"}", LARGE);
	pad(&h);
	h.in.rounds_left = 1;
	assert_int_equal(run(&h), 0);
	h.in.rounds_left = 50;
	assert_true(run(&h) > 0);
	history_end(&h);
}

/* By hand: what is named goes, but for what never goes. */
static void test_by_hand(void **state)
{
	struct history h;
	size_t kept = 0;
	int64_t freed = 0;

	start(&h);
	history_call(&h, "read", "{\"path\":\"a.c\"}", 100);
	history_call(&h, "grep", "{\"pattern\":\"x\"}", 100);
	history_call(&h, "edit", "{\"path\":\"a.c\"}", 100);
	history_call(&h, "read", "{\"path\":\"b.c\"}", 100);
	pad(&h);
	assert_int_equal(snip_rounds(&h.in, 1, 3, &kept, &freed, NULL), 0);
	history_check(&h);
	assert_int_equal(kept, 1);
	assert_true(freed > 100);
	assert_int_equal(h.view.n, 1 + 2 * 2 + 4);
	assert_int_equal(snip_rounds(&h.in, 5, 99, &kept, &freed, NULL), 0);
	assert_int_equal(kept, 2);
	assert_int_equal(freed, 0);
	history_end(&h);
}

/* I2, X2 on whatever comes, and the transcript tells how the view came about. */
static void test_by_chance(void **state)
{
	const char *folder = *state;
	int snipped = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct history h;
		AUTO_FREE char *below = mem_printf("%s/%llu", folder, (unsigned long long)seed);

		assert_int_equal(file_mkdirs(below, 0700, NULL), 0);
		history_start(&h, 60000);
		h.model.preserved_thinking = seed % 3 == 0;
		history_record(&h, below);
		for (int i = 0; i < 4; i++) {
			history_generate(&h, seed * 7 + (uint64_t)i, 25);
			snipped += run(&h) > 0;
			history_check_kept(&h, ORIGIN_USER);
		}
		history_check_rebuilt(&h, below);
		history_end(&h);
	}
	assert_true(snipped > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_calls),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_a_cut_result_supersedes_nothing),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_markers_merge),
		cmocka_unit_test(test_it_must_earn),
		cmocka_unit_test(test_by_hand),
		folder_test(test_by_chance),
	};
	return cmocka_run_group_tests_name("agent/snip", tests, NULL, NULL);
}
