/*
 * cost.c - the price of the ladder.
 *
 * The session is fixed: in each round the model and the tools say the same, whatever the ladder has done before
 * (plan.fixed), so tokens differ by the ladder alone. Prices are those of two models of the table. Without a
 * ladder nothing would fit, so that session has a window that no model has: its row says what the ladder is for.
 */
#include "cost.h"

#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "session.h"

#define SEEDS	     5
#define ROUNDS	     500
#define BAR	     0.80
#define NOTES_PART   50 /* per cent of automatic compactions */

#define OFF_CLEAR    ",\"clear_share\":100,\"clear_gain\":100"
#define OFF_SNIP     ",\"snip\":false"
#define OFF_COLLAPSE ",\"collapse\":false"
#define OFF_NOTES    ",\"notes\":false"
#define OFF_PRICE    ",\"compact_price\":false"

static const struct ladder {
	const char *name, *context;
	bool endless; /* a window in which everything fits */
} forms[] = {
	{"no ladder",
	 OFF_CLEAR OFF_SNIP OFF_COLLAPSE OFF_NOTES
	 ",\"compact_any\":false,\"working_ceiling\":20000000",
	 true},
	{"compact only", OFF_CLEAR OFF_SNIP OFF_COLLAPSE OFF_NOTES OFF_PRICE, false},
	{"+ clear", OFF_SNIP OFF_COLLAPSE OFF_NOTES OFF_PRICE, false},
	{"+ snip", OFF_CLEAR OFF_COLLAPSE OFF_NOTES OFF_PRICE, false},
	{"+ collapse", OFF_CLEAR OFF_SNIP OFF_NOTES OFF_PRICE, false},
	{"+ notes", OFF_CLEAR OFF_SNIP OFF_COLLAPSE OFF_PRICE, false},
	{"+ prices", OFF_CLEAR OFF_SNIP OFF_COLLAPSE OFF_NOTES, false},
	{"all, prices not asked", OFF_PRICE, false},
	{"all", "", false},
};
#define BASE 1
#define ALL  (ARRAY_SIZE(forms) - 1)

static const struct priced {
	const char *name;
	enum model_api api;
	struct model_price price;
} models[] = {
	{"claude-sonnet-4-6",
	 MODEL_API_ANTHROPIC,
	 {.known = true, .input = 3, .output = 15, .cache_read = 0.3, .cache_write = 3.75}},
	{"gpt-5.4-mini",
	 MODEL_API_OPENAI,
	 {.known = true, .input = 0.75, .output = 4.5, .cache_read = 0.075, .cache_write = 0.75}},
};

static void make_plan(struct session_plan *p, uint64_t seed, const struct ladder *form,
		      const struct priced *model)
{
	*p = (struct session_plan){
		.seed = seed,
		.api = model->api,
		.dialect = model->api == MODEL_API_ANTHROPIC ? "anthropic" : "openai",
		.window = form->endless ? 20000000 : 200000,
		.max_output = 32000,
		.wanted_output = 16000,
		.parallel = true,
		.rounds = ROUNDS,
		.max_rounds = ROUNDS + 10,
		.text_size = 400,
		.result_size = 2500,
		.result_spread = 1.2,
		.instructions = 6000,
		.interject = 100,
		.files = 60,
		.fixed = true,
		.context = form->context,
		.price = model->price,
	};
	p->true_window = p->window;
}

static double price_of(const struct session_cost *c, const struct model_price *p)
{
	return ((double)c->fresh * p->input + (double)c->read * p->cache_read +
		(double)c->written * p->cache_write + (double)c->output * p->output) /
	       1e6;
}

static int run_one(const char *base, uint64_t seed, const struct ladder *form,
		   const struct priced *model, struct session_cost *ret)
{
	AUTO_FREE char *folder = mem_printf("%s/cost", base);
	struct tallies *t = mem_alloc(sizeof(*t));
	struct finding finding = {.found = false};
	struct session_plan plan;
	struct session_options options = {
		.seed = seed, .folder = folder, .plan = &plan, .ret_cost = ret};
	int found = 1;

	make_plan(&plan, seed, form, model);
	if (file_mkdirs(folder, 0700, NULL) == 0)
		found = session_run(&options, t, &finding);
	if (found)
		printf("FOUND cost of '%s', seed %llu, %s: %s\n", form->name,
		       (unsigned long long)seed, finding.rule, finding.text);
	file_remove_tree(folder, NULL);
	free(t);
	return found;
}

static int64_t automatic(const struct context_counts *c)
{
	return c->full + c->up_to + c->from + c->by_notes + c->by_rule - c->manual - c->reactive;
}

static void print_row(const struct ladder *form, const struct session_cost *c, double price,
		      double ratio)
{
	printf("  %-22s %10lld %11lld %9lld %8lld %6lld %5lld/%-5lld %8.2f %6.2f\n", form->name,
	       (long long)c->fresh, (long long)c->read, (long long)c->written, (long long)c->output,
	       (long long)c->calls, (long long)c->counts.by_notes, (long long)automatic(&c->counts),
	       price, ratio);
}

/* One seed at one model's prices: its table. 1: a bar is missed. */
static int run_table(const char *base, uint64_t seed, const struct priced *model)
{
	struct session_cost cost[ARRAY_SIZE(forms)];
	double base_price;
	int failed = 0;

	printf("%s, seed %llu, %d rounds\n", model->name, (unsigned long long)seed, ROUNDS);
	printf("  %-22s %10s %11s %9s %8s %6s %11s %8s %6s\n", "ladder", "fresh", "cache read",
	       "written", "output", "calls", "notes/all", "USD", "ratio");
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		cost[i] = (struct session_cost){.calls = 0};
		failed |= run_one(base, seed, &forms[i], model, &cost[i]);
	}
	base_price = price_of(&cost[BASE], &model->price);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		double price = price_of(&cost[i], &model->price);

		print_row(&forms[i], &cost[i], price, price / base_price);
	}
	if (price_of(&cost[ALL], &model->price) > BAR * base_price) {
		printf("  FAILED: all of it costs more than %.2f of compaction alone\n", BAR);
		failed = 1;
	}
	if (cost[ALL].counts.by_notes * 100 < automatic(&cost[ALL].counts) * NOTES_PART) {
		printf("  FAILED: less than %d %% of the automatic compactions went by notes\n",
		       NOTES_PART);
		failed = 1;
	}
	return failed;
}

int cost_run(const char *base)
{
	int failed = 0, bad;

	printf("[==========] Running %zu test(s).\n", ARRAY_SIZE(models));
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		bad = 0;
		printf("[ RUN      ] cost_%s\n", models[i].name);
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			bad |= run_table(base, seed, &models[i]);
		printf("[  %s ] cost_%s\n", bad ? "FAILED " : "     OK", models[i].name);
		failed |= bad;
	}
	return failed;
}
