/*
 * test_layers.c - H21: what belongs to which of the four layers, and what gets from the core into the last one. The way
 * down from the latest rounds is a compaction's: test_agent_compact.c, tests/golden.
 */
#include "agent_fixture.h"

#include <string.h>

#include "agent/layers.h"
#include "agent/state.h"
#include "base/memory.h"

static struct agent a;

static int setup(void **state)
{
	a = (struct agent){.outcome = {.status = OUTCOME_DONE}};
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < MEMORY_FIELDS; i++) {
		for (size_t k = 0; k < a.memory.fields[i].n; k++)
			free(a.memory.fields[i].list[k]);
		free(a.memory.fields[i].list);
	}
	return 0;
}

static enum layer of(enum block_origin origin, bool in_head)
{
	struct message *m = message_new(MESSAGE_USER);
	enum layer layer;

	if (in_head)
		message_add_text(m, ORIGIN_SUMMARY, "what was", 8);
	message_add_text(m, origin, "text", 4);
	layer = layer_of(m, &m->blocks[m->n_blocks - 1]);
	message_free(m);
	return layer;
}

static void h21_which_layer(void **state)
{
	static const enum block_origin core[] = {
		ORIGIN_USER,	  ORIGIN_TASK,	 ORIGIN_INSTRUCTIONS, ORIGIN_ENVIRONMENT,
		ORIGIN_EVALUATOR, ORIGIN_MEMORY, ORIGIN_HANDOFF};
	static const enum block_origin where[] = {ORIGIN_NUDGE, ORIGIN_ATTACHMENT, ORIGIN_HOOK};

	for (size_t i = 0; i < ARRAY_SIZE(core); i++)
		assert_int_equal(of(core[i], false), LAYER_CORE);
	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		assert_int_equal(of(where[i], false), LAYER_LATEST);
		assert_int_equal(of(where[i], true), LAYER_CORE);
	}
	assert_int_equal(of(ORIGIN_MODEL, false), LAYER_LATEST);
	assert_int_equal(of(ORIGIN_TOOL, false), LAYER_LATEST);
	assert_int_equal(of(ORIGIN_SUMMARY, false), LAYER_SUMMARY);
}

/* W6: a person's picture can be had nowhere else, a tool's can. */
static void h21_pictures(void **state)
{
	struct message *m = message_new(MESSAGE_USER);

	message_add_image(m, NULL, "image/png", "AAAA", 4);
	message_add_image(m, "c1", "image/png", "AAAA", 4);
	assert_int_equal(layer_of(m, &m->blocks[0]), LAYER_CORE);
	assert_int_equal(layer_of(m, &m->blocks[1]), LAYER_LATEST);
	message_free(m);
}

static void note(enum memory_field field, const char *line)
{
	struct memory_lines *l = &a.memory.fields[field];

	MEM_GROW(l->list, l->cap, l->n + 1);
	l->list[l->n++] = mem_strdup(line);
}

static void ends_with(const char *expected)
{
	AUTO_BUF struct buf out = BUF_INIT;

	layers_end(&a, &out);
	assert_string_equal(buf_str(&out), expected);
}

static void h21_an_end_feeds_the_last_layer(void **state)
{
	ends_with("{\"preferences\":[],\"lessons\":[]}");
	note(MEMORY_PREFERENCES, "tabs");
	note(MEMORY_LESSONS, "make check needs TZ, because of dates");
	note(MEMORY_DECISIONS, "use a table");
	note(MEMORY_DECISIONS, "a table, because \"rows\" are cheap");
	note(MEMORY_REJECTED, "a lock: otherwise the handler spins");
	ends_with("{\"preferences\":[\"tabs\"],\"lessons\":[\"make check needs TZ, because of "
		  "dates\",\"decided: a table, because \\\"rows\\\" are cheap\","
		  "\"ruled out: a lock: otherwise the handler spins\"]}");
	/* Nobody knows that they were good. */
	a.outcome.status = OUTCOME_FAILED;
	ends_with("{\"preferences\":[\"tabs\"],\"lessons\":[\"make check needs TZ, because of "
		  "dates\"]}");
}

static void h21_only_the_newest_and_nothing_twice(void **state)
{
	for (int i = 0; i < 9; i++) {
		char line[] = "0 因为";

		line[0] = (char)('0' + i);
		note(MEMORY_DECISIONS, line);
	}
	note(MEMORY_LESSONS, "noted: 7 因为");
	ends_with("{\"preferences\":[],\"lessons\":[\"noted: 7 因为\",\"decided: 8 因为\","
		  "\"decided: 6 因为\",\"decided: 5 因为\"]}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(h21_which_layer),
		TEST(h21_pictures),
		TEST(h21_an_end_feeds_the_last_layer),
		TEST(h21_only_the_newest_and_nothing_twice),
	};
	return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
