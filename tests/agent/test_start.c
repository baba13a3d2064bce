/*
 * test_start.c - the start document: what is missing or wrong is named by its field.
 */
#include "agent_fixture.h"

#include "base/json.h"
#include "base/memory.h"

static char *folder;

static int setup(void **state)
{
	folder = fixture_folder();
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(folder);
	return 0;
}

static void a_whole_document(void **state)
{
	struct agent_settings *s = fixture_settings(folder, "{\"role\":{\"effort\":\"high\"}}");

	assert_string_equal(s->agent, "a1");
	assert_string_equal(s->role, "worker");
	assert_string_equal(s->tools[0], "read");
	assert_null(s->tools[7]);
	assert_true(s->write && s->worktree_ready && !s->read_only);
	assert_string_equal(s->effort, "high");
	assert_int_equal(s->task_origin, ORIGIN_USER);
	assert_int_equal(s->model->window, 200000);
	assert_int_equal(s->knobs.shell_chars, 30000); /* default */
	assert_null(s->read_paths[0]);
	assert_null(s->dir_git);
	assert_int_equal(s->n_instructions, 1);
	agent_settings_free(s);
}

static void an_empty_choice_is_no_choice(void **state)
{
	struct agent_settings *s = fixture_settings(folder, "{\"role\":{\"effort\":\"\"}}");

	assert_null(s->effort);
	agent_settings_free(s);
}

static void refused(const char *members, const char *what)
{
	AUTO_FREE char *text = fixture_start(folder, "anthropic", members);
	struct agent_settings *s = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(agent_settings_parse(text, strlen(text), &s, &e), -1);
	assert_null(s);
	if (!strstr(e.message, what))
		fail_msg("'%s' does not name %s", e.message, what);
}

static void wrong_fields_are_named(void **state)
{
	static const struct {
		const char *members, *what;
	} cases[] = {
		{"{\"agent\":null}", "missing field 'agent'"},
		{"{\"agent\":\"\"}", "'agent' must not be empty"},
		{"{\"agent\":7}", "'agent' must be a string"},
		{"{\"generation\":0}", "'generation' is 0"},
		{"{\"role\":null}", "missing field 'role.name'"},
		{"{\"role\":{\"max_rounds\":\"ten\"}}", "'role.max_rounds' must be an integer"},
		{"{\"role\":{\"max_rounds\":-1}}", "'role.max_rounds' is -1"},
		{"{\"role\":{\"network\":\"all\"}}", "'role.network' is 'all'"},
		{"{\"role\":{\"network\":\"non\"}}", "'role.network' is 'non'"},
		{"{\"role\":{\"network\":\"\"}}", "'role.network'"},
		{"{\"role\":{\"effort\":\"huge\"}}", "'role.effort'"},
		{"{\"role\":{\"tools\":\"read\"}}", "'role.tools' must be a list"},
		{"{\"role\":{\"tools\":[\"read\",3]}}", "'role.tools[1]' must be a string"},
		{"{\"role\":{\"write\":1}}", "'role.write' must be true or false"},
		{"{\"role\":{\"output_schema\":[]}}", "'role.output_schema' must be an object"},
		{"{\"task\":\"\"}", "'task' must not be empty"},
		{"{\"task_origin\":\"model\"}", "'task_origin'"},
		{"{\"instructions\":[{\"origin\":\"user\",\"path\":\"x\"}]}", "instructions[0]"},
		{"{\"dirs\":{\"worktree\":null}}", "missing field 'dirs.worktree'"},
		{"{\"box\":{\"level\":\"tight\"}}", "'box.level'"},
		{"{\"context\":{\"shell_chars\":3}}", "'context.shell_chars' is 3"},
		{"{\"model\":null}", "'model'"},
		{"{\"model\":{\"window\":0}}", "--window"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refused(cases[i].members, cases[i].what);
}

static void no_document_at_all(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "null", "7", "{\"run\":\"r\"} x"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct agent_settings *s = NULL;
		struct err e = ERR_INIT;

		assert_int_equal(agent_settings_parse(texts[i], strlen(texts[i]), &s, &e), -1);
		assert_non_null(strstr(e.message, "start document"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_whole_document, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_choice_is_no_choice, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_fields_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(no_document_at_all, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
