/*
 * test_budget.c - W1, W2, W4, W12 to W14: thresholds and the room for an answer.
 */
#include "agent_fixture.h"

#include <stdio.h>

#include "agent/context/budget.h"
#include "base/memory.h"

#define MODEL(...)                                                                                 \
	(struct model)                                                                             \
	{                                                                                          \
		.provider = (char *)"p", .name = (char *)"m", __VA_ARGS__                          \
	}

static struct context_knobs defaults(void)
{
	struct context_knobs k;

	knobs_init(&k);
	return k;
}

static struct window_budget make(const struct model *model, const struct context_knobs *k)
{
	struct window_budget b = {.window = 0};

	assert_int_equal(budget_init(&b, model, k, NULL), 0);
	return b;
}

static struct window_budget budget_of(int64_t window, int64_t max_output, int64_t input_limit)
{
	struct model model =
		MODEL(.window = window, .max_output = max_output, .input_limit = input_limit);
	struct context_knobs k = defaults();

	return make(&model, &k);
}

static void w2_worked_example(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);

	assert_int_equal(b.effective, 180000);
	assert_int_equal(b.compact, 167000);
	assert_int_equal(b.warning, 147000);
	assert_int_equal(b.error, 147000);
	assert_int_equal(b.blocking, 177000);
	assert_int_equal(budget_working_space(&b, 15000), 152000); /* W5 */
}

static void w2_without_automatic_compaction(void **state)
{
	struct model model = MODEL(.window = 200000, .max_output = 20000);
	struct context_knobs k = defaults();

	for (int any = 0; any < 2; any++) {
		k.compact_auto = 0;
		k.compact_any = any;
		struct window_budget b = make(&model, &k);

		assert_false(b.automatic);
		assert_int_equal(b.warning, 160000);
		assert_int_equal(b.error, 160000);
		assert_int_equal(b.repeated, 165600); /* 92 % */
		assert_int_equal(b.blocking, 177000);
	}
}

static void w1_reserve_and_input_limit(void **state)
{
	struct model model = MODEL(.window = 200000, .max_output = 64000);
	struct context_knobs k = defaults();

	assert_int_equal(budget_of(200000, 8192, 0).effective, 200000 - 8192);
	assert_int_equal(budget_of(200000, 64000, 0).effective, 180000);
	assert_int_equal(budget_of(400000, 128000, 272000).effective, 272000);
	k.summary_reserve = 30000;
	assert_int_equal(make(&model, &k).effective, 170000);
}

static void w14_ceiling(void **state)
{
	struct model model = MODEL(.window = 1000000, .max_output = 128000, .tier_above = 272000);
	struct context_knobs k = defaults();

	assert_int_equal(budget_of(1000000, 128000, 0).effective, 400000);
	assert_int_equal(make(&model, &k).effective, 272000);
	k.working_ceiling = 100000;
	assert_int_equal(make(&model, &k).effective, 100000);
	assert_int_equal(make(&model, &k).blocking, 97000);
}

static void w4_share_and_blocking_limit(void **state)
{
	struct model model = MODEL(.window = 200000, .max_output = 20000);
	struct context_knobs k = defaults();

	k.compact_pct = 50;
	assert_int_equal(make(&model, &k).compact, 90000);
	assert_int_equal(make(&model, &k).warning, 70000);
	k.blocking_limit = 120000;
	k.compact_pct = 0;
	assert_int_equal(make(&model, &k).blocking, 120000);
	assert_true(make(&model, &k).compact < 120000);
	k.blocking_limit = 10000000;
	assert_int_equal(make(&model, &k).blocking, 179999);
}

/* The shares of W2, H3, H4, H13, T2, T7, X2, W13, H22 where the window is large, and where they bite. */
static void w2_parts_and_marks(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);

	assert_int_equal(b.collapse, 162000);
	assert_int_equal(b.no_spawn, 171000);
	assert_int_equal(b.notes, 12000);
	assert_int_equal(b.rehydrate, 50000);
	assert_int_equal(b.results, 50000);
	assert_int_equal(b.words, 45000);
	assert_int_equal(b.fixed, 90000);
	assert_int_equal(b.memory, 2000);
	assert_int_equal(b.hook_texts, 18000);
	assert_int_equal(b.full, 153000);
	assert_int_equal(b.clear_at, 72000);
	assert_int_equal(b.clear_gain, 18000);
	assert_int_equal(b.marks[0], 45000);
	assert_int_equal(b.marks[1], 90000);
	assert_int_equal(b.marks[2], 135000);
	assert_int_equal(b.reminder, 72000);
	assert_int_equal(b.proactive, 0);
	b = budget_of(16000, 16000, 0);
	assert_int_equal(b.reserve, 4000);
	assert_int_equal(b.effective, 12000);
	assert_int_equal(b.compact, 9000);
	assert_int_equal(b.warning, 6600);
	assert_int_equal(b.notes, 1200);
	assert_int_equal(b.rehydrate, 3360);
	assert_int_equal(b.results, 3360);
	assert_int_equal(b.collapse, 8400); /* 5 % of effective below compact */
}

static uint64_t draw(uint64_t *seed, uint64_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % n;
}

/* Any value that the table allows, small ones as often as large ones. */
static int64_t draw_value(uint64_t *seed, const struct knob *k)
{
	int64_t span = k->max - k->min + 1;

	for (uint64_t shrink = draw(seed, 20); shrink-- > 0 && span > 2;)
		span /= 2;
	return k->min + (int64_t)draw(seed, (uint64_t)span);
}

static void check_order(const struct window_budget *b, const char *where)
{
	bool holds = 0 < b->warning && b->warning < b->compact && b->compact < b->closing &&
		     b->closing <= b->blocking && b->blocking < b->effective &&
		     b->effective <= b->window;

	/* What the rungs and notes rely on. */
	holds &= b->error == b->warning && 0 < b->collapse && b->collapse < b->compact &&
		 b->warning <= b->repeated && b->repeated < b->closing &&
		 b->marks[0] <= b->marks[1] && b->marks[1] <= b->marks[2] && b->reserve >= 0 &&
		 b->notes * 10 <= b->effective && b->rehydrate * 100 <= 28 * b->effective;
	if (!holds)
		fail_msg("%s: window %lld: warning %lld, collapse %lld, compact %lld, repeated "
			 "%lld, "
			 "closing %lld, blocking %lld, effective %lld",
			 where, (long long)b->window, (long long)b->warning, (long long)b->collapse,
			 (long long)b->compact, (long long)b->repeated, (long long)b->closing,
			 (long long)b->blocking, (long long)b->effective);
}

/* W2: "always holds". */
static void w2_order_holds_whatever_the_knobs_say(void **state)
{
	size_t n_knobs;
	const struct knob *table = knob_table(&n_knobs);

	for (uint64_t round = 0; round < 20000; round++) {
		uint64_t seed = round;
		struct context_knobs k = defaults();
		struct model model = MODEL(.window = 8000 + (int64_t)draw(&seed, 1992001));
		char where[40];

		for (uint64_t shrink = draw(&seed, 9); shrink-- > 0 && model.window > 16000;)
			model.window /= 2;
		model.max_output = (int64_t)draw(&seed, (uint64_t)model.window + 1);
		model.input_limit = draw(&seed, 3) ? 0 : 1 + (int64_t)draw(&seed, 300000);
		model.tier_above = draw(&seed, 3) ? 0 : 1 + (int64_t)draw(&seed, 300000);
		for (size_t i = 0; i < n_knobs; i++) {
			int64_t *place = (int64_t *)((char *)&k + table[i].offset);

			if (draw(&seed, 3) == 0)
				*place = draw_value(&seed, &table[i]);
		}
		struct window_budget b = make(&model, &k);
		snprintf(where, sizeof(where), "seed %llu", (unsigned long long)round);
		check_order(&b, where);
	}
}

static void w2_order_holds_in_every_window(void **state)
{
	for (int64_t window = 64; window < 3000000; window += 1 + window / 7) {
		static const int64_t buffers[] = {1, 1000, 5000, 13000, 40000, 900000};

		for (size_t i = 0; i < ARRAY_SIZE(buffers); i++) {
			struct model model = MODEL(.window = window, .max_output = window);
			struct context_knobs k = defaults();

			k.compact_buffer = buffers[i];
			struct window_budget b = make(&model, &k);
			check_order(&b, "buffers");
		}
	}
}

/* Every threshold is on record under a name of its own. */
static void w5_rows_name_all(void **state)
{
	struct window_budget b = budget_of(200000, 20000, 0);
	struct budget_row rows[64];
	size_t n = budget_rows(&b, rows, ARRAY_SIZE(rows));

	assert_true(n >= 18 && n < ARRAY_SIZE(rows));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rows[i].name, rows[j].name);
	assert_int_equal(budget_rows(&b, rows, 2), 2);
}

static void unknown_window_names_the_option(void **state)
{
	struct model model = MODEL(.window = 0);
	struct context_knobs k = defaults();
	struct window_budget b;
	struct err e = ERR_INIT;

	assert_int_equal(budget_init(&b, &model, &k, &e), -1);
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
		cmocka_unit_test(w2_without_automatic_compaction),
		cmocka_unit_test(w4_share_and_blocking_limit),
		cmocka_unit_test(w2_parts_and_marks),
		cmocka_unit_test(w2_order_holds_whatever_the_knobs_say),
		cmocka_unit_test(w2_order_holds_in_every_window),
		cmocka_unit_test(w5_rows_name_all),
		cmocka_unit_test(unknown_window_names_the_option),
		cmocka_unit_test(w12_room_is_the_least_of_three),
		cmocka_unit_test(w12_trap_7_input_and_answer_fit),
		cmocka_unit_test(w12_shrinks_to_what_is_left_and_then_refuses),
		cmocka_unit_test(w7_results_leave_room_to_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
