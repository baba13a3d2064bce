/*
 * test_prefix.c - H17: an unexpected cache break is noticed, and names what changed first; I4.
 */
#include "agent_fixture.h"

#include "agent/context/prefix.h"
#include "base/memory.h"

#define MESSAGES 6

static const struct tool_spec tools[] = {{"shell", "Runs a command.", "{}"},
					 {"read", "Reads.", "{}"}};

struct rig {
	struct prefix p;
	struct view view;
	struct message *list[MESSAGES];
	int64_t now;
	struct prefix_break found;
};

static void start(struct rig *r)
{
	*r = (struct rig){.now = 1000};
	for (int i = 0; i < MESSAGES; i++) {
		r->list[i] = fixture_text(i % 2 ? MESSAGE_ASSISTANT : MESSAGE_USER, "x");
		r->list[i]->rendered = mem_printf("{message %d}", i);
		r->list[i]->rendered_len = strlen(r->list[i]->rendered);
	}
	r->view.list = r->list;
}

static void end(struct rig *r)
{
	prefix_release(&r->p);
	for (int i = 0; i < MESSAGES; i++)
		message_free(r->list[i]);
}

static void send(struct rig *r, size_t n, int64_t wait)
{
	r->now += wait;
	r->view.n = n;
	prefix_sent(&r->p, &r->view, "system", tools, ARRAY_SIZE(tools), r->now);
}

static bool answer_with(struct rig *r, const char *system, const struct tool_spec *specs,
			size_t n_specs, int64_t read, int64_t write)
{
	struct model_usage u = {
		.input = 20, .cache_read = read, .cache_write = write, .known = true};

	return prefix_answered(&r->p, &r->view, system, specs, n_specs, &u, &r->found);
}

static bool answer(struct rig *r, int64_t read, int64_t write)
{
	return answer_with(r, "system", tools, ARRAY_SIZE(tools), read, write);
}

static void h17_a_cache_that_holds_is_no_news(void **state)
{
	struct rig r;

	start(&r);
	send(&r, 2, 10);
	assert_false(answer(&r, 0, 9000)); /* nothing was known */
	send(&r, 4, 10);
	assert_false(answer(&r, 9000, 3000));
	send(&r, 6, 10);
	assert_false(answer(&r, 11000, 3000)); /* a marker may lie a little behind */
	end(&r);
}

static void h17_the_first_part_that_changed_is_named(void **state)
{
	static const struct tool_spec other[] = {{"shell", "Runs a command!", "{}"}};
	struct rig r;

	start(&r);
	send(&r, 4, 10);
	answer(&r, 0, 9000);
	send(&r, 6, 10);
	r.list[3]->rendered[1] = 'M';
	r.list[5]->rendered[1] = 'M'; /* new in this request: nobody had cached it */
	assert_true(answer(&r, 100, 9000));
	assert_int_equal(r.found.part, PREFIX_MESSAGE);
	assert_int_equal(r.found.index, 3);
	assert_int_equal(r.found.expected, 9000);
	assert_int_equal(r.found.read, 100);
	send(&r, 6, 10);
	assert_true(answer_with(&r, "another", tools, ARRAY_SIZE(tools), 0, 9000));
	assert_int_equal(r.found.part, PREFIX_SYSTEM);
	send(&r, 6, 10);
	assert_true(answer_with(&r, "another", other, 1, 0, 9000));
	assert_int_equal(r.found.part, PREFIX_TOOLS);
	assert_string_equal(prefix_part_name(r.found.part), "tools");
	end(&r);
}

static void h17_nothing_of_ours_changed(void **state)
{
	struct rig r;

	start(&r);
	send(&r, 4, 10);
	answer(&r, 0, 9000);
	send(&r, 6, 301000);
	assert_true(answer(&r, 0, 12000));
	assert_int_equal(r.found.part, PREFIX_LAPSED);
	assert_int_equal(r.found.idle_ms, 301000);
	send(&r, 6, 2000);
	assert_true(answer(&r, 0, 12000));
	assert_int_equal(r.found.part, PREFIX_PROVIDER);
	end(&r);
}

/* A recorded break, a provider without cache, counts that are not known, small prompts. */
static void h17_what_is_no_unexpected_break(void **state)
{
	struct model_usage unknown = {.known = false};
	struct rig r;

	start(&r);
	send(&r, 4, 10);
	answer(&r, 0, 9000);
	r.view.epoch++;
	send(&r, 3, 10);
	assert_false(answer(&r, 0, 5000));
	send(&r, 5, 10);
	assert_true(answer(&r, 0, 8000)); /* within the new epoch it counts again */
	end(&r);
	start(&r);
	for (size_t n = 2; n <= 6; n += 2) {
		send(&r, n, 10);
		assert_false(answer(&r, 0, 0));
		assert_false(prefix_answered(&r.p, &r.view, "", tools, 2, &unknown, &r.found));
	}
	end(&r);
	start(&r);
	send(&r, 2, 10);
	answer(&r, 0, 1500);
	send(&r, 4, 10);
	assert_false(answer(&r, 0, 1800));
	end(&r);
}

/* Servers that cache by themselves tell reads only. */
static void h17_without_writes(void **state)
{
	struct rig r;

	start(&r);
	send(&r, 2, 10);
	assert_false(answer(&r, 4000, 0));
	send(&r, 4, 10);
	assert_false(answer(&r, 4000, 0));
	send(&r, 6, 10);
	assert_true(answer(&r, 0, 0));
	assert_int_equal(r.found.expected, 4020);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h17_a_cache_that_holds_is_no_news),
		cmocka_unit_test(h17_the_first_part_that_changed_is_named),
		cmocka_unit_test(h17_nothing_of_ours_changed),
		cmocka_unit_test(h17_what_is_no_unexpected_break),
		cmocka_unit_test(h17_without_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
