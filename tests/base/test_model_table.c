/* model_table: the facts of wire.md 5, layers, tiers, the round trip. */
#include "test_base.h"

#include <math.h>

#include "base/model_table.h"

static struct model *find(const char *provider, const char *name, const char *overrides)
{
	AUTO_JSON struct json_object *doc = NULL;
	struct model *model = NULL;
	struct err err = ERR_INIT;
	if (overrides)
		assert_int_equal(json_parse(overrides, strlen(overrides), &doc, NULL), 0);
	if (model_find(provider, name, doc, &model, &err) < 0)
		fail_msg("%s", err.message);
	return model;
}

static void check_near(double value, double want)
{
	if (fabs(value - want) > 1e-9)
		fail_msg("%.12f is not %.12f", value, want);
}

static void test_known_models(void **state)
{
	struct model *m = find("anthropic", "claude-opus-5", NULL);
	assert_int_equal(m->api, MODEL_API_ANTHROPIC);
	assert_int_equal(m->window, 1000000);
	assert_int_equal(m->max_output, 128000);
	check_near(m->price.cache_read, 0.5);
	check_near(m->price.cache_write, 6.25);
	check_near(m->price.cache_write_1h, 10);
	assert_false(m->temperature_ok);
	assert_int_equal(m->cache, CACHE_EXPLICIT);
	assert_int_equal(m->min_cache_prefix, 512);
	assert_false(m->preserved_thinking);
	assert_true(m->keeps_thinking); /* W9 */
	assert_string_equal(m->dialect, "anthropic");
	model_free(m);

	m = find("openai", "gpt-5.4-mini", NULL);
	assert_int_equal(m->api, MODEL_API_OPENAI);
	assert_int_equal(m->input_limit, 272000);
	assert_string_equal(m->max_tokens_field, "max_completion_tokens");
	assert_string_equal(m->system_role, "developer");
	assert_null(m->reasoning_field);
	model_free(m);

	m = find("deepseek", "deepseek-reasoner", NULL); /* another name of v4-flash */
	assert_string_equal(m->name, "deepseek-reasoner");
	check_near(m->price.input, 0.14);
	assert_string_equal(m->reasoning_field, "reasoning_content");
	assert_string_equal(m->max_tokens_field, "max_tokens");
	assert_string_equal(m->system_role, "system");
	model_free(m);
}

static void test_thinking_fields_by_generation(void **state)
{
	static const struct {
		const char *name;
		bool temperature, preserved, keeps;
	} cases[] = {
		{"claude-opus-5-5", false, true, true},	   {"claude-fable-5-1", false, true, true},
		{"claude-haiku-5-5", false, true, false},  {"claude-opus-4-7", false, false, true},
		{"claude-opus-4-6", true, false, true},	   {"claude-sonnet-4-6", true, false, true},
		{"claude-sonnet-4-5", true, false, false}, {"claude-haiku-4-5", true, false, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model *m = find("anthropic", cases[i].name, NULL);
		assert_int_equal(m->temperature_ok, cases[i].temperature);
		assert_int_equal(m->preserved_thinking, cases[i].preserved);
		assert_int_equal(m->keeps_thinking, cases[i].keeps);
		model_free(m);
	}
}

static void test_dated_names(void **state)
{
	struct model *m = find("anthropic", "claude-haiku-4-5-20251001", NULL);
	assert_string_equal(m->name, "claude-haiku-4-5-20251001");
	assert_int_equal(m->window, 200000);
	model_free(m);
}

static void test_unknown_model_has_no_window_and_no_price(void **state)
{
	struct model *m = find("anthropic", "claude-next", NULL);
	assert_int_equal(m->window, 0);
	assert_false(m->price.known);
	check_near(model_cost(m, 1000, 0, 0, 0, 10), -1.0);
	assert_string_equal(m->max_tokens_field, "max_tokens");
	model_free(m);
}

static void test_unknown_provider(void **state)
{
	struct model *model = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(model_find("antropic", "x", NULL, &model, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.message, "unknown provider 'antropic'; did you mean 'anthropic'?");
	assert_int_equal(model_find("zzzzzzzz", "x", NULL, &model, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	struct model *m = find("home", "some/model:7b",
			       "{\"home/some/model:7b\":{\"api\":\"openai\",\"window\":32768}}");
	assert_int_equal(m->api, MODEL_API_OPENAI);
	assert_int_equal(m->window, 32768);
	assert_string_equal(m->dialect, "openai");
	assert_string_equal(m->system_role, "system");
	model_free(m);
}

static void test_overrides_set_single_fields(void **state)
{
	struct model *m = find("openai", "gpt-5.5",
			       "{\"openai/gpt-5.5\":{\"window\":50000,\"system_role\":\"system\"},"
			       "\"openai/gpt-5\":{\"window\":1}}");
	assert_int_equal(m->window, 50000);
	assert_int_equal(m->input_limit, 922000);
	assert_string_equal(m->system_role, "system");
	assert_true(m->tier_above > 0);
	model_free(m);
	/* A price of one's own ends the catalogue's tiers. */
	m = find("openai", "gpt-5.5",
		 "{\"openai/gpt-5.5\":{\"price\":{\"input\":1,\"output\":2}}}");
	check_near(model_cost(m, 500000, 500000, 0, 0, 0), 1.0);
	model_free(m);
	m = find("deepseek", "deepseek-v4-pro",
		 "{\"deepseek/deepseek-v4-pro\":{\"reasoning_field\":null,\"price\":null}}");
	assert_null(m->reasoning_field);
	assert_false(m->price.known);
	model_free(m);
}

static void test_bad_overrides_are_named(void **state)
{
	static const struct {
		const char *row, *message;
	} cases[] = {
		{"{\"windw\":1}",
		 "model 'openai/gpt-5': unknown field 'windw'; did you mean 'window'?"},
		{"{\"window\":\"64k\"}",
		 "model 'openai/gpt-5': field 'window' must be a whole number"},
		{"{\"window\":-1}", "model 'openai/gpt-5': field 'window' must not be negative"},
		{"{\"window\":null}", "model 'openai/gpt-5': field 'window' must not be null"},
		{"{\"images\":1}", "model 'openai/gpt-5': field 'images' must be true or false"},
		{"{\"api\":\"x\"}",
		 "model 'openai/gpt-5': field 'api' must be one of 'anthropic', 'openai'"},
		{"{\"dialect\":1}", "model 'openai/gpt-5': field 'dialect' must be a string"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_JSON struct json_object *doc = json_object_new_object();
		struct json_object *row = NULL;
		struct model *model = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(json_parse(cases[i].row, strlen(cases[i].row), &row, NULL), 0);
		json_set(doc, "openai/gpt-5", row);
		assert_int_equal(model_find("openai", "gpt-5", doc, &model, &err), -1);
		assert_string_equal(err.message, cases[i].message);
	}
	AUTO_JSON struct json_object *doc = NULL;
	struct model *model = NULL;
	static const char price[] = "{\"openai/gpt-5\":{\"price\":{\"input\":1}}}";
	assert_int_equal(json_parse(price, sizeof(price) - 1, &doc, NULL), 0);
	assert_int_equal(model_find("openai", "gpt-5", doc, &model, NULL), -1);
}

/* The tier is chosen by all input, cached or not, and holds for the whole call. */
static void test_cost_and_tiers(void **state)
{
	struct model *m = find("openai", "gpt-5.5", NULL);
	check_near(model_cost(m, 100000, 172000, 0, 0, 1000), 0.5 + 0.086 + 0.03);
	check_near(model_cost(m, 100000, 172001, 0, 0, 1000), 1.0 + 0.172001 + 0.045);
	model_free(m);
	m = find("anthropic", "claude-sonnet-4-6", NULL);
	check_near(model_cost(m, 1000, 2000, 4000, 0, 500), 0.003 + 0.0006 + 0.015 + 0.0075);
	/* H17: of 4,000 written tokens 3,000 live for an hour, at twice the price of fresh ones. */
	check_near(model_cost(m, 0, 0, 4000, 3000, 0), 0.00375 + 0.018);
	model_free(m);
	m = find("mistral", "devstral-2512", NULL); /* no cache prices: as fresh */
	check_near(model_cost(m, 1000000, 1000000, 1000000, 0, 0), 1.2);
	model_free(m);
}

static void check_model(const char *full_name, void *arg)
{
	AUTO_FREE char *provider = mem_strdup(full_name);
	char *name = strchr(provider, '/');
	assert_non_null(name);
	*name++ = '\0';
	struct model *m = find(provider, name, NULL);
	assert_true(m->window >= 100000);
	assert_true(m->max_output > 0 && m->max_output <= m->window);
	assert_true(m->input_limit <= m->window);
	assert_true(m->price.known && m->price.output > m->price.input);
	assert_true(m->price.cache_read <= m->price.input);
	assert_true(m->tier_above == 0 || m->tier_price.input > m->price.input);
	assert_true(!m->preserved_thinking || m->reasoning == REASONING_ALWAYS);

	struct model *again = NULL;
	AUTO_JSON struct json_object *json = model_to_json(m);
	assert_int_equal(model_from_json(json, &again, NULL), 0);
	AUTO_JSON struct json_object *json_again = model_to_json(again);
	assert_true(json_object_equal(json, json_again));
	check_near(model_cost(again, 300000, 7, 9, 0, 11), model_cost(m, 300000, 7, 9, 0, 11));
	model_free(again);
	model_free(m);
	++*(int *)arg;
}

static void test_every_model_is_sound_and_survives_the_round_trip(void **state)
{
	int count = 0;
	model_each(check_model, &count);
	assert_true(count >= 40);
}

static void check_provider(const char *name, void *arg)
{
	struct json_object *row = model_provider(name);
	struct model *model = NULL;
	assert_int_equal(model_find(name, "anything", NULL, &model, NULL), 0);
	model_free(model);
	const char *sensible = json_str(row, "default_model", NULL);
	if (sensible) {
		assert_int_equal(model_find(name, sensible, NULL, &model, NULL), 0);
		assert_true(model->window > 0);
		model_free(model);
	}
	assert_true(json_str(row, "base_url", NULL) || strcmp(name, "rehearsal") == 0);
	++*(int *)arg;
}

static void test_providers(void **state)
{
	int count = 0;
	model_provider_each(check_provider, &count);
	assert_int_equal(count, 15);
	assert_string_equal(json_str(model_provider("openai"), "key_env", ""), "OPENAI_API_KEY");
	assert_null(json_str(model_provider("ollama"), "key_env", NULL));
	assert_null(model_provider("nobody"));
}

static void test_from_json_needs_identity(void **state)
{
	struct model *model = NULL;
	struct err err = ERR_INIT;
	AUTO_JSON struct json_object *json = json_object_new_object();
	json_set_str(json, "provider", "p");
	json_set_str(json, "name", "n");
	assert_int_equal(model_from_json(json, &model, &err), -1);
	assert_string_equal(err.message, "missing field 'api'");
	json_set_str(json, "api", "openai");
	assert_int_equal(model_from_json(json, &model, &err), 0);
	model_free(model);
	model_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_models),
		cmocka_unit_test(test_thinking_fields_by_generation),
		cmocka_unit_test(test_dated_names),
		cmocka_unit_test(test_unknown_model_has_no_window_and_no_price),
		cmocka_unit_test(test_unknown_provider),
		cmocka_unit_test(test_overrides_set_single_fields),
		cmocka_unit_test(test_bad_overrides_are_named),
		cmocka_unit_test(test_cost_and_tiers),
		cmocka_unit_test(test_every_model_is_sound_and_survives_the_round_trip),
		cmocka_unit_test(test_providers),
		cmocka_unit_test(test_from_json_needs_identity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
