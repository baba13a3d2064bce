/*
 * test_record.c - the catalogue of records, and the one reader of journals (I10).
 */
#include "tests/base/test_base.h"

#include <fcntl.h>
#include <string.h>

#include "base/jsonl.h"
#include "handoff/event.h"
#include "orchestrator/record.h"

#define LONG_BYTES (9 << 20)

struct heard {
	int all, bases, stops;
	size_t longest;
};

static bool on_each(struct json_object *record, void *arg)
{
	struct heard *h = arg;

	h->all++;
	return !json_flag(record, "again", false);
}

static void on_base(struct json_object *record, void *arg)
{
	struct heard *h = arg;

	h->bases++;
	h->longest = MAX(h->longest, strlen(json_str(record, "commit", "")));
}

static void on_stopping(struct json_object *record, void *arg)
{
	((struct heard *)arg)->stops++;
}

static const struct record_fold fold = {
	.each = on_each,
	.on = {[RECORD_RUN_BASE] = on_base, [RECORD_RUN_STOPPING] = on_stopping},
};

static void write_text(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void test_types_have_names(void **state)
{
	for (int i = 0; i < RECORD_TYPES; i++) {
		const struct record_info *info = record_info((enum record_type)i);
		assert_int_equal(record_find(info->type), i);
	}
	assert_int_equal(record_find("run.base.of.tomorrow"), RECORD_TYPES);
	assert_int_equal(record_find(""), RECORD_TYPES);
}

/* The parent makes one of the other by the name. */
static void test_events_have_records(void **state)
{
	for (int i = 0; i < EVENT_TYPES; i++) {
		AUTO_FREE char *type =
			mem_printf("agent.%s", agent_event_name((enum agent_event)i));
		enum record_type record = record_find(type);
		assert_int_not_equal(record, RECORD_TYPES);
		assert_int_equal(record_info(record)->sync, SYNC_EVENT);
	}
}

/* What is not known, has no handler, or was passed over changes nothing; bad lines are counted. */
static void test_fold(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	struct heard h = {0};
	struct jsonl_stats stats;

	write_text(path, "{\"type\":\"run.base\",\"commit\":\"abc\"}\n"
			 "{\"type\":\"of.tomorrow\"}\n{\"no\":\"type\"}\n{broken\n"
			 "{\"type\":\"agent.tool\",\"agent\":\"a1\"}\n"
			 "{\"type\":\"run.base\",\"again\":true}\n"
			 "{\"type\":\"run.stopping\"}\n");
	assert_int_equal(journal_fold(path, &fold, &h, &stats, NULL), 0);
	assert_int_equal(h.all, 6);
	assert_int_equal(h.bases, 1);
	assert_int_equal(h.stops, 1);
	assert_int_equal(stats.bad_lines, 1);
}

/* The import of a branch with very many commits is such a line: no reader may call it bad. */
static void test_a_long_line_is_read(void **state)
{
	AUTO_FREE char *path = file_join(*state, "run.jsonl");
	AUTO_FREE char *text = mem_alloc(LONG_BYTES + 1);
	struct heard h = {0};
	struct jsonl_stats stats;

	memset(text, 'x', LONG_BYTES);
	AUTO_FREE char *line = mem_printf("{\"type\":\"run.base\",\"commit\":\"%s\"}\n", text);
	write_text(path, line);
	assert_int_equal(journal_fold(path, &fold, &h, &stats, NULL), 0);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(h.longest, LONG_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types_have_names),
		cmocka_unit_test(test_events_have_records),
		folder_test(test_fold),
		folder_test(test_a_long_line_is_read),
	};
	return cmocka_run_group_tests_name("orchestrator/record", tests, NULL, NULL);
}
