/*
 * rehearsal_rig.h - a service from a scenario text, and calls to it without sockets.
 */
#ifndef BATON_TESTS_REHEARSAL_RIG_H
#define BATON_TESTS_REHEARSAL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/memory.h"
#include "rehearsal/service.h"

struct rig {
	struct service *service;
	struct reply reply;
};

static inline void rig_open(struct rig *rig, const char *scenario_text)
{
	struct service_opts opts = {.window = 0};
	struct scenario *scenario;
	struct err err = ERR_INIT;

	rig->reply = (struct reply)REPLY_INIT;
	if (scenario_parse(scenario_text, strlen(scenario_text), "test.yaml", &scenario, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(service_new(scenario, &opts, &rig->service, &err), 0);
}

static inline void rig_close(struct rig *rig)
{
	reply_release(&rig->reply);
	service_free(rig->service);
}

/* Sends one request; the answer is in rig->reply until the next one. Returns the status. */
static inline int rig_send(struct rig *rig, const char *method, const char *path, const char *body,
			   size_t n, const char *headers)
{
	AUTO_FREE char *head =
		mem_printf("%s %s HTTP/1.1\r\nhost: x\r\n%s\r\n", method, path, headers);
	AUTO_FREE char *copy = mem_strndup(body, n);
	struct http_head parsed;
	struct err err = ERR_INIT;

	reply_release(&rig->reply);
	if (http_parse_head(head, strlen(head), &parsed, &err) < 0)
		fail_msg("%s", err.message);
	service_handle(rig->service, &parsed, copy, n, &rig->reply);
	buf_reserve(&rig->reply.body, 1);
	return rig->reply.status;
}

static inline int rig_anthropic(struct rig *rig, const char *body)
{
	return rig_send(rig, "POST", "/v1/messages", body, strlen(body),
			"anthropic-version: 2023-06-01\r\n");
}

static inline int rig_openai(struct rig *rig, const char *body)
{
	return rig_send(rig, "POST", "/v1/chat/completions", body, strlen(body), "");
}

static inline const char *rig_body(const struct rig *rig)
{
	return buf_str(&rig->reply.body);
}

/* The answer as a document; the caller frees. */
static inline struct json_object *rig_json(const struct rig *rig)
{
	struct json_object *doc = NULL;
	struct err err = ERR_INIT;

	if (json_parse(rig_body(rig), rig->reply.body.len, &doc, &err) < 0)
		fail_msg("%s in %s", err.message, rig_body(rig));
	return doc;
}

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr((text), (part)))                                                       \
			fail_msg("no '%s' in: %s", (part), (text));                                \
	} while (0)
#define assert_lacks(text, part)                                                                   \
	do {                                                                                       \
		if (strstr((text), (part)))                                                        \
			fail_msg("'%s' in: %s", (part), (text));                                   \
	} while (0)

#endif
