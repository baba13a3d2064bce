/*
 * test_decay.c - results fade by age, and only where an epoch ended anyway (T9, W11).
 */
#include "tests/agent/history_fixture.h"

#include "agent/context/about.h"
#include "agent/context/decay.h"

static int64_t run(struct history *h)
{
	int64_t before = ledger_used(&h->ledger), freed = -1;

	h->in.done = (struct epoch_done){.freed = 0};
	assert_int_equal(decay_run(&h->in, &freed, NULL), 0);
	history_check(h);
	assert_int_equal(before - ledger_used(&h->ledger), freed);
	return freed;
}

/* The result that came `age` rounds ago. */
static const struct block *aged(const struct history *h, int64_t age)
{
	for (size_t i = 0; i < h->view.n; i++)
		if (h->view.list[i]->role == MESSAGE_USER &&
		    h->view.list[i]->round == h->c.round - age && age < h->c.round)
			return &h->view.list[i]->blocks[0];
	fail_msg("no result of that age");
	return NULL;
}

static void test_by_age(void **state)
{
	struct history h;
	size_t whole;

	history_start(&h, 400000);
	for (int i = 0; i < 30; i++)
		history_call(&h, i % 2 ? "read" : "shell", "{\"path\":\"a.c\"}", 3000);
	history_sync(&h);
	whole = aged(&h, 0)->text_len;
	assert_true(run(&h) > 30000);
	assert_int_equal(aged(&h, 3)->text_len, whole);
	for (int age = 4; age <= 10; age++)
		assert_in_range(aged(&h, age)->text_len, 500, 4500);
	assert_non_null(strstr(aged(&h, 4)->text, "[digest of 251 lines, 15"));
	for (int age = 11; age <= 20; age++)
		assert_in_range(aged(&h, age)->text_len, 50, 500);
	assert_true(about_is_cleared(aged(&h, 21)));
	/* From a digest as from the whole: the size is that of the whole. */
	for (int i = 0; i < 8; i++)
		history_call(&h, "read", "{\"path\":\"b.c\"}", 3000);
	history_sync(&h);
	run(&h);
	assert_non_null(strstr(aged(&h, 12)->text, "[once shown: 251 lines, 15"));
	assert_true(about_is_cleared(aged(&h, 30)));
	/* T3: a second time nothing changes. */
	assert_int_equal(run(&h), 0);
	history_end(&h);
}

/* It joins, behind the first message that is another anyway. */
static void test_it_never_ends_an_epoch(void **state)
{
	struct history h;
	struct epoch_edit edit;
	struct epoch_done done;
	int64_t freed = 0;

	history_start(&h, 400000);
	h.knobs.decay = 1;
	for (int i = 0; i < 30; i++)
		history_call(&h, "read", "{\"path\":\"a.c\"}", 300);
	history_sync(&h);
	assert_int_equal(rungs_run(RUNG_REQUEST, &h.in, h.budget.compact, &freed, NULL), 0);
	assert_int_equal(h.view.epoch, 0);
	epoch_begin(&edit, "snip", &h.view, &h.ledger, &h.c, false);
	epoch_change(&edit, 21, 23, NULL);
	epoch_apply(&edit, &done);
	assert_int_equal(done.first, 21);
	assert_true(decay_wanted(&h.in));
	run(&h);
	for (size_t i = 0; i < 21; i++)
		assert_ptr_equal(h.view.list[i], h.c.messages[i]);
	assert_true(h.view.list[22] != h.c.messages[24]);
	h.in.epoch = h.view.epoch;
	assert_false(decay_wanted(&h.in));
	history_end(&h);
}

static void test_by_chance(void **state)
{
	const char *folder = *state;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct history h;
		AUTO_FREE char *below = mem_printf("%s/%llu", folder, (unsigned long long)seed);

		assert_int_equal(file_mkdirs(below, 0700, NULL), 0);
		history_start(&h, 60000);
		h.model.preserved_thinking = seed % 3 == 0;
		history_record(&h, below);
		for (int i = 0; i < 4; i++) {
			history_generate(&h, seed * 7 + (uint64_t)i, 20);
			h.view.broken = 0;
			assert_true(run(&h) > 0);
			history_check_kept(&h, ORIGIN_USER);
		}
		history_check_rebuilt(&h, below);
		history_end(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_age),
		cmocka_unit_test(test_it_never_ends_an_epoch),
		folder_test(test_by_chance),
	};
	return cmocka_run_group_tests_name("agent/decay", tests, NULL, NULL);
}
