/*
 * test_idle.c - after a pause old results go for nothing, and changed files are named (T8).
 */
#include "tests/agent/history_fixture.h"

#include "agent/context/clear.h"
#include "agent/context/idle.h"

#define MINUTE 60000

static int64_t run(struct history *h, int64_t idle_ms)
{
	int64_t freed = 0;

	h->in.idle_ms = idle_ms;
	assert_int_equal(rungs_run(RUNG_REQUEST, &h->in, h->budget.compact, &freed, NULL), 0);
	history_check(h);
	return freed;
}

/* Off by default; within the cache's life nothing is done; the newest stay. */
static void test_only_when_the_cache_is_gone(void **state)
{
	struct history h;

	history_start(&h, 200000);
	for (int i = 0; i < 8; i++)
		history_call(&h, i % 2 ? "read" : "agent", "{\"path\":\"a\"}", 300 + i);
	for (int i = 0; i < 4; i++)
		history_call(&h, "shell", "{\"command\":\"make\"}", 300);
	history_sync(&h);
	assert_int_equal(run(&h, 60 * MINUTE), 0);
	h.knobs.clear_idle = 1;
	assert_int_equal(run(&h, 4 * MINUTE), 0);
	assert_int_equal(run(&h, 0), 0);
	assert_true(run(&h, 6 * MINUTE) > 3 * 250);
	assert_int_equal(h.view.epoch, 1);
	assert_true(about_is_cleared(&h.view.list[4]->blocks[0]));
	assert_false(about_is_cleared(&h.view.list[2]->blocks[0])); /* a report */
	assert_int_equal(run(&h, 6 * MINUTE), 0);		    /* once */
	history_end(&h);
}

/* Providers that cache by themselves keep it for up to ten minutes. */
static void test_other_lifetimes(void **state)
{
	struct history h;

	history_start(&h, 200000);
	h.knobs.clear_idle = 1;
	h.model.cache = CACHE_AUTOMATIC;
	for (int i = 0; i < 9; i++)
		history_call(&h, "read", "{\"path\":\"a\"}", 300);
	history_sync(&h);
	assert_int_equal(run(&h, 9 * MINUTE), 0);
	assert_true(run(&h, 11 * MINUTE) > 0);
	history_end(&h);
}

static bool changed(void *arg, const char *path)
{
	(*(int *)arg)++;
	return path[0] == 'n';
}

static void test_changed_files_are_named(void **state)
{
	struct history h;
	AUTO_BUF struct buf note = BUF_INIT;
	int asked = 0;

	history_start(&h, 200000);
	history_call(&h, "read", "{\"path\":\"n1.c\"}", 3);
	history_call(&h, "edit", "{\"path\":\"n2.c\"}", 3);
	history_call(&h, "read", "{\"path\":\"old.c\"}", 3);
	history_call(&h, "read", "{\"path\":\"n1.c\"}", 3);
	history_call(&h, "grep", "{\"pattern\":\"n\"}", 3);
	history_sync(&h);
	assert_int_equal(idle_name_changed(&h.view, changed, &asked, &note), 2);
	assert_non_null(strstr(buf_str(&note), ": n1.c, n2.c]"));
	assert_int_equal(asked, 3);
	history_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_when_the_cache_is_gone),
		cmocka_unit_test(test_other_lifetimes),
		cmocka_unit_test(test_changed_files_are_named),
	};
	return cmocka_run_group_tests_name("agent/idle", tests, NULL, NULL);
}
