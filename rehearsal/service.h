/*
 * service.h - from a whole HTTP request to a whole reply, without sockets.
 *
 * Routes, each under any prefix: POST messages, messages/count_tokens (Anthropic), chat/completions
 * (OpenAI), GET models (both); and GET /__rehearsal/stats. Order of a model call: key and version,
 * reading and checking, window, rules, prefix cache, answer, faults. One service belongs to one
 * server.
 */
#ifndef BATON_REHEARSAL_SERVICE_H
#define BATON_REHEARSAL_SERVICE_H

#include "rehearsal/http.h"
#include "rehearsal/reply.h"
#include "rehearsal/stats.h"

struct service;

struct service_opts {
	int64_t window; /* overrides the scenario's windows; 0: does not */
	bool log_bodies;
	const char *log; /* path or NULL */
};

/* Takes the scenario over (also on failure). */
int service_new(struct scenario *scenario, const struct service_opts *opts, struct service **ret,
		struct err *err);
void service_free(struct service *service); /* NULL allowed */
/* The body is rewritten. The reply must be fresh (REPLY_INIT). */
void service_handle(struct service *service, const struct http_head *head, char *body, size_t n,
		    struct reply *reply);
struct stats *service_stats(struct service *service);

#endif
