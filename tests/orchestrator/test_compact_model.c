/*
 * test_compact_model.c - which pairs of models count as measured (H16).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/model_table.h"
#include "orchestrator/compact_model.h"

static void h16_a_pair_counts_where_it_passed(void **state)
{
	static const char text[] =
		"[{\"agent\":\"p/large\",\"compact\":\"p/small\",\"passed\":true},"
		"{\"agent\":\"p/large\",\"compact\":\"p/tiny\",\"passed\":false},"
		"{\"agent\":\"p/large\",\"compact\":\"p/new\"}]";
	AUTO_JSON struct json_object *pairs = NULL;

	assert_int_equal(json_parse(text, strlen(text), &pairs, NULL), 0);
	assert_true(compact_model_on_record(pairs, "p/large", "p/small"));
	assert_false(
		compact_model_on_record(pairs, "p/small", "p/large")); /* not the other way round */
	assert_false(compact_model_on_record(pairs, "p/large", "p/tiny"));
	assert_false(compact_model_on_record(pairs, "p/large", "p/new"));
	assert_false(compact_model_on_record(pairs, "p/large", "p/smal"));
	assert_false(compact_model_on_record(NULL, "p/large", "p/small"));
}

/* The shipped table is a list of such pairs, whatever is in it one day. */
static void h16_the_shipped_table(void **state)
{
	struct json_object *pairs = model_golden_results();

	assert_non_null(pairs);
	for (size_t i = 0; i < json_len(pairs); i++) {
		struct json_object *pair = json_at(pairs, i);

		assert_non_null(strchr(json_str(pair, "agent", ""), '/'));
		assert_non_null(strchr(json_str(pair, "compact", ""), '/'));
		assert_true(json_has(pair, "passed"));
		assert_non_null(json_str(pair, "date", NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h16_a_pair_counts_where_it_passed),
		cmocka_unit_test(h16_the_shipped_table),
	};
	return cmocka_run_group_tests_name("orchestrator/compact_model", tests, NULL, NULL);
}
