/*
 * test_resample.c - H20: near-duplicates go, what is left is in order, and it fits.
 */
#include "agent_fixture.h"

#include <stdio.h>
#include <string.h>

#include "agent/context/resample.h"
#include "base/clock.h"
#include "base/memory.h"

static struct resample_item item(const char *text, int64_t age, int64_t weight)
{
	return (struct resample_item){
		.text = text, .n = strlen(text), .age = age, .weight = weight};
}

static int similar(const char *a, const char *b)
{
	return resample_similarity(a, strlen(a), b, strlen(b));
}

static void h20_small_variations_are_near_duplicates(void **state)
{
	assert_true(
		similar("The upload test fails once in forty runs because the fake store is slow",
			"The upload test fails once in  forty runs, because the fake store is "
			"slow.") >= 80);
	assert_true(similar("Error: cannot open '/etc/app.conf' (line 12)",
			    "error: cannot open '/etc/app.conf' (line 13)") >= 80);
	assert_true(similar("对账任务每天凌晨会漏掉一部分退款订单，原因是时区",
			    "对账任务每天凌晨会漏掉一部分退款订单，原因是时区。") >= 80);
	assert_int_equal(similar("", " \n"), 100);
}

static void h20_different_texts_are_not(void **state)
{
	assert_true(similar("The upload test fails once in forty runs",
			    "The download test passes in all of the runs") < 60);
	assert_true(similar("src/parser/lexer.c holds the table of keywords",
			    "src/parser/emit.c writes the object file") < 60);
	assert_true(similar("对账任务每天凌晨会漏掉一部分退款订单",
			    "采集网关运行三四天后内存耗尽重启") < 20);
}

static void h20_the_better_of_two_duplicates_stays(void **state)
{
	struct resample_item items[] = {
		item("the parser drops the last line of a file", 5, 0),
		item("The parser drops the last line of a file.", 1, 0), /* newer */
		item("the lexer knows no tabs", 9, 0),
		item("the parser  drops the last line of a file", 7, 3), /* heavier */
	};
	struct resample_spec spec = {.tokens = 0};
	size_t order[4];

	assert_int_equal(resample(items, 4, &spec, order), 2);
	assert_int_equal(order[0], 3);
	assert_int_equal(order[1], 2);
	assert_int_equal(items[0].like, 3);
	assert_int_equal(items[1].like, 3);
	assert_int_equal(items[2].like, 2);
}

/* Weight, then hits, then age, then place. */
static void h20_order_by_rule(void **state)
{
	static const char task[] =
		"make the flaky_upload test of session.c deterministic; 退款订单";
	struct resample_item items[] = {
		item("nothing that matters here, old", 9, 0),
		item("notes on the weather, new", 0, 0),
		item("session.c starts the flaky_upload loop", 50, 0),
		item("the user pinned this one", 99, 1),
		item("退款订单在凌晨漏掉", 60, 0),
		item("the gardener and the spade, new", 0, 0),
	};
	static const size_t expected[] = {3, 4, 2, 1, 5, 0};
	struct resample_spec spec = {.task = task, .task_len = strlen(task)};
	size_t order[6];

	assert_int_equal(resample(items, 6, &spec, order), 6);
	assert_memory_equal(order, expected, sizeof(expected));
	assert_int_equal(items[2].hits, 2);
	assert_int_equal(items[4].hits, 3);
}

static void h20_what_does_not_fit_is_left_out(void **state)
{
	AUTO_FREE char *large = mem_alloc(4001);
	struct resample_item items[3];
	struct resample_spec spec = {.tokens = 100};
	size_t order[3];
	int64_t sum = 0;

	for (size_t i = 0; i < 4000; i++)
		large[i] = (char)('a' + i * i % 23);
	items[0] = item("first and small", 0, 0);
	items[1] = item(large, 1, 0);
	items[2] = item("last, and it fits behind the large one", 2, 0);
	assert_int_equal(resample(items, 3, &spec, order), 2);
	assert_int_equal(order[0], 0);
	assert_int_equal(order[1], 2);
	for (size_t i = 0; i < 2; i++)
		sum += items[order[i]].tokens;
	assert_true(sum <= 100);
	assert_int_equal(resample(items, 0, &spec, order), 0);
}

/* 1,000 items in a time that nobody notices, and the same choice each time. */
static void h20_a_thousand_items(void **state)
{
	enum { N = 1000 };
	static struct resample_item items[N];
	static size_t first[N], second[N];
	static char texts[N][200];
	struct resample_spec spec = {.task = "cache shard replay", .task_len = 18};
	int64_t began;
	size_t kept;

	for (size_t i = 0; i < N; i++) { /* each of 500 texts twice, the second with another end */
		size_t k = i % (N / 2);

		snprintf(texts[i], sizeof(texts[i]),
			 "report %zu: shard %zu of cache %zx replays %zu records in %zu ms after a "
			 "crash of %zx%s",
			 k * 7919, k * 104729, k * 2654435761u, k * k + 17, k * 31,
			 k * 40503u + 99991, i < N / 2 ? "" : ".");
		items[i] = item(texts[i], (int64_t)i, 0);
	}
	began = clock_mono_ms();
	kept = resample(items, N, &spec, first);
	assert_true(clock_mono_ms() - began < 500); /* measured: 20 */
	assert_true(kept <= N / 2 && kept > N / 4);
	assert_int_equal(resample(items, N, &spec, second), kept);
	assert_memory_equal(first, second, kept * sizeof(*first));
}

/* Any bytes: a search result may be anything. */
static void h20_bytes_that_are_no_text(void **state)
{
	struct resample_item items[] = {{.text = "\xff\xfe\x80\x80", .n = 4},
					{.text = "\xe4\xbd", .n = 2},
					{.text = "", .n = 0}};
	struct resample_spec spec = {.task = "\xe4\xbd\xe4", .task_len = 3};
	size_t order[3];

	assert_int_equal(resample(items, 3, &spec, order), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h20_small_variations_are_near_duplicates),
		cmocka_unit_test(h20_different_texts_are_not),
		cmocka_unit_test(h20_the_better_of_two_duplicates_stays),
		cmocka_unit_test(h20_order_by_rule),
		cmocka_unit_test(h20_what_does_not_fit_is_left_out),
		cmocka_unit_test(h20_a_thousand_items),
		cmocka_unit_test(h20_bytes_that_are_no_text),
	};
	return cmocka_run_group_tests_name("agent/resample", tests, NULL, NULL);
}
