/*
 * The table of deviations: every model that is shipped has a row, ids have the form of their row.
 */
#include "fixture.h"

#include "agent/model/dialect.h"

static void check_shipped(const char *full_name, void *arg)
{
	AUTO_FREE char *provider = mem_strdup(full_name);
	char *slash = strchr(provider, '/');
	struct model *model = NULL;
	const struct dialect *dialect = NULL;
	struct err err = ERR_INIT;
	assert_non_null(slash);
	*slash = '\0';
	if (model_find(provider, slash + 1, NULL, &model, &err) < 0 ||
	    dialect_find(model->dialect, model->api, &dialect, &err) < 0)
		fail_msg("%s: %s", full_name, err.message);
	/* Somebody else's plain row would be a spelling error in data/models.json. */
	if (strcmp(dialect->name, model->dialect) != 0)
		fail_msg("%s: row '%s' for dialect '%s'", full_name, dialect->name, model->dialect);
	model_free(model);
	++*(int *)arg;
}

static void test_every_shipped_model_has_a_row(void **state)
{
	int count = 0;
	model_each(check_shipped, &count);
	assert_true(count > 30);
}

static void test_names_are_unique(void **state)
{
	for (size_t i = 0; dialect_at(i); i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(dialect_at(i)->name, dialect_at(k)->name);
}

static void test_plain_rows(void **state)
{
	static const char *const names[] = {NULL, "", "anthropic", "openai"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct dialect *dialect = NULL;
		assert_int_equal(dialect_find(names[i], MODEL_API_ANTHROPIC, &dialect, NULL), 0);
		assert_string_equal(dialect->name, "anthropic");
		assert_int_equal(dialect_find(names[i], MODEL_API_OPENAI, &dialect, NULL), 0);
		assert_string_equal(dialect->name, "openai");
	}
}

static void test_unknown_name_is_an_error(void **state)
{
	const struct dialect *dialect = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(dialect_find("olama", MODEL_API_OPENAI, &dialect, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	assert_non_null(strstr(err.message, "did you mean 'ollama'"));
	assert_int_equal(dialect_find("ollama", MODEL_API_ANTHROPIC, &dialect, &err), -1);
}

static void check_id(const char *row, enum model_api api, const char *id, const char *want)
{
	const struct dialect *dialect = NULL;
	AUTO_BUF struct buf out = BUF_INIT;
	AUTO_BUF struct buf again = BUF_INIT;
	assert_int_equal(dialect_find(row, api, &dialect, NULL), 0);
	dialect_write_id(dialect, id, &out);
	dialect_write_id(dialect, id, &again);
	assert_string_equal(buf_str(&out), buf_str(&again));
	if (want) {
		assert_string_equal(buf_str(&out), want);
		return;
	}
	assert_string_not_equal(buf_str(&out), id ? id : "");
	/* What was made has the form itself. */
	buf_clear(&again);
	dialect_write_id(dialect, buf_str(&out), &again);
	assert_string_equal(buf_str(&out), buf_str(&again));
}

static void test_id_forms(void **state)
{
	check_id("anthropic", MODEL_API_ANTHROPIC, "toolu_01-A", "toolu_01-A");
	check_id("anthropic", MODEL_API_ANTHROPIC, "functions.read:0", NULL);
	check_id("anthropic", MODEL_API_ANTHROPIC, "", NULL);
	check_id("moonshotai", MODEL_API_OPENAI, "functions.read:0", "functions.read:0");
	check_id("moonshotai", MODEL_API_OPENAI, NULL, NULL);
	check_id("openai", MODEL_API_OPENAI, "call_1|fc_2", "call_1|fc_2");
	check_id("openai", MODEL_API_OPENAI, "01234567890123456789012345678901234567890", NULL);
	check_id("mistral", MODEL_API_OPENAI, "abcDEF123", "abcDEF123");
	check_id("mistral", MODEL_API_OPENAI, "abcDEF12", NULL);
	check_id("mistral", MODEL_API_OPENAI, "toolu_1234", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_shipped_model_has_a_row),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_plain_rows),
		cmocka_unit_test(test_unknown_name_is_an_error),
		cmocka_unit_test(test_id_forms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
