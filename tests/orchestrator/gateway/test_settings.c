/*
 * test_settings.c - addresses as the official SDKs take them, credentials, refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "orchestrator/gateway/settings.h"

static int parse(const char *providers, const char *keys, struct gateway_settings **ret,
		 struct err *err)
{
	AUTO_JSON struct json_object *start = NULL, *key_doc = NULL;
	AUTO_FREE char *text = mem_printf("{\"providers\":%s}", providers);
	assert_int_equal(json_parse(text, strlen(text), &start, err), 0);
	if (keys)
		assert_int_equal(json_parse(keys, strlen(keys), &key_doc, err), 0);
	return gateway_settings_parse(start, key_doc, ret, err);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *base, *api, *url;
	} rows[] = {
		{"https://api.anthropic.com", "anthropic", "https://api.anthropic.com/v1/messages"},
		{"https://api.anthropic.com/", "anthropic",
		 "https://api.anthropic.com/v1/messages"},
		{"https://x/anthropic/v1", "anthropic", "https://x/anthropic/v1/messages"},
		{"https://api.openai.com/v1", "openai",
		 "https://api.openai.com/v1/chat/completions"},
		{"http://localhost:11434/v1/", "openai",
		 "http://localhost:11434/v1/chat/completions"},
		{"https://x/openai/deployments/d?api-version=2024-10-21", "openai",
		 "https://x/openai/deployments/d/chat/completions?api-version=2024-10-21"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct provider p = {.base_url = mem_strdup(rows[i].base)};
		AUTO_FREE char *url = provider_url(&p, rows[i].api);
		assert_string_equal(url, rows[i].url);
		free(p.base_url);
	}
	struct provider p = {.base_url = mem_strdup("https://user:secret@host:8080/v1?x=y")};
	AUTO_FREE char *host = provider_host(&p);
	assert_string_equal(host, "host:8080");
	free(p.base_url);
}

static void test_keys_and_kinds_of_credentials(void **state)
{
	struct gateway_settings *s;
	struct err err = ERR_INIT;
	assert_int_equal(
		parse("[{\"name\":\"a\",\"api\":\"anthropic\",\"base_url\":\"https://a\",\"key\":"
		      "\"a\"},{\"name\":\"o\",\"api\":\"openai\",\"base_url\":\"http://o\",\"key\":"
		      "\"missing\",\"auth\":\"api-key\",\"headers\":{\"x-extra\":\"v\"},"
		      "\"concurrency\":3},{\"name\":\"l\",\"base_url\":\"http://l\",\"key\":null}]",
		      "{\"a\":\"sk-1\"}", &s, &err),
		0);
	struct provider *a = gateway_settings_find(s, "a"), *o = gateway_settings_find(s, "o");
	assert_int_equal(a->auth, AUTH_X_API_KEY);
	assert_string_equal(a->key, "sk-1");
	assert_int_equal(o->auth, AUTH_API_KEY);
	assert_null(o->key);
	assert_non_null(o->key_name);
	assert_string_equal(o->headers[0], "x-extra: v");
	assert_int_equal(o->concurrency, 3);
	assert_int_equal(gateway_settings_find(s, "l")->auth, AUTH_BEARER);
	assert_null(gateway_settings_find(s, "l")->key_name);
	assert_null(gateway_settings_find(s, "x"));
	assert_int_equal(s->retries, 8);
	gateway_settings_free(s);
}

static void test_refusals(void **state)
{
	static const char *const bad[] = {
		"[{\"base_url\":\"https://a\"}]",
		"[{\"name\":\"a\",\"base_url\":\"file:///etc/passwd\"}]",
		"[{\"name\":\"a\",\"base_url\":\"https://a\",\"auth\":\"magic\"}]",
		"[{\"name\":\"a\",\"base_url\":\"https://a\",\"headers\":{\"x\":\"1\\nb\"}}]",
		"[{\"name\":\"a\",\"base_url\":\"https://a\",\"key\":\"torn\"}]",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gateway_settings *s = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(parse(bad[i], "{\"torn\":\"sk\\nx\"}", &s, &err), -1);
		assert_null(s);
		assert_null(strstr(err.message, "sk"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_keys_and_kinds_of_credentials),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
