/*
 * test_run_budget.c - money and tokens are reserved before they are spent (I11, X8).
 */
#include "tests/base/test_base.h"

#include "orchestrator/run_budget.h"

/* 1 USD per million fresh input, 2 per million written to the cache, 10 per million of output;
 * above 100,000 tokens of input three times as much. */
static const struct model model = {
	.price = {.known = true, .input = 1, .output = 10, .cache_read = 0.1, .cache_write = 2},
	.tier_above = 100000,
	.tier_price =
		{.known = true, .input = 3, .output = 30, .cache_read = 0.3, .cache_write = 6},
};
static const struct model free_model = {.price = {.known = false}};

static bool near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

static enum budget_answer reserve(struct run_budget *b, int64_t in, int64_t out,
				  struct reservation *r, int64_t *ret_affordable)
{
	*r = (struct reservation){0};
	*ret_affordable = -1;
	return run_budget_reserve(b, &model, in, out, r, ret_affordable);
}

static void test_reserves_the_greatest_cost(void **state)
{
	struct run_budget b;
	struct reservation r;
	int64_t affordable;

	run_budget_init(&b, 1.0, 0);
	assert_int_equal(reserve(&b, 10000, 1000, &r, &affordable), BUDGET_OK);
	assert_true(r.open);
	assert_true(near(r.cost, 10000 * 2e-6 + 1000 * 10e-6)); /* as a cache write */
	assert_int_equal(r.tokens, 11000);
	assert_true(near(b.reserved_cost, r.cost));
	assert_int_equal(b.in_flight, 1);
	run_budget_release(&b, &r);
	run_budget_release(&b, &r); /* once */
	assert_int_equal(b.in_flight, 0);
	assert_true(near(b.reserved_cost, 0));
	assert_true(near(b.used.cost, 0));
}

static void test_tiers(void **state)
{
	struct run_budget b;
	struct reservation r;
	int64_t affordable;

	run_budget_init(&b, 100, 0);
	assert_int_equal(reserve(&b, 200000, 1000, &r, &affordable), BUDGET_OK);
	assert_true(near(r.cost, 200000 * 6e-6 + 1000 * 30e-6));
	run_budget_settle(&b, &r, &model, 0, 200000, 0, 0, 1000, false, NULL);
	assert_true(near(b.used.cost, 200000 * 0.3e-6 + 1000 * 30e-6));
}

static void test_settles_by_usage(void **state)
{
	struct run_budget b;
	struct reservation r;
	struct budget_usage agent = {0};
	int64_t affordable;

	run_budget_init(&b, 1.0, 0);
	assert_int_equal(reserve(&b, 10000, 1000, &r, &affordable), BUDGET_OK);
	run_budget_settle(&b, &r, &model, 100, 9000, 900, 0, 200, false, &agent);
	assert_false(r.open);
	assert_int_equal(b.in_flight, 0);
	assert_true(near(b.reserved_cost, 0));
	assert_true(near(b.used.cost, 100e-6 + 9000 * 0.1e-6 + 900 * 2e-6 + 200 * 10e-6));
	assert_true(near(agent.cost, b.used.cost));
	assert_int_equal(agent.fresh, 100);
	assert_int_equal(agent.cache_read, 9000);
	assert_int_equal(agent.cache_write, 900);
	assert_int_equal(agent.output, 200);
	assert_int_equal(agent.calls, 1);
	assert_int_equal(agent.estimated_calls, 0);
	/* An attempt that ended without usage is booked by estimate and marked so. */
	assert_int_equal(reserve(&b, 10000, 1000, &r, &affordable), BUDGET_OK);
	run_budget_settle(&b, &r, &model, 10000, 0, 0, 0, 50, true, &agent);
	assert_int_equal(b.used.calls, 2);
	assert_int_equal(b.used.estimated_calls, 1);
}

/* Twice the price of a prefix that lives for an hour is reserved only where it was asked for. */
static void test_long_cache(void **state)
{
	struct model kept = model;
	struct run_budget b;
	struct reservation r = {0};
	int64_t affordable;

	kept.price.cache_write_1h = 4;
	run_budget_init(&b, 1.0, 0);
	run_budget_reserve(&b, &kept, 10000, 0, &r, &affordable);
	assert_true(near(r.cost, 0.02));
	run_budget_release(&b, &r);
	b.long_cache = true;
	run_budget_reserve(&b, &kept, 10000, 0, &r, &affordable);
	assert_true(near(r.cost, 0.04));
}

/* Not enough unreserved: wait for settlements; nothing in flight and still short: refuse. */
static void test_waits_then_refuses(void **state)
{
	struct run_budget b;
	struct reservation first, second;
	int64_t affordable;

	run_budget_init(&b, 0.05, 0);
	assert_int_equal(reserve(&b, 10000, 2000, &first, &affordable), BUDGET_OK); /* 0.04 */
	assert_int_equal(reserve(&b, 10000, 2000, &second, &affordable), BUDGET_WAIT);
	assert_false(second.open);
	assert_int_equal(b.in_flight, 1);
	run_budget_settle(&b, &first, &model, 1000, 0, 0, 0, 100, false, NULL); /* 0.002 */
	assert_int_equal(reserve(&b, 10000, 2000, &second, &affordable), BUDGET_OK);
	run_budget_settle(&b, &second, &model, 10000, 0, 0, 0, 1500, false,
			  NULL); /* 0.025: 0.027 */
	assert_int_equal(reserve(&b, 10000, 2000, &second, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 0); /* 300 tokens are not worth a call (W12) */
	assert_int_equal(reserve(&b, 1000, 5000, &second, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 2100);
	assert_int_equal(reserve(&b, 1000, affordable, &second, &affordable), BUDGET_OK);
}

static void test_token_limit(void **state)
{
	struct run_budget b;
	struct reservation r;
	int64_t affordable;

	run_budget_init(&b, -1, 20000);
	assert_int_equal(reserve(&b, 10000, 10001, &r, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 10000);
	assert_int_equal(reserve(&b, 10000, 10000, &r, &affordable), BUDGET_OK);
	run_budget_settle(&b, &r, &model, 5000, 3000, 2000, 0, 100, false, NULL);
	assert_int_equal(reserve(&b, 8000, 1901, &r, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 1900);
	assert_int_equal(reserve(&b, 9000, 1000, &r, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 0);
}

static void test_no_limits_and_no_prices(void **state)
{
	struct run_budget b;
	struct reservation r = {0};
	int64_t affordable;

	run_budget_init(&b, -1, 0);
	assert_int_equal(reserve(&b, 1000000000, 1000000, &r, &affordable), BUDGET_OK);
	run_budget_settle(&b, &r, &model, 1000000000, 0, 0, 0, 1, false, NULL);
	assert_int_equal(run_budget_reserve(&b, &free_model, 1000, 1000, &r, &affordable),
			 BUDGET_OK);
	assert_true(near(r.cost, 0));
	double before = b.used.cost;
	run_budget_settle(&b, &r, &free_model, 1000, 0, 0, 0, 10, false, NULL);
	assert_true(near(b.used.cost, before)); /* never -1 */
}

static void test_a_budget_of_nothing(void **state)
{
	struct run_budget b;
	struct reservation r;
	int64_t affordable;

	run_budget_init(&b, 0, 0);
	assert_int_equal(reserve(&b, 1, 1, &r, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 0);
}

/* ---- never more than the limit ---- */

static uint64_t seed;

static int64_t draw(int64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((seed >> 33) % (uint64_t)limit);
}

enum { CALLS = 8, STEPS = 3000 };

struct open_call {
	struct reservation r;
	int64_t in, out;
};

/* Whatever part of its reservation an attempt uses, at whatever price. */
static void end_call(struct run_budget *b, struct open_call *call)
{
	int64_t in = draw(call->in + 1), read = draw(in + 1), written = draw(in - read + 1);

	if (draw(4) == 0)
		run_budget_release(b, &call->r);
	else
		run_budget_settle(b, &call->r, &model, in - read - written, read, written, 0,
				  draw(call->out + 1), draw(2), NULL);
}

static void check_budget(const struct run_budget *b, const struct open_call *calls)
{
	double cost = 0;
	int64_t tokens = 0, open = 0;
	int64_t used = b->used.fresh + b->used.cache_read + b->used.cache_write + b->used.output;

	for (int i = 0; i < CALLS; i++) {
		cost += calls[i].r.open ? calls[i].r.cost : 0;
		tokens += calls[i].r.open ? calls[i].r.tokens : 0;
		open += calls[i].r.open;
	}
	assert_true(near(cost, b->reserved_cost));
	assert_int_equal(tokens, b->reserved_tokens);
	assert_int_equal(open, b->in_flight);
	if (b->max_cost >= 0)
		assert_true(b->used.cost + b->reserved_cost <= b->max_cost + 1e-8);
	if (b->max_tokens)
		assert_true(used + b->reserved_tokens <= b->max_tokens);
}

static void step(struct run_budget *b, struct open_call *calls)
{
	struct open_call *call = &calls[draw(CALLS)];
	int64_t affordable = -1;

	if (call->r.open) {
		end_call(b, call);
		return;
	}
	call->in = draw(300000);
	call->out = 1 + draw(20000);
	int64_t in_flight = b->in_flight;
	switch (run_budget_reserve(b, &model, call->in, call->out, &call->r, &affordable)) {
	case BUDGET_OK: assert_true(call->r.open); break;
	case BUDGET_WAIT: assert_true(in_flight > 0 && !call->r.open); break;
	case BUDGET_REFUSED:
		assert_int_equal(in_flight, 0);
		assert_true(affordable == 0 || (affordable >= 1024 && affordable < call->out));
		if (affordable == 0)
			break;
		/* What is said to fit fits, and one more does not. */
		int64_t more;
		assert_int_equal(
			run_budget_reserve(b, &model, call->in, affordable + 1, &call->r, &more),
			BUDGET_REFUSED);
		assert_int_equal(
			run_budget_reserve(b, &model, call->in, affordable, &call->r, &more),
			BUDGET_OK);
		call->out = affordable;
	}
}

static void test_never_passes_the_limit(void **state)
{
	for (int round = 0; round < 60; round++) {
		struct open_call calls[CALLS] = {0};
		struct run_budget b;
		seed = (uint64_t)round + 1;
		run_budget_init(&b, round % 3 == 1 ? -1 : (double)draw(20000) / 1000,
				round % 3 == 0 ? 0 : 1 + draw(20000000));
		for (int i = 0; i < STEPS; i++) {
			step(&b, calls);
			check_budget(&b, calls);
		}
		for (int i = 0; i < CALLS; i++)
			run_budget_release(&b, &calls[i].r);
		check_budget(&b, calls);
	}
}

/* X8: a call has to fit into the agent's budget and into all above it, and is booked in each. */
static void test_a_chain_of_budgets(void **state)
{
	struct run_budget run, lead, child;
	struct reservation first, second;
	struct budget_usage before = {.fresh = 700, .calls = 1};
	int64_t affordable;

	run_budget_init(&run, -1, 100000);
	run_budget_init(&lead, -1, 0);
	run_budget_init(&child, -1, 20000);
	lead.above = &run;
	child.above = &lead;
	assert_true(run_budget_is_limited(&lead));
	assert_int_equal(reserve(&child, 12000, 4000, &first, &affordable), BUDGET_OK);
	assert_int_equal(run.reserved_tokens, 16000);
	assert_int_equal(reserve(&child, 5000, 1000, &second, &affordable), BUDGET_WAIT);
	assert_int_equal(reserve(&lead, 5000, 1000, &second, &affordable), BUDGET_OK);
	run_budget_release(&lead, &second);
	run_budget_settle(&child, &first, &model, 12000, 0, 0, 0, 1000, false, NULL);
	assert_int_equal(run.reserved_tokens, 0);
	assert_int_equal(run.in_flight, 0);
	assert_int_equal(run.used.fresh, 12000);
	assert_int_equal(lead.used.output, 1000);
	/* 7,000 of the child's are left, 87,000 of the run's. */
	assert_int_equal(reserve(&child, 5000, 4000, &second, &affordable), BUDGET_REFUSED);
	assert_int_equal(affordable, 2000);
	assert_ptr_equal(run_budget_obstacle(&child, &model, 5000, 4000), &child);
	assert_ptr_equal(run_budget_obstacle(&child, &model, 90000, 4000), &child);
	assert_ptr_equal(run_budget_obstacle(&lead, &model, 90000, 4000), &run);
	run_budget_add(&child, &run, &before);
	assert_int_equal(lead.used.fresh, 12700);
	assert_int_equal(run.used.fresh, 12000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserves_the_greatest_cost),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_settles_by_usage),
		cmocka_unit_test(test_long_cache),
		cmocka_unit_test(test_waits_then_refuses),
		cmocka_unit_test(test_token_limit),
		cmocka_unit_test(test_no_limits_and_no_prices),
		cmocka_unit_test(test_a_budget_of_nothing),
		cmocka_unit_test(test_a_chain_of_budgets),
		cmocka_unit_test(test_never_passes_the_limit),
	};
	return cmocka_run_group_tests_name("orchestrator/run_budget", tests, NULL, NULL);
}
