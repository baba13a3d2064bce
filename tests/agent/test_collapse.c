/*
 * test_collapse.c - finished rounds become a snapshot by rule; words, rules and reports stay (H3, I2, X2, X3).
 */
#include "tests/agent/history_fixture.h"

#include "agent/context/collapse.h"
#include "agent/context/snapshot.h"

static int64_t run(struct history *h)
{
	int64_t before = ledger_used(&h->ledger), freed = -1;

	h->in.done = (struct epoch_done){.freed = 0};
	assert_int_equal(collapse_run(&h->in, &freed, NULL), 0);
	history_check(h);
	assert_int_equal(before - ledger_used(&h->ledger), freed);
	return freed;
}

static void one(struct history *h, const char *text, const char *tool, const char *input,
		const char *result, bool is_error)
{
	struct history_call call = {tool, input, result, is_error, false};

	history_round(h, text, &call, 1);
}

/* What happened, each once. */
static void work(struct history *h)
{
	one(h, "I use sqlite because the file must survive a crash.", "read",
	    "{\"path\":\"src/store.c\"}", "int x;", false);
	history_user(h, ORIGIN_USER, "Never change the file format!");
	history_user(h, ORIGIN_INSTRUCTIONS, "Rules for src: tabs only.");
	one(h, NULL, "shell", "{\"command\":\"make test\"}",
	    "exit code 2\ntest_store: FAILED\nexpected: 7\n", true);
	one(h, NULL, "edit", "{\"path\":\"src/store.c\"}", "edited src/store.c", false);
	one(h, NULL, "shell", "{\"command\":\"make lint\"}", "exit code 1\nerror: bad style\n",
	    true);
	one(h, NULL, "shell", "{\"command\":\"make lint\"}", "ok", false);
	one(h, NULL, "edit", "{\"path\":\"src/other.c\"}", "error: the text was not found", true);
	one(h, NULL, "agent", "{\"task\":\"review\"}", "The review found nothing.", false);
	history_user(h, ORIGIN_MEMORY, "old notes");
	history_user(h, ORIGIN_MEMORY, "new notes");
}

static void fill(struct history *h, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		AUTO_FREE char *input = mem_printf("{\"path\":\"src/file%d.c\"}", i);

		history_call(h, "read", input, 1000);
	}
	history_sync(h);
}

static void test_facts_are_in_it(void **state)
{
	static const char *const facts[] = {
		"src/store.c: changed 1 time, read 1 time",
		"make test -> exit code 2",
		"test_store: FAILED",
		"expected: 7",
		"make lint -> exit code 0",
		"run 2 times, 1 failed",
		"it failed before: error: bad style",
		"edit src/other.c (1 time, last in round 6): error: the text was not found",
		"I use sqlite because",
		"The review found nothing.",
		"src/file3.c: read 1 time",
		"Never change the file format!",
		"Rules for src: tabs only.",
		"new notes",
	};
	struct history h;

	history_start(&h, 60000);
	work(&h);
	fill(&h, 30);
	assert_true(run(&h) > h.budget.effective / 3);
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		if (!history_view_has(&h, facts[i]))
			fail_msg("'%s' is lost", facts[i]);
	assert_false(history_view_has(&h, "old notes"));
	history_check_kept(&h, ORIGIN_USER);
	/* One message in the place of all; storage is as it was; the tail too. */
	assert_int_equal(h.view.list[0]->role, MESSAGE_USER);
	assert_int_equal(h.view.list[1]->role, MESSAGE_ASSISTANT);
	assert_ptr_equal(h.view.list[h.view.n - 1], h.c.messages[h.c.n - 1]);
	assert_true(h.view.n < 20);
	assert_int_equal(h.view.epoch, 1);
	history_end(&h);
}

static size_t snapshots(const struct history *h, int64_t *first, int64_t *last)
{
	size_t n = 0;

	for (size_t i = 0; i < h->view.n; i++)
		for (size_t k = 0; k < h->view.list[i]->n_blocks; k++)
			n += snapshot_is(&h->view.list[i]->blocks[k], first, last);
	return n;
}

/* Two in a row are one, made from the record and not from the first. */
static void test_two_are_one(void **state)
{
	struct history h;
	int64_t first = 0, last = 0, before;

	history_start(&h, 60000);
	work(&h);
	fill(&h, 30);
	run(&h);
	assert_int_equal(snapshots(&h, &first, &last), 1);
	assert_int_equal(first, 1);
	before = last;
	one(&h, NULL, "shell", "{\"command\":\"make test\"}", "all tests passed", false);
	fill(&h, 30);
	assert_true(run(&h) > 0);
	assert_int_equal(snapshots(&h, &first, &last), 1);
	assert_int_equal(first, 1);
	assert_true(last > before);
	assert_true(history_view_has(&h, "make test -> exit code 0"));
	assert_true(history_view_has(&h, "I use sqlite because"));
	history_check_kept(&h, ORIGIN_USER);
	history_end(&h);
}

/* A summary that stands at the beginning stays, and the snapshot comes behind it. */
static void test_behind_a_summary(void **state)
{
	struct history h;

	history_start(&h, 60000);
	history_user(&h, ORIGIN_SUMMARY, "Before that the parser was written.");
	fill(&h, 30);
	assert_true(run(&h) > 0);
	assert_true(history_view_has(&h, "Before that the parser was written."));
	assert_string_equal(h.view.list[0]->blocks[0].text, h.c.messages[0]->blocks[0].text);
	assert_int_equal(h.view.list[1]->n_blocks, 2);
	history_end(&h);
}

/* A compaction from a pivot on leaves its head in the middle, with the user's words as a block of baton's. */
static void test_a_head_in_the_middle(void **state)
{
	struct history h;
	struct message *m = message_new(MESSAGE_USER);

	history_start(&h, 60000);
	fill(&h, 2);
	message_add_text(m, ORIGIN_NUDGE, "The user said: never push.", 26);
	message_add_text(m, ORIGIN_SUMMARY, "Then the parser was written.", 28);
	conversation_append(&h.c, m);
	ledger_add(&h.ledger, m);
	history_user(&h, ORIGIN_NUDGE, "a job ended");
	fill(&h, 30);
	assert_true(run(&h) > 0);
	assert_true(history_view_has(&h, "never push"));
	assert_true(history_view_has(&h, "the parser was written"));
	assert_false(history_view_has(&h, "a job ended"));
	history_end(&h);
}

/* At 90 % of effective, or 5 % below the threshold; by the knob not at all; and not for little. */
static void test_the_trigger(void **state)
{
	struct history h;

	history_start(&h, 60000);
	fill(&h, 20);
	assert_false(collapse_wanted(&h.in));
	while (ledger_used(&h.ledger) <= h.budget.collapse)
		fill(&h, 1);
	assert_true(collapse_wanted(&h.in));
	assert_true(ledger_used(&h.ledger) < h.budget.compact);
	h.in.rounds_left = 1;
	assert_int_equal(run(&h), 0); /* by the prices a summary is as good */
	h.in.rounds_left = 50;
	h.knobs.collapse = 0;
	assert_false(collapse_wanted(&h.in));
	history_end(&h);
	history_start(&h, 60000);
	fill(&h, 4);
	assert_int_equal(run(&h), 0);
	assert_int_equal(h.view.epoch, 0);
	history_end(&h);
}

/* Sections have shares: thousands of files leave room for the one decision. */
static void test_bounded(void **state)
{
	struct history h;
	AUTO_BUF struct buf text = BUF_INIT;

	history_start(&h, 4000000);
	work(&h);
	for (int i = 0; i < 2000; i++) {
		AUTO_FREE char *input = mem_printf("{\"path\":\"src/file%d.c\"}", i);

		history_call(&h, "read", input, 5);
	}
	snapshot_write(&h.c, 1, h.c.round, 10000, &text);
	assert_in_range(text.len, 2000, 11000);
	assert_non_null(strstr(buf_str(&text), "src/file1999.c"));
	assert_null(strstr(buf_str(&text), "src/file100.c"));
	assert_non_null(strstr(buf_str(&text), "older ones left out"));
	assert_non_null(strstr(buf_str(&text), "I use sqlite because"));
	history_end(&h);
}

static void test_by_chance(void **state)
{
	const char *folder = *state;
	int collapsed = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct history h;
		AUTO_FREE char *below = mem_printf("%s/%llu", folder, (unsigned long long)seed);

		assert_int_equal(file_mkdirs(below, 0700, NULL), 0);
		history_start(&h, 60000);
		h.model.preserved_thinking = seed % 3 == 0;
		history_record(&h, below);
		for (int i = 0; i < 4; i++) {
			history_generate(&h, seed * 7 + (uint64_t)i, 40);
			collapsed += run(&h) > 0;
			history_check_kept(&h, ORIGIN_USER);
		}
		history_check_rebuilt(&h, below);
		history_end(&h);
	}
	assert_true(collapsed > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts_are_in_it),
		cmocka_unit_test(test_two_are_one),
		cmocka_unit_test(test_behind_a_summary),
		cmocka_unit_test(test_a_head_in_the_middle),
		cmocka_unit_test(test_the_trigger),
		cmocka_unit_test(test_bounded),
		folder_test(test_by_chance),
	};
	return cmocka_run_group_tests_name("agent/collapse", tests, NULL, NULL);
}
