/*
 * test_price.c - what a rewrite costs and brings, by the model's prices (W11).
 */
#include "tests/base/test_base.h"

#include "agent/context/price.h"

static const struct model explicit_cache = {
	.cache = CACHE_EXPLICIT,
	.price = {.known = true, .input = 5, .cache_read = 0.5, .cache_write = 6.25}};

/* Sonnet-like figures: 10,000 tokens that go, 40,000 behind them. */
static void test_cost_and_saving(void **state)
{
	struct rewrite r = {.rewritten = 40000, .freed = 10000, .rounds_left = 10};
	struct rewrite_price p = price_rewrite(&explicit_cache, &r);

	assert_true(p.known);
	assert_float_equal(p.cost, 40000 * 5.75, 1);
	assert_float_equal(p.saved, 10000 * 0.5 * 10, 1);
	assert_false(price_pays(&explicit_cache, &r));
	r.rewritten = 8000;
	assert_true(price_pays(&explicit_cache, &r));
	r.rounds_left = 1;
	assert_false(price_pays(&explicit_cache, &r));
	/* A hundred rounds are not counted on. */
	r.rounds_left = 1000;
	assert_float_equal(price_rewrite(&explicit_cache, &r).saved, 10000 * 0.5 * PRICE_ROUNDS, 1);
}

/* T8: what is not in the cache any more cannot be lost. */
static void test_a_lapsed_cache(void **state)
{
	struct rewrite r = {
		.rewritten = 400000, .freed = 1, .rounds_left = 1, .cache_lapsed = true};

	assert_true(price_pays(&explicit_cache, &r));
	r.freed = 0;
	assert_false(price_pays(&explicit_cache, &r));
}

/* Providers that cache by themselves write at the price of input; others never read from one. */
static void test_other_caches(void **state)
{
	struct model m = {.cache = CACHE_AUTOMATIC,
			  .price = {.known = true, .input = 2, .cache_read = 0.2}};
	struct rewrite r = {.rewritten = 10000, .freed = 10000, .rounds_left = 5};

	assert_float_equal(price_rewrite(&m, &r).cost, 10000 * 1.8, 1);
	m.cache = CACHE_NONE;
	assert_float_equal(price_rewrite(&m, &r).cost, 0, 0.1);
	assert_float_equal(price_rewrite(&m, &r).saved, 10000 * 2 * 5, 1);
	m.price.known = false;
	assert_false(price_pays(&m, &r));
}

static void test_the_dear_tier(void **state)
{
	struct model m = explicit_cache;
	struct rewrite r = {.freed = 1000, .rounds_left = 1, .input = 200001};

	m.tier_above = 200000;
	m.tier_price = m.price;
	m.tier_price.cache_read = 1;
	assert_float_equal(price_rewrite(&m, &r).saved, 1000, 0.1);
	r.input = 200000;
	assert_float_equal(price_rewrite(&m, &r).saved, 500, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_and_saving),
		cmocka_unit_test(test_a_lapsed_cache),
		cmocka_unit_test(test_other_caches),
		cmocka_unit_test(test_the_dear_tier),
	};
	return cmocka_run_group_tests_name("agent/price", tests, NULL, NULL);
}
