/*
 * classify.h - what an error of a provider means: status and body in, class and numbers out.
 *
 * A pure function over tables (wire.md 1.8, 1.10, 2.3 and 3). The status and the error's type or
 * code decide first; texts count only in known shapes, vetoes before matches (trap 74: digits or
 * words that a server echoes from a prompt never change the class).
 */
#ifndef BATON_ORCHESTRATOR_GATEWAY_CLASSIFY_H
#define BATON_ORCHESTRATOR_GATEWAY_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handoff/call.h"

#define CLASSIFY_MESSAGE_MAX (8 << 10)

struct verdict {
	enum call_class class;
	int status;	     /* HTTP, or what an in-band error stands for; 0 if unknown */
	bool retryable;	     /* the same request may succeed later */
	int max_retries;     /* -1: as many as configured */
	bool congestion;     /* the provider is loaded: others had better slow down too */
	int64_t used, limit; /* tokens; prompt and wanted output together where both are named */
	int64_t excess;	     /* tokens above the limit, when only that is known */
	char *message;	     /* sanitised, at most CLASSIFY_MESSAGE_MAX bytes, never NULL */
};
void verdict_release(struct verdict *v);

/* status: of the response, or 0 for an error inside a stream, where body is the event's data. The
 * body is JSON of any of the known envelopes (object, array, bare string) or text or HTML. */
void classify_error(int status, const char *body, size_t n, struct verdict *ret);

/* True if a JSON document is an error in one of those envelopes (for bodies that came with 200). */
bool classify_is_error(const char *body, size_t n);

#endif
