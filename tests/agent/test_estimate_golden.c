/*
 * test_estimate_golden.c - W6: the estimate against token counts of real tokenizers, without them.
 *
 * The texts are made by sample_texts.c; tests/golden/token_counts.json holds what four tokenizers
 * count for each. After a change of the templates a new record is written by
 *
 *     test_agent_estimate_golden --write | node tests/bench/tokens/record.mjs MODULES
 *
 * where MODULES is the node_modules folder that tests/bench/bench_tokens.sh installed.
 */
#include "agent_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "agent/estimate.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "sample_texts.h"

#define BAR_MEAN  0.03
#define BAR_WORST 0.08

enum { LEARNED_AFTER = 5 };

static struct json_object *golden;

static int setup(void **state)
{
	struct err err = ERR_INIT;

	if (json_parse_file(GOLDEN_DIR "/token_counts.json", 1 << 20, &golden, &err) < 0)
		print_error("%s\n", err.message);
	return golden ? 0 : -1;
}

static int teardown(void **state)
{
	json_object_put(golden);
	return 0;
}

static struct json_object *row_of(size_t kind, size_t piece)
{
	return json_at(json_arr(golden, "texts"), kind * SAMPLE_PIECES + piece);
}

static int64_t truth_of(size_t kind, size_t piece, size_t tokenizer)
{
	return json_object_get_int64(json_at(json_arr(row_of(kind, piece), "tokens"), tokenizer));
}

static size_t tokenizers(void)
{
	return json_len(json_arr(golden, "tokenizers"));
}

static struct text_counts counts_of(size_t kind, size_t piece)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct text_counts c = {.images = 0};

	sample_text(kind, piece, &text);
	estimate_count(&c, text.data, text.len);
	return c;
}

struct figure {
	double sum, worst;
	int n;
};

static void figure_add(struct figure *f, double estimate, double truth)
{
	double error = fabs(estimate - truth) / truth;

	f->sum += error;
	f->worst = MAX(f->worst, error);
	f->n++;
}

/* A conversation about one kind: of all that comes after five usages, the error of the next whole
 * request, and of its new part. */
static void play(size_t kind, size_t tokenizer, struct figure *total, struct figure *fresh)
{
	struct estimator e;
	double base = 0;

	estimator_init(&e);
	for (size_t i = 0; i < SAMPLE_PIECES; i++) {
		struct text_counts c = counts_of(kind, i);
		double estimate = (double)estimate_tokens(&e, &c);
		int64_t truth = truth_of(kind, i, tokenizer);

		if (i >= LEARNED_AFTER) {
			figure_add(total, base + estimate, base + (double)truth);
			figure_add(fresh, estimate, (double)truth);
		}
		estimator_learn(&e, &c, truth);
		base += (double)truth;
	}
}

static void the_record_is_of_these_texts(void **state)
{
	assert_int_equal(json_len(json_arr(golden, "texts")), sample_kinds() * SAMPLE_PIECES);
	assert_true(tokenizers() >= 3);
	for (size_t k = 0; k < sample_kinds(); k++) {
		for (size_t i = 0; i < SAMPLE_PIECES; i++) {
			AUTO_BUF struct buf text = BUF_INIT;
			char hash[32];

			sample_text(k, i, &text);
			snprintf(hash, sizeof(hash), "%016" PRIx64, text_hash(text.data, text.len));
			assert_string_equal(json_str(row_of(k, i), "kind", ""), sample_kind(k));
			assert_string_equal(json_str(row_of(k, i), "hash", ""), hash);
		}
	}
}

static void w6_bar_after_five_rounds(void **state)
{
	for (size_t k = 0; k < sample_kinds(); k++) {
		for (size_t t = 0; t < tokenizers(); t++) {
			struct figure total = {.n = 0}, fresh = {.n = 0};

			play(k, t, &total, &fresh);
			if (total.sum / total.n > BAR_MEAN || total.worst > BAR_WORST ||
			    fresh.sum / fresh.n > BAR_MEAN || fresh.worst > 2 * BAR_WORST)
				fail_msg("%s, tokenizer %zu: request %.3f, worst %.3f; new part "
					 "%.3f, worst %.3f",
					 sample_kind(k), t, total.sum / total.n, total.worst,
					 fresh.sum / fresh.n, fresh.worst);
		}
	}
}

/* Also when the kinds take turns, so that no rate is learned by itself. */
static void w6_bar_when_kinds_take_turns(void **state)
{
	for (size_t t = 0; t < tokenizers(); t++) {
		struct figure total = {.n = 0};
		struct estimator e;
		double base = 0;

		estimator_init(&e);
		for (size_t i = 0; i < SAMPLE_PIECES * sample_kinds(); i++) {
			struct text_counts c = counts_of(i % sample_kinds(), i / sample_kinds());
			double truth = (double)truth_of(i % sample_kinds(), i / sample_kinds(), t);

			if (i >= LEARNED_AFTER)
				figure_add(&total, base + (double)estimate_tokens(&e, &c),
					   base + truth);
			estimator_learn(&e, &c, (int64_t)truth);
			base += truth;
		}
		assert_true(total.sum / total.n <= BAR_MEAN && total.worst <= BAR_WORST);
	}
}

/* Trap 86: before any usage no text is low by more than a quarter; that is what overflows. */
static void trap_86_cold_estimates_are_not_far_too_low(void **state)
{
	struct estimator e;

	estimator_init(&e);
	for (size_t k = 0; k < sample_kinds(); k++) {
		for (size_t i = 0; i < SAMPLE_PIECES; i++) {
			struct text_counts c = counts_of(k, i);

			for (size_t t = 0; t < tokenizers(); t++)
				if ((double)estimate_tokens(&e, &c) <
				    0.75 * (double)truth_of(k, i, t))
					fail_msg("%s %zu, tokenizer %zu: %d of %d", sample_kind(k),
						 i, t, (int)estimate_tokens(&e, &c),
						 (int)truth_of(k, i, t));
		}
	}
}

static int write_texts(void)
{
	AUTO_BUF struct buf out = BUF_INIT;

	for (size_t k = 0; k < sample_kinds(); k++) {
		for (size_t i = 0; i < SAMPLE_PIECES; i++) {
			AUTO_BUF struct buf text = BUF_INIT;

			sample_text(k, i, &text);
			buf_addf(&out, "{\"kind\":\"%s\",\"piece\":%zu,\"hash\":\"%016" PRIx64 "\"",
				 sample_kind(k), i, text_hash(text.data, text.len));
			buf_adds(&out, ",\"text\":");
			json_write_string(&out, text.data, text.len);
			buf_adds(&out, "}\n");
		}
	}
	return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_record_is_of_these_texts),
		cmocka_unit_test(w6_bar_after_five_rounds),
		cmocka_unit_test(w6_bar_when_kinds_take_turns),
		cmocka_unit_test(trap_86_cold_estimates_are_not_far_too_low),
	};

	if (argc > 1 && !strcmp(argv[1], "--write"))
		return write_texts();
	return cmocka_run_group_tests(tests, setup, teardown);
}
