/*
 * settings.h - what the gateway knows of its providers: addresses, credentials, limits, timers.
 *
 * Filled once from the parent's `start` document (docs/documents.md) and the key file on descriptor
 * 4; read only afterwards. The gateway has no configuration of its own and opens no file but the
 * certificate bundle that is named here or in the environment.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_SETTINGS_H
#define BATON_ORCHESTRATOR_GATEWAY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum provider_auth { AUTH_NONE, AUTH_X_API_KEY, AUTH_BEARER, AUTH_API_KEY };

struct provider {
	char *name;
	char *base_url;
	char *key_name; /* NULL: none is wanted */
	char *key;	/* NULL: it is missing; never logged, never in a message */
	enum provider_auth auth;
	char **headers; /* "name: value" */
	size_t n_headers;
	char *ca_file, *proxy;
	int concurrency; /* 0: not limited by the user */
	unsigned told;	 /* connection notes that the parent has had, a bit each */
	bool reached;	 /* some attempt of this run had an answer */
};

struct gateway_settings {
	struct provider *providers;
	size_t n_providers;
	int64_t connect_ms, bytes_idle_ms, content_idle_ms, max_sleep_ms;
	int64_t backoff_ms, backoff_max_ms;
	int retries; /* further attempts after the first */
};

/* Caller frees with gateway_settings_free. A header or key with a line break is refused. */
int gateway_settings_parse(struct json_object *start, struct json_object *keys,
			   struct gateway_settings **ret, struct err *err);
void gateway_settings_free(struct gateway_settings *s); /* NULL allowed; wipes the keys */
struct provider *gateway_settings_find(struct gateway_settings *s,
				       const char *name); /* NULL if unknown */

/* Reads the keys from a sealed memfd (at most 64 KiB of JSON) by position, so that the descriptor
 * can be shared with the next gateway. *ret is NULL for an empty file. */
int gateway_settings_read_keys(int fd, struct json_object **ret, struct err *err);

/* The address of a call: base URL and the path of the api ("anthropic" or "openai"), in front of a
 * query string if the base has one (api-version=...). Caller frees. */
char *provider_url(const struct provider *p, const char *api);
/* host[:port] of the base URL, for messages: no credentials, no path. Caller frees. */
char *provider_host(const struct provider *p);

#endif
