/*
 * test_ledger.c - W5, W6: usage is the base, what is new is estimated, categories; trap 82, 84, 86.
 */
#include "agent_fixture.h"

#include "agent/ledger.h"
#include "base/memory.h"

static struct ledger ledger;

static int setup(void **state)
{
	static const struct tool_spec tool = {"shell", "Runs a command.", "{\"type\":\"object\"}"};

	ledger_init(&ledger);
	ledger_fixed(&ledger, "You are a careful worker who checks what was done.", &tool, 1);
	return 0;
}

static int plain(void **state)
{
	ledger_init(&ledger);
	return 0;
}

static int teardown(void **state)
{
	ledger_release(&ledger);
	return 0;
}

static struct model_usage usage_of(int64_t input, int64_t read, int64_t output)
{
	return (struct model_usage){
		.input = input, .cache_read = read, .output = output, .known = true};
}

static void w6_before_the_first_usage_all_is_estimated(void **state)
{
	struct message *m = fixture_text(MESSAGE_USER, "Please fix the failing test in src.");
	int64_t fixed = ledger_used(&ledger);

	assert_true(fixed > 10);
	ledger_add(&ledger, m);
	assert_int_equal(ledger_used(&ledger), fixed + m->estimate);
	message_free(m);
}

/* Trap 82: what was read from the cache is part of the prompt, and counts as used. */
static void w6_usage_is_the_base(void **state)
{
	struct model_usage u = usage_of(5000, 42000, 300);
	struct message *answer = fixture_text(MESSAGE_ASSISTANT, "I looked at it.");
	struct message *more = fixture_text(MESSAGE_USER, "Go on with the next one, please.");

	ledger_answer(&ledger, answer, &u);
	assert_int_equal(ledger_used(&ledger), 47300);
	assert_int_equal(answer->estimate, 300);
	ledger_add(&ledger, more);
	assert_int_equal(ledger_used(&ledger), 47300 + more->estimate);
	ledger_removed(&ledger, 1000);
	assert_int_equal(ledger_used(&ledger), 46300 + more->estimate);
	message_free(answer);
	message_free(more);
}

static void unknown_usage_is_estimated(void **state)
{
	struct model_usage u = {.known = false};
	struct message *answer =
		fixture_text(MESSAGE_ASSISTANT, "I looked at it and found nothing.");
	int64_t before = ledger_used(&ledger);

	ledger_answer(&ledger, answer, &u);
	assert_true(answer->estimate > 5);
	assert_int_equal(ledger_used(&ledger), before + answer->estimate);
	message_free(answer);
}

static void w5_categories(void **state)
{
	struct message *m = message_new(MESSAGE_USER);
	struct message *results = message_new(MESSAGE_USER);
	AUTO_BUF struct buf out = BUF_INIT;
	struct window_budget budget = {.effective = 1000, .compact = 900};

	message_add_text(m, ORIGIN_INSTRUCTIONS, "Use tabs everywhere.", 20);
	message_add_text(m, ORIGIN_ENVIRONMENT, "branch x", 8);
	message_add_text(m, ORIGIN_USER, "Fix it.", 7);
	ledger_add(&ledger, m);
	message_add_result(results, "c1", "grep", "src/a.c:1: x", 12, false);
	message_add_result(results, "c2", "shell", "ok, all tests passed", 20, false);
	message_add_image(results, "c2", "image/png", "AAAA", 4);
	message_add_text(results, ORIGIN_NUDGE, "a job ended", 11);
	ledger_add(&ledger, results);
	assert_true(ledger.category[LEDGER_SYSTEM] > 0 && ledger.category[LEDGER_TOOLS] > 0);
	assert_true(ledger.category[LEDGER_INSTRUCTIONS] > 0);
	assert_true(ledger.category[LEDGER_ENVIRONMENT] > 0 && ledger.category[LEDGER_USER] > 0);
	assert_true(ledger.category[LEDGER_NOTES] > 0);
	assert_int_equal(ledger.category[LEDGER_ATTACHMENTS], 2000);
	assert_true(ledger_tool(&ledger, "grep") > 0 && ledger_tool(&ledger, "shell") > 0);
	assert_int_equal(ledger_tool(&ledger, "grep") + ledger_tool(&ledger, "shell"),
			 ledger.category[LEDGER_RESULTS]);
	ledger_write(&ledger, &budget, 100, &out);
	assert_non_null(strstr(buf_str(&out), "\"attachments\":2000"));
	assert_non_null(strstr(buf_str(&out), "\"compact_buffer\":100"));
	message_free(m);
	message_free(results);
}

/* W6, trap 86: a text of which the provider counts twice what was estimated is counted nearer to
 * the truth the next time. */
static void w6_calibration_by_usage(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *a, *b;
	struct model_usage u;
	int64_t first, second;

	for (int i = 0; i < 400; i++)
		buf_adds(&text, "the quick brown fox jumps over the lazy dog and runs away again ");
	a = fixture_text(MESSAGE_USER, text.data);
	b = fixture_text(MESSAGE_USER, text.data);
	ledger_add(&ledger, a);
	first = a->estimate;
	u = usage_of(ledger_used(&ledger) * 2, 0, 10);
	ledger_answer(&ledger, NULL, &u);
	ledger_add(&ledger, b);
	second = b->estimate;
	assert_true(second > first * 4 / 3);
	assert_true(second < first * 5 / 2);
	message_free(a);
	message_free(b);
}

/* Trap 84: the server cuts the prompt without a word; three equal totals give it away. */
static void trap_84_pinned_totals_teach_the_window(void **state)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct message *m;

	for (int i = 0; i < 600; i++)
		buf_adds(&text, "the quick brown fox jumps over the lazy dog and runs away again ");
	m = fixture_text(MESSAGE_USER, text.data);
	ledger_add(&ledger, m);
	for (int i = 0; i < 3; i++) {
		struct model_usage u = usage_of(4096 - 100 - i, 0, 100 + i);
		struct message *answer = fixture_text(MESSAGE_ASSISTANT, "hm");

		assert_int_equal(ledger_learned_window(&ledger), 0);
		ledger_answer(&ledger, answer, &u);
		message_free(answer);
	}
	assert_int_equal(ledger_learned_window(&ledger), 4096);
	assert_true(ledger_used(&ledger) > 7500); /* our own count, not theirs */
	message_free(m);
}

/* X8: a usage below an eighth of the bytes is made up: our own count stays. */
static void x8_usage_that_cannot_be(void **state)
{
	struct model_usage u = usage_of(3, 0, 1);
	struct message *answer = fixture_text(MESSAGE_ASSISTANT, "yes");
	int64_t before = ledger_used(&ledger);

	ledger_answer(&ledger, answer, &u);
	assert_true(ledger_used(&ledger) > before);
	message_free(answer);
}

/* W6: what an epoch's end took out is out of every account, and of the bytes by which a usage is believed:
 * else a long session that dropped much would one day not believe any. */
static void test_take_out_and_put_in(void **state)
{
	struct message *m = message_new(MESSAGE_USER), *line = message_new(MESSAGE_USER);
	AUTO_FREE char *text = mem_alloc(8001);

	memset(text, 'x', 8000);
	for (size_t i = 5; i < 8000; i += 6)
		text[i] = ' ';
	message_add_result(m, "c1", "read", text, 8000, false);
	ledger_add(&ledger, m);
	assert_int_equal(ledger_used(&ledger), m->estimate);
	assert_int_equal(ledger_take_out(&ledger, m), m->estimate);
	assert_int_equal(ledger_used(&ledger), 0);
	assert_int_equal(ledger.category[LEDGER_RESULTS], 0);
	assert_int_equal(ledger_tool(&ledger, "read"), 0);
	assert_in_range(ledger.text_bytes, 0, 100);
	message_add_result(line, "c1", "read", "cleared", 7, false);
	int64_t came = ledger_put_in(&ledger, line);
	assert_int_equal(came, line->estimate);
	assert_int_equal(ledger_used(&ledger), line->estimate);
	assert_true(ledger_tool(&ledger, "read") > 0);
	message_free(m);
	message_free(line);
}

/* What a usage measured is divided among the answer's blocks, to the last token. */
static void test_blocks_of_an_answer(void **state)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	struct model_usage usage = {.input = 500, .output = 101, .thinking = 31, .known = true};

	message_add_thinking(m, NULL, "so so", 5, "{}");
	message_add_text(m, ORIGIN_MODEL, "I look.", 7);
	message_add_call(m, "c1", "read", "{\"path\":\"a.c\"}", 14, NULL);
	ledger_answer(&ledger, m, &usage);
	assert_int_equal(m->blocks[0].estimate, 31);
	assert_int_equal(m->blocks[1].estimate + m->blocks[2].estimate, 70);
	ledger_take_out(&ledger, m);
	assert_int_equal(ledger.category[LEDGER_ASSISTANT], 0);
	assert_int_equal(ledger.category[LEDGER_THINKING], 0);
	assert_int_equal(ledger_used(&ledger), 500);
	message_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_take_out_and_put_in, plain, teardown),
		cmocka_unit_test_setup_teardown(test_blocks_of_an_answer, plain, teardown),
		cmocka_unit_test_setup_teardown(w6_before_the_first_usage_all_is_estimated, setup,
						teardown),
		cmocka_unit_test_setup_teardown(w6_usage_is_the_base, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_usage_is_estimated, setup, teardown),
		cmocka_unit_test_setup_teardown(w5_categories, setup, teardown),
		cmocka_unit_test_setup_teardown(w6_calibration_by_usage, setup, teardown),
		cmocka_unit_test_setup_teardown(trap_84_pinned_totals_teach_the_window, setup,
						teardown),
		cmocka_unit_test_setup_teardown(x8_usage_that_cannot_be, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
