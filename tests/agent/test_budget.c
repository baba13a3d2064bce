/*
 * test_budget.c - W1, W2, W12, W14: thresholds and the room for an answer.
 */
#include "agent_fixture.h"

#include "agent/context/budget.h"
#include "base/memory.h"

static struct window_budget budget_of(int64_t window, int64_t max_output, int64_t input_limit)
{
	struct model model = {.provider = (char *)"p",
			      .name = (char *)"m",
			      .window = window,
			      .max_output = max_output,
			      .input_limit = input_limit};
	struct window_budget b = {.window = 0};

	assert_int_equal(budget_init(&b, &model, 0, 0, NULL), 0);
	return b;
}

static void w2_worked_example(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);

	assert_int_equal(b.effective, 180000);
	assert_int_equal(b.compact, 167000);
	assert_int_equal(b.warning, 147000);
	assert_int_equal(b.blocking, 177000);
}

static void w1_reserve_and_input_limit(void **state)
{
	assert_int_equal(budget_of(200000, 8192, 0).effective, 200000 - 8192);
	assert_int_equal(budget_of(200000, 64000, 0).effective, 180000);
	assert_int_equal(budget_of(400000, 128000, 272000).effective, 272000);
}

static void w14_ceiling(void **state)
{
	struct model model = {.provider = (char *)"p",
			      .name = (char *)"m",
			      .window = 1000000,
			      .max_output = 128000,
			      .tier_above = 272000};
	struct window_budget b;

	assert_int_equal(budget_of(1000000, 128000, 0).effective, 400000);
	assert_int_equal(budget_init(&b, &model, 13000, 0, NULL), 0);
	assert_int_equal(b.effective, 272000);
	assert_int_equal(budget_init(&b, &model, 13000, 100000, NULL), 0);
	assert_int_equal(b.effective, 100000);
	assert_int_equal(b.blocking, 97000);
}

static void w2_order_holds_in_every_window(void **state)
{
	for (int64_t window = 64; window < 3000000; window += 1 + window / 7) {
		static const int64_t buffers[] = {1, 1000, 5000, 13000, 40000, 900000};

		for (size_t i = 0; i < ARRAY_SIZE(buffers); i++) {
			struct model model = {.provider = (char *)"p",
					      .name = (char *)"m",
					      .window = window,
					      .max_output = window};
			struct window_budget b;

			assert_int_equal(budget_init(&b, &model, buffers[i], 0, NULL), 0);
			assert_true(0 < b.warning && b.warning < b.compact);
			assert_true(b.compact < b.closing && b.closing <= b.blocking);
			assert_true(b.blocking < b.effective && b.effective <= window);
		}
	}
}

static void unknown_window_names_the_option(void **state)
{
	struct model model = {.provider = (char *)"p", .name = (char *)"m"};
	struct window_budget b;
	struct err e = ERR_INIT;

	assert_int_equal(budget_init(&b, &model, 0, 0, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.message, "--window"));
}

static void w12_room_is_the_least_of_three(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);

	assert_int_equal(budget_answer_room(&b, 16000, 1000), 16000);
	assert_int_equal(budget_answer_room(&b, 90000, 1000), 20000);
	b = budget_of(32768, 32768, 0);
	assert_int_equal(budget_answer_room(&b, 90000, 1000), 8192);
}

/* Trap 7: the catalogue says max output = window. */
static void w12_trap_7_input_and_answer_fit(void **state)
{
	struct window_budget b = budget_of(131072, 131072, 0);
	int64_t room = budget_answer_room(&b, 131072, 7900);

	assert_true(room > 0 && room <= 131072 - 7900 - 1310);
	for (int64_t used = 0; used < 131072; used += 997) {
		room = budget_answer_room(&b, 131072, used);
		assert_true(room == 0 || (room >= 1024 && used + room + 1310 <= 131072));
	}
}

static void w12_shrinks_to_what_is_left_and_then_refuses(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);

	assert_int_equal(budget_answer_room(&b, 16000, 200000 - 2000 - 5000), 5000);
	assert_int_equal(budget_answer_room(&b, 16000, 200000 - 2000 - 1024), 1024);
	assert_int_equal(budget_answer_room(&b, 16000, 200000 - 2000 - 1023), 0);
}

static void w7_results_leave_room_to_report(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);
	int64_t room = budget_results_room(&b, 160000);

	assert_true(160000 + room < b.blocking);
	assert_int_equal(budget_results_room(&b, 190000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w2_worked_example),
		cmocka_unit_test(w1_reserve_and_input_limit),
		cmocka_unit_test(w14_ceiling),
		cmocka_unit_test(w2_order_holds_in_every_window),
		cmocka_unit_test(unknown_window_names_the_option),
		cmocka_unit_test(w12_room_is_the_least_of_three),
		cmocka_unit_test(w12_trap_7_input_and_answer_fit),
		cmocka_unit_test(w12_shrinks_to_what_is_left_and_then_refuses),
		cmocka_unit_test(w7_results_leave_room_to_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
