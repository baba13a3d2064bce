/*
 * request.c - see request.h.
 *
 * Here and only here a key meets a connection. Redirects are never followed: a header with a key
 * would go to whoever the answer names. CURLOPT_VERBOSE is never set: it would print the key.
 *
 * No total timeout: a slow answer is an answer (trap 5). Idle time is watched by transfer.c, dead
 * peers by TCP keep-alive. The body comes through a read callback with its length known beforehand,
 * so that HTTP/1.1 servers get a Content-Length; some imitations take no chunked requests.
 */
#include "orchestrator/gateway/request.h"

#include <string.h>

#include "base/env.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "orchestrator/gateway/settings.h"
#include "orchestrator/gateway/transfer.h"

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
	AUTO_FREE char *line = mem_printf("%s: %s", name, value);
	struct curl_slist *grown = curl_slist_append(*list, line);
	explicit_bzero(line, strlen(line));
	if (!grown)
		abort();
	*list = grown;
}

static void add_key(struct curl_slist **list, const struct provider *p)
{
	if (!p->key || p->auth == AUTH_NONE)
		return;
	if (p->auth == AUTH_BEARER) {
		AUTO_FREE char *value = mem_printf("Bearer %s", p->key);
		add_header(list, "Authorization", value);
		explicit_bzero(value, strlen(value));
	} else {
		add_header(list, p->auth == AUTH_X_API_KEY ? "x-api-key" : "api-key", p->key);
	}
}

static struct curl_slist *make_headers(const struct transfer_spec *spec)
{
	struct curl_slist *list = NULL;
	const struct provider *p = spec->provider;
	add_header(&list, "Content-Type", "application/json");
	add_header(&list, "Accept", "text/event-stream");
	/* No waiting for 100-continue before a large body. */
	add_header(&list, "Expect", "");
	if (strcmp(spec->api, "anthropic") == 0) {
		add_header(&list, "anthropic-version", "2023-06-01");
		if (spec->beta)
			add_header(&list, "anthropic-beta", spec->beta);
	}
	add_key(&list, p);
	for (size_t i = 0; i < p->n_headers; i++) {
		struct curl_slist *grown = curl_slist_append(list, p->headers[i]);
		if (!grown)
			abort();
		list = grown;
	}
	return list;
}

void request_wipe(struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
}

/* The library itself knows none of the variables of the curl program. */
static void set_trust(CURL *easy, const struct provider *p)
{
	const char *file = p->ca_file;
	if (!file)
		file = env_get("CURL_CA_BUNDLE");
	if (!file)
		file = env_get("SSL_CERT_FILE");
	if (file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, file);
	const char *dir = env_get("SSL_CERT_DIR");
	if (dir && !p->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAPATH, dir);
}

static void set_connection(CURL *easy, const struct transfer_spec *spec, bool tls)
{
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)spec->settings->connect_ms);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, spec->fresh ? 1L : 0L);
	/* Waiting for a connection that may turn out to be HTTP/2 is worth it only where it can. */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
			 (long)(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, tls && !spec->fresh ? 1L : 0L);
	if (spec->provider->proxy)
		curl_easy_setopt(easy, CURLOPT_PROXY, spec->provider->proxy);
	if (tls)
		set_trust(easy, spec->provider);
}

int request_prepare(CURL *easy, const struct transfer_spec *spec, struct curl_slist **ret_headers,
		    struct err *err)
{
	AUTO_FREE char *url = provider_url(spec->provider, spec->api);
	if (curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK)
		return err_set(err, ERR_INVALID, "the base_url is not an address");
	set_connection(easy, spec, text_starts(url, "https://"));
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "baton/" BATON_VERSION);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->length);
	*ret_headers = make_headers(spec);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
	return 0;
}
