/*
 * test_progress.c - the work in progress (H8, H22), the best size of a window (W11), and files that a summary
 * names (R4).
 */
#include "agent_fixture.h"

#include <stdio.h>
#include <string.h>

#include "agent/context/pace.h"
#include "agent/context/progress.h"
#include "agent/context/summary_check.h"
#include "base/memory.h"

struct rig {
	struct conversation c;
	struct view view;
};

static void round_of(struct rig *r, const char *tool, const char *arguments, bool failed)
{
	struct message *m = message_new(MESSAGE_ASSISTANT);
	char id[16];

	snprintf(id, sizeof(id), "c%zu", r->c.n);
	conversation_next_round(&r->c);
	message_add_call(m, id, tool, arguments, strlen(arguments), NULL);
	m->estimate = 10;
	conversation_append(&r->c, m);
	m = message_new(MESSAGE_USER);
	message_add_result(m, id, tool, "out", 3, failed);
	m->estimate = 90;
	conversation_append(&r->c, m);
}

static void begin(struct rig *r)
{
	conversation_init(&r->c);
	view_init(&r->view);
	conversation_append(&r->c, fixture_text(MESSAGE_USER, "the task"));
}

static void end(struct rig *r)
{
	view_release(&r->view);
	conversation_release(&r->c);
}

/* Rounds 1 to 4 read about; 5 to 8 are the work on a.c; the tail would begin with round 8. */
static void work(struct rig *r)
{
	begin(r);
	for (int i = 0; i < 4; i++)
		round_of(r, "read", "{\"path\":\"other.c\"}", false);
	round_of(r, "read", "{\"path\":\"src/a.c\"}", false);
	round_of(r, "edit", "{\"path\":\"src/a.c\",\"old\":\"x\"}", false);
	round_of(r, "shell", "{\"command\":\"make test\"}", true);
	round_of(r, "edit", "{\"path\":\"src/a.c\",\"old\":\"y\"}", false);
	view_sync(&r->view, &r->c);
}

static void h8_the_tail_reaches_back_to_the_work(void **state)
{
	struct rig r;

	work(&r);
	assert_int_equal(progress_begin(&r.view, 15, 100000), 9); /* round 5 */
	assert_int_equal(progress_begin(&r.view, 15, 310), 11);	  /* what fits */
	assert_int_equal(progress_begin(&r.view, 15, 50), 15);
	end(&r);
}

static void h22_the_focus_is_the_work(void **state)
{
	struct rig r;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf none = BUF_INIT;

	work(&r);
	progress_focus(&r.view, &out);
	assert_non_null(strstr(buf_str(&out), "src/a.c"));
	assert_non_null(strstr(buf_str(&out), "make test"));
	round_of(&r, "shell", "{\"command\":\"make test\"}", false); /* it passes now */
	view_sync(&r.view, &r.c);
	buf_clear(&out);
	progress_focus(&r.view, &out);
	assert_null(strstr(buf_str(&out), "make test"));
	end(&r);
	begin(&r);
	round_of(&r, "read", "{\"path\":\"other.c\"}", false);
	view_sync(&r.view, &r.c);
	progress_focus(&r.view, &none);
	assert_int_equal(none.len, 0);
	assert_int_equal(progress_begin(&r.view, 1, 1000), 1);
	end(&r);
}

/* W11: at usual prices the best window is well below 167,000 tokens; without prices nothing changes. */
static void w11_prices_make_a_smaller_window_cheaper(void **state)
{
	struct model model = {.cache = CACHE_EXPLICIT,
			      .price = {.known = true,
					.input = 3,
					.output = 15,
					.cache_read = 0.3,
					.cache_write = 3.75}};
	struct pace_input in = {.model = &model,
				.base = 20000,
				.growth = 1500,
				.summary = 3000,
				.least = 40000,
				.threshold = 167000};
	int64_t best = pace_threshold(&in);

	/* F = 3000 * 15 + 20000 * 3.45 = 114,000; sqrt(2 F / (0.3 * 1500)) = 22.5 rounds. */
	assert_in_range(best, 53000, 54500);
	in.least = 80000;
	assert_int_equal(pace_threshold(&in), 80000);
	assert_true(pace_pays(&in, 100000, 100));
	assert_false(pace_pays(&in, 100000, 2));
	model.price.cache_read = 0.003; /* reading costs next to nothing */
	assert_int_equal(pace_threshold(&in), 167000);
	model.price.known = false;
	assert_int_equal(pace_threshold(&in), 167000);
	assert_false(pace_pays(&in, 160000, 1000));
}

static bool exists(const char *name, void *arg)
{
	return !strcmp(name, arg);
}

/* R4: named files are on disk or were spoken of. */
static void r4_invented_files(void **state)
{
	static const char *const good[] = {
		"Changed src/here.c and lib/spoken.h.",
		"See https://example.org/docs/page.html and version 1.2/3.4; and/or; a/b/c; src/.",
		"`lib/spoken.h`: done.",
	};
	struct message *m = fixture_text(MESSAGE_USER, "look at lib/spoken.h please");
	struct summary_check check = {
		.list = &m, .n = 1, .exists = exists, .arg = (void *)"src/here.c"};
	struct err err = ERR_INIT;
	static const char bad[] = "3. Files: src/here.c, src/gone/made_up.c.";

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(summary_check_files(good[i], strlen(good[i]), &check, &err), 0);
	assert_int_equal(summary_check_files(bad, strlen(bad), &check, &err), -1);
	assert_non_null(strstr(err.message, "src/gone/made_up.c"));
	assert_null(strstr(err.message, "src/here.c"));
	message_free(m);
}

/* H16: a summary of another model has no cached prefix to read, so that it pays later, or never. */
static void h16_the_price_of_another_model(void **state)
{
	struct model model = {.cache = CACHE_EXPLICIT,
			      .price = {.known = true,
					.input = 3,
					.output = 15,
					.cache_read = 0.3,
					.cache_write = 3.75}};
	struct model other = {.price = {.known = true, .input = 1, .output = 5}};
	struct pace_input own = {.model = &model,
				 .base = 20000,
				 .growth = 1500,
				 .summary = 3000,
				 .least = 30000,
				 .threshold = 167000};
	struct pace_input in = own;

	in.asked = &other;
	/* F = 3000 * 5 + 20000 * 1 + 20000 * 3.45 = 104,000 instead of 114,000. */
	assert_in_range(pace_threshold(&in), 51500, 52500);
	assert_true(pace_threshold(&in) < pace_threshold(&own));
	/* 80,000 tokens read afresh cost 80,000 instead of 30,000 from the cache: 24,000 are saved a
	 * round, and 7 of them are no longer enough. */
	assert_true(pace_pays(&own, 100000, 7));
	assert_false(pace_pays(&in, 100000, 7));
	assert_true(pace_pays(&in, 100000, 8));
	other.price.input = 15; /* dearer than it can ever bring */
	assert_true(pace_threshold(&in) > pace_threshold(&own));
	other.price.known = false;
	assert_int_equal(pace_threshold(&in), 167000);
	assert_false(pace_pays(&in, 160000, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h8_the_tail_reaches_back_to_the_work),
		cmocka_unit_test(h22_the_focus_is_the_work),
		cmocka_unit_test(w11_prices_make_a_smaller_window_cheaper),
		cmocka_unit_test(h16_the_price_of_another_model),
		cmocka_unit_test(r4_invented_files),
	};
	return cmocka_run_group_tests_name("agent/progress", tests, NULL, NULL);
}
