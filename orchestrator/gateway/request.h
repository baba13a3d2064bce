/*
 * request.h - the options and headers of a provider's request on a curl handle.
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_REQUEST_H
#define BATON_ORCHESTRATOR_GATEWAY_REQUEST_H

#include <curl/curl.h>

#include "base/err.h"

struct transfer_spec;

/* Sets address, headers with credentials, TLS, proxy and connection options. *ret_headers belongs
 * to the caller, who frees it with request_wipe after the handle. */
int request_prepare(CURL *easy, const struct transfer_spec *spec, struct curl_slist **ret_headers,
		    struct err *err);
void request_wipe(struct curl_slist *headers); /* NULL allowed; overwrites the credentials */

#endif
