/*
 * settings.c - reading the start document and the key file; building addresses.
 *
 * Keys pass through here once: from the sealed file into the provider's record, from which each
 * transfer builds its header. The raw bytes are wiped; the process is not dumpable.
 *
 * What ends up in a header line is checked for line breaks here: the document comes from the
 * parent, but its values come from configuration files and environments, and a line break would let
 * one of them write further headers. A missing key is no error of the document: only the calls of
 * that provider fail, and say so.
 */
#include "orchestrator/gateway/settings.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define KEYS_MAX (64 << 10)

static bool one_line(const char *s)
{
	return !s || !strpbrk(s, "\r\n");
}

static int parse_auth(const char *word, const char *api, enum provider_auth *ret, struct err *err)
{
	static const struct {
		const char *word;
		enum provider_auth auth;
	} table[] = {{"x-api-key", AUTH_X_API_KEY},
		     {"bearer", AUTH_BEARER},
		     {"api-key", AUTH_API_KEY},
		     {"none", AUTH_NONE}};

	/* As the two official SDKs send it. */
	if (!word)
		word = strcmp(api, "anthropic") == 0 ? "x-api-key" : "bearer";
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (strcmp(word, table[i].word) == 0) {
			*ret = table[i].auth;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "unknown kind of credentials '%s'", word);
}

static int parse_headers(struct json_object *headers, struct provider *p, struct err *err)
{
	if (!headers)
		return 0;
	json_object_object_foreach (headers, name, value) {
		const char *text = json_object_get_string(value);
		if (!one_line(name) || !one_line(text) || !text)
			return err_set(err, ERR_INVALID, "header '%s' is not one line", name);
		p->headers = mem_array(p->headers, p->n_headers + 1, sizeof(*p->headers));
		p->headers[p->n_headers++] = mem_printf("%s: %s", name, text);
	}
	return 0;
}

static int parse_provider(struct json_object *doc, struct json_object *keys, struct provider *p,
			  struct err *err)
{
	const char *name, *url;
	if (json_need_str(doc, "name", &name, err) || json_need_str(doc, "base_url", &url, err))
		return -1;
	p->name = mem_strdup(name);
	p->base_url = mem_strdup(url);
	p->key_name = mem_strdup(json_str(doc, "key", NULL));
	p->ca_file = mem_strdup(json_str(doc, "ca_file", NULL));
	p->proxy = mem_strdup(json_str(doc, "proxy", NULL));
	int64_t slots = json_i64(doc, "concurrency", 0);
	p->concurrency = slots < 0 ? 0 : (int)MIN(slots, 4096);
	if (parse_auth(json_str(doc, "auth", NULL), json_str(doc, "api", "openai"), &p->auth, err))
		return -1;
	if (p->key_name) {
		const char *key = json_str(keys, p->key_name, NULL);
		if (!one_line(key))
			return err_set(err, ERR_INVALID, "the key '%s' is not one line",
				       p->key_name);
		p->key = key && *key ? mem_strdup(key) : NULL;
	}
	if (!text_starts(url, "http://") && !text_starts(url, "https://"))
		return err_set(err, ERR_INVALID, "base_url of '%s' must be http or https", name);
	return parse_headers(json_obj(doc, "headers"), p, err);
}

static void parse_numbers(struct json_object *start, struct gateway_settings *s)
{
	struct json_object *timeouts = json_obj(start, "timeouts");
	s->connect_ms = json_i64(timeouts, "connect_ms", 10000);
	s->bytes_idle_ms = json_i64(timeouts, "bytes_idle_ms", 90000);
	s->content_idle_ms = json_i64(timeouts, "content_idle_ms", 300000);
	s->max_sleep_ms = json_i64(timeouts, "max_sleep_ms", 120000);
	s->retries = (int)MAX(0, MIN(json_i64(start, "retries", 8), 100));
	s->backoff_ms = MAX(1, json_i64(start, "backoff_ms", 500));
	s->backoff_max_ms = MAX(s->backoff_ms, json_i64(start, "backoff_max_ms", 32000));
}

int gateway_settings_parse(struct json_object *start, struct json_object *keys,
			   struct gateway_settings **ret, struct err *err)
{
	struct json_object *list;
	if (json_need_arr(start, "providers", &list, err))
		return -1;
	struct gateway_settings *s = mem_alloc(sizeof(*s));
	s->n_providers = json_len(list);
	s->providers = mem_alloc(sizeof(*s->providers) * (s->n_providers + 1));
	parse_numbers(start, s);
	for (size_t i = 0; i < s->n_providers; i++) {
		if (parse_provider(json_at(list, i), keys, &s->providers[i], err)) {
			gateway_settings_free(s);
			return err_prefix(err, "provider %zu", i);
		}
	}
	*ret = s;
	return 0;
}

static void provider_release(struct provider *p)
{
	if (p->key)
		explicit_bzero(p->key, strlen(p->key));
	for (size_t i = 0; i < p->n_headers; i++)
		free(p->headers[i]);
	free(p->headers);
	free(p->name);
	free(p->base_url);
	free(p->key_name);
	free(p->key);
	free(p->ca_file);
	free(p->proxy);
}

void gateway_settings_free(struct gateway_settings *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_providers; i++)
		provider_release(&s->providers[i]);
	free(s->providers);
	free(s);
}

struct provider *gateway_settings_find(struct gateway_settings *s, const char *name)
{
	for (size_t i = 0; i < s->n_providers; i++) {
		if (strcmp(s->providers[i].name, name) == 0)
			return &s->providers[i];
	}
	return NULL;
}

int gateway_settings_read_keys(int fd, struct json_object **ret, struct err *err)
{
	char *bytes = mem_alloc(KEYS_MAX);
	size_t n = 0;
	ssize_t got;
	while (n < KEYS_MAX && (got = pread(fd, bytes + n, KEYS_MAX - n, (off_t)n)) > 0)
		n += (size_t)got;
	int rc = 0;
	if (n < KEYS_MAX && got < 0)
		rc = err_sys(err, "cannot read the keys");
	else if (n == KEYS_MAX)
		rc = err_set(err, ERR_TOO_LARGE, "the key file is too large");
	else if (n == 0)
		*ret = NULL;
	else
		rc = json_parse(bytes, n, ret, err);
	explicit_bzero(bytes, KEYS_MAX);
	free(bytes);
	return rc;
}

char *provider_url(const struct provider *p, const char *api)
{
	/* Azure's addresses end in ?api-version=..., which has to stay behind the path. */
	size_t path = strcspn(p->base_url, "?#");
	const char *query = p->base_url[path] == '?' ? p->base_url + path : "";
	while (path > 0 && p->base_url[path - 1] == '/')
		path--;
	const char *add = "/chat/completions";
	if (strcmp(api, "anthropic") == 0) {
		/* Some set the address as OpenAI's SDK takes it, with /v1. */
		bool has_version = path >= 3 && memcmp(p->base_url + path - 3, "/v1", 3) == 0;
		add = has_version ? "/messages" : "/v1/messages";
	}
	return mem_printf("%.*s%s%.*s", (int)path, p->base_url, add, (int)strcspn(query, "#"),
			  query);
}

char *provider_host(const struct provider *p)
{
	const char *host = strstr(p->base_url, "://");
	host = host ? host + 3 : p->base_url;
	size_t n = strcspn(host, "/?#");
	const char *at = memrchr(host, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	return mem_strndup(host, n);
}
