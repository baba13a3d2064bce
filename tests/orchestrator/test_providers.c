/*
 * test_providers.c - which provider, model and key a run uses, and what configuration may say of
 * them.
 */
#include "config_rig.h"

#include <sys/stat.h>

#include "orchestrator/config/store.h"

static int parse(const char *text, struct settings *s, struct err *err)
{
	return layer_parse(s, "/c/config.yaml", text, strlen(text), LAYER_USER, err);
}

static struct settings *with(const char *text)
{
	struct settings *s = store_new();
	struct err err = ERR_INIT;

	if (parse(text, s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static void refused(const char *text, const char *part)
{
	struct settings *s = store_new();
	struct err err = ERR_INIT;

	assert_int_equal(parse(text, s, &err), -1);
	if (err.code != ERR_USAGE || !strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
	settings_free(s);
}

static struct json_object *provider(const struct settings *s, const char *name,
				    const char **ret_key_env)
{
	struct json_object *doc = NULL;
	struct err err = ERR_INIT;

	if (settings_provider(s, name, &doc, ret_key_env, &err) < 0)
		fail_msg("%s", err.message);
	return doc;
}

static void no_provider(const char *text, const char *name, const char *part)
{
	struct settings *s = with(text);
	struct json_object *doc = NULL;
	const char *key_env;
	struct err err = ERR_INIT;

	assert_int_equal(settings_provider(s, name, &doc, &key_env, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	if (!strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
	settings_free(s);
}

static void test_built_in_providers(void **state)
{
	const char *key_env = NULL;
	struct settings *s = store_new();
	AUTO_JSON struct json_object *anthropic = provider(s, "anthropic", &key_env);

	assert_string_equal(key_env, "ANTHROPIC_API_KEY");
	assert_string_equal(json_str(anthropic, "base_url", ""), "https://api.anthropic.com");
	assert_string_equal(json_str(anthropic, "auth", ""), "x-api-key");
	assert_string_equal(json_str(anthropic, "key", ""), "anthropic");
	AUTO_JSON struct json_object *openai = provider(s, "openai", &key_env);
	assert_string_equal(key_env, "OPENAI_API_KEY");
	assert_string_equal(json_str(openai, "auth", ""), "bearer");
	AUTO_JSON struct json_object *ollama = provider(s, "ollama", &key_env);
	assert_null(key_env);
	assert_string_equal(json_str(ollama, "auth", ""), "none");
	assert_false(json_has(ollama, "key"));
	settings_free(s);
}

/* The variables that the official SDKs read. */
static void test_base_url_of_the_environment(void **state)
{
	const char *key_env;
	struct settings *s = with("providers: {openai: {base_url: 'http://configured/v1'}}");

	AUTO_JSON struct json_object *before = provider(s, "openai", &key_env);
	assert_string_equal(json_str(before, "base_url", ""), "http://configured/v1");
	setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1", 1);
	AUTO_JSON struct json_object *after = provider(s, "openai", &key_env);
	assert_string_equal(json_str(after, "base_url", ""), "http://127.0.0.1:1/v1");
	settings_free(s);
}

static void test_provider_of_ones_own(void **state)
{
	const char *key_env;
	struct settings *s = with("providers:\n  mine:\n    api: openai\n"
				  "    base_url: https://h/v1\n    key_env: MY_KEY\n"
				  "    headers: {x-a: b}\n    ca_file: ca.pem\n    concurrency: 3\n"
				  "    proxy: http://p:1\n    auth: api-key\n");
	AUTO_JSON struct json_object *doc = provider(s, "mine", &key_env);

	assert_string_equal(key_env, "MY_KEY");
	assert_string_equal(json_str(doc, "auth", ""), "api-key");
	assert_string_equal(json_str(doc, "key", ""), "mine");
	assert_string_equal(json_str(doc, "ca_file", ""), "/c/ca.pem");
	assert_string_equal(json_str(doc, "proxy", ""), "http://p:1");
	assert_int_equal(json_i64(doc, "concurrency", 0), 3);
	assert_string_equal(json_str(json_obj(doc, "headers"), "x-a", ""), "b");
	settings_free(s);
}

/* A stronger file wins field by field. */
static void test_layers_of_providers(void **state)
{
	static const char managed[] = "providers: {openai: {proxy: 'http://p:1'}}";
	const char *key_env;
	struct settings *s = with("providers: {openai: {proxy: 'http://q:1', concurrency: 2}}");

	assert_int_equal(layer_parse(s, "m", managed, strlen(managed), LAYER_MANAGED, NULL), 0);
	AUTO_JSON struct json_object *doc = provider(s, "openai", &key_env);
	assert_string_equal(json_str(doc, "proxy", ""), "http://p:1");
	assert_int_equal(json_i64(doc, "concurrency", 0), 2);
	settings_free(s);
}

static void test_wrong_tables(void **state)
{
	refused("providers: [a]", ":1: a mapping is expected for 'providers'");
	refused("providers:\n  a: 5\n", ":2: a mapping is expected for 'a'");
	refused("providers:\n  a/b: {api: openai}\n", ":2: a provider's name has no '/'");
	refused("providers:\n  a:\n    base-url: x\n",
		":3: unknown key 'base-url'; did you mean 'base_url'?");
	refused("providers:\n  a:\n    base_url: 5\n", ":3: wrong type for 'base_url'");
	refused("providers:\n  a:\n    concurrency: many\n", ":3: wrong type for 'concurrency'");
	refused("providers:\n  a:\n    concurrency: -1\n", ":3: a negative number");
	refused("providers:\n  a:\n    auth: basic\n", ":3: not one of x-api-key");
	refused("providers:\n  a:\n    headers:\n      x: [1]\n", ":4: text is expected");
	refused("models:\n  a: {window: 1}\n", ":2: a model is named PROVIDER/NAME, not 'a'");
	refused("models:\n  a/b:\n    windw: 1\n",
		":3: model 'a/b': unknown field 'windw'; did you mean");
	refused("models:\n  a/b:\n    window: big\n", ":3: model 'a/b': field 'window' must be");
	refused("models:\n  a/b:\n    images: 1\n",
		":3: model 'a/b': field 'images' must be true or false");
}

static void test_model_overrides(void **state)
{
	struct settings *s =
		with("models:\n  openai/a/b: {window: 5000, price: {input: 1, output: 2}}\n");
	struct json_object *row = json_obj(settings_models(s), "openai/a/b");

	assert_int_equal(json_i64(row, "window", 0), 5000);
	settings_free(s);
}

static void test_unknown_providers(void **state)
{
	no_provider("", "anthropik", "did you mean 'anthropic'?");
	no_provider("providers: {company: {api: openai, base_url: 'http://x'}}", "compani",
		    "did you mean 'company'?");
	no_provider("", "zzzzzzzzzzz", "define it under 'providers:'");
	no_provider("providers: {a: {base_url: 'http://x'}}", "a", "api must be");
	refused("providers: {a: {api: opnai, base_url: 'http://x'}}", "did you mean 'openai'?");
	no_provider("providers: {a: {api: openai}}", "a", "base_url must start with");
	no_provider("providers: {a: {api: openai, base_url: 'ftp://x'}}", "a", "base_url must");
}

/* ---- keys ---- */

static char *key(const char *name, const char *env, struct err *err)
{
	struct settings *s = store_new();
	char *result = settings_key(s, name, env, err);

	settings_free(s);
	return result;
}

static void test_keys(void **state)
{
	struct err err = ERR_INIT;

	assert_null(key("openai", "OPENAI_API_KEY", &err));
	assert_int_equal(err.code, ERR_USAGE);
	assert_non_null(strstr(err.message, "set OPENAI_API_KEY"));
	assert_non_null(strstr(err.message, "keys.yaml with mode 0600"));
	rig_write(state, "config/baton/keys.yaml", "openai: from-file\ngroq: x\n");
	AUTO_FREE char *from_file = key("openai", "OPENAI_API_KEY", NULL);
	assert_string_equal(from_file, "from-file");
	assert_null(key("anthropic", "ANTHROPIC_API_KEY", NULL));
	setenv("OPENAI_API_KEY", "from-environment", 1);
	AUTO_FREE char *from_environment = key("openai", "OPENAI_API_KEY", NULL);
	assert_string_equal(from_environment, "from-environment");
}

/* Credentials come from a file with mode 0600 or not at all. */
static void test_key_file_mode(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0660, 0644, 0620};
	AUTO_FREE char *path = rig_path(state, "config/baton/keys.yaml");
	struct settings *s = store_new();
	char *provider_name = NULL, *name = NULL;

	rig_write(state, "config/baton/keys.yaml", "openai: secret\n");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_null(key("openai", "OPENAI_API_KEY", &err));
		assert_non_null(strstr(err.message, "chmod 600"));
		assert_null(strstr(err.message, "secret"));
		err = (struct err)ERR_INIT;
		assert_int_equal(settings_model(s, &provider_name, &name, &err), -1);
		assert_non_null(strstr(err.message, "chmod 600"));
	}
	assert_int_equal(chmod(path, 0400), 0);
	AUTO_FREE char *good = key("openai", "OPENAI_API_KEY", NULL);
	assert_string_equal(good, "secret");
	settings_free(s);
}

/* ---- the model ---- */

static void check_model(const struct settings *s, const char *want_provider, const char *want_name)
{
	AUTO_FREE char *provider_name = NULL;
	AUTO_FREE char *name = NULL;
	struct err err = ERR_INIT;

	if (settings_model(s, &provider_name, &name, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(provider_name, want_provider);
	assert_string_equal(name, want_name);
}

static void no_model(const struct settings *s, const char *part)
{
	char *provider_name = NULL, *name = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(settings_model(s, &provider_name, &name, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	if (!strstr(err.message, part))
		fail_msg("'%s' lacks '%s'", err.message, part);
}

static void test_default_model(void **state)
{
	struct settings *s = store_new();

	no_model(s, "set ANTHROPIC_API_KEY or OPENAI_API_KEY");
	rig_write(state, "config/baton/keys.yaml", "anthropic: k\n");
	check_model(s, "anthropic", "claude-opus-5");
	setenv("OPENAI_API_KEY", "k", 1);
	no_model(s, "('anthropic', 'openai')");
	rig_write(state, "config/baton/keys.yaml", "");
	check_model(s, "openai", "gpt-5.5");
	settings_free(s);
	s = with("providers: {mine: {api: openai, base_url: 'http://x', key_env: MY_KEY,\n"
		 "  default_model: large}}");
	unsetenv("OPENAI_API_KEY");
	setenv("MY_KEY", "k", 1);
	check_model(s, "mine", "large");
	settings_free(s);
}

static void test_named_models(void **state)
{
	static const char *const wrong[] = {"gpt", "/x", "openai/", "/"};
	struct settings *s = with("model: openrouter/qwen/qwen3-coder:free");

	check_model(s, "openrouter", "qwen/qwen3-coder:free");
	settings_free(s);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		AUTO_FREE char *text = mem_printf("model: %s", wrong[i]);
		s = with(text);
		no_model(s, "write PROVIDER/NAME");
		no_model(s, "/c/config.yaml:1");
		settings_free(s);
	}
}

static void test_rehearsal(void **state)
{
	AUTO_FREE char *path = rig_path(state, "project/s.yaml");
	AUTO_FREE char *real = NULL;
	AUTO_FREE char *text = mem_printf("model: rehearsal:%s", path);

	struct settings *s = with(text);
	no_model(s, "there is no scenario");
	rig_write(state, "project/s.yaml", "version: 1\n");
	real = realpath(path, NULL);
	check_model(s, "rehearsal", real);
	settings_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_built_in_providers),   rig_test(test_base_url_of_the_environment),
		rig_test(test_provider_of_ones_own), rig_test(test_layers_of_providers),
		rig_test(test_wrong_tables),	     rig_test(test_model_overrides),
		rig_test(test_unknown_providers),    rig_test(test_keys),
		rig_test(test_key_file_mode),	     rig_test(test_default_model),
		rig_test(test_named_models),	     rig_test(test_rehearsal),
	};
	return cmocka_run_group_tests_name("orchestrator/providers", tests, NULL, NULL);
}
