/*
 * prefix.h - whether the provider's cache held, and if not, whose doing it was (H17, I4).
 *
 * Within an epoch the request only grows at its end, so what the provider read and wrote for one request it
 * should read for the next. Of each message that was sent a hash is kept, taken once. Where far less is read
 * than was known and no epoch ended between, the hashes say which part of ours changed: a bug of baton, or
 * nothing: then the cache lapsed, or the provider dropped it.
 *
 * Only the agent's own requests count; calls on the side share the prefix and disturb nothing.
 */
#ifndef BATON_AGENT_CONTEXT_PREFIX_H
#define BATON_AGENT_CONTEXT_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/context/view.h"
#include "agent/model/client.h"

struct prefix { /* all zero at first */
	uint64_t tools, system;
	uint64_t *hashes; /* of the messages of the last request */
	size_t n, cap;
	size_t before; /* of them in the request before it */
	int64_t epoch;
	int64_t known; /* tokens that the cache holds since the last answer; 0: none */
	int64_t sent_ms, earlier_ms; /* monotonic: of the last request and the one before */
	bool broken;		     /* an epoch ended between the two: that is on record */
};

void prefix_release(struct prefix *prefix);

/* The view, all rendered, leaves as a request. Hashes what is new; all of it when an epoch has ended. */
void prefix_sent(struct prefix *prefix, const struct view *view, const char *system,
		 const struct tool_spec *tools, size_t n_tools, int64_t now_ms);

enum prefix_part { PREFIX_TOOLS, PREFIX_SYSTEM, PREFIX_MESSAGE, PREFIX_LAPSED, PREFIX_PROVIDER };
const char *prefix_part_name(enum prefix_part part);

struct prefix_break {
	int64_t expected, read; /* tokens */
	enum prefix_part part;	/* what changed first; or nothing of ours did */
	size_t index;		/* PREFIX_MESSAGE: in the view */
	int64_t idle_ms;	/* between the two requests */
};

/* The answer to what prefix_sent saw. True and *ret: an unexpected cache break. */
bool prefix_answered(struct prefix *prefix, const struct view *view, const char *system,
		     const struct tool_spec *tools, size_t n_tools, const struct model_usage *usage,
		     struct prefix_break *ret);

/* H17: most of the prompt came from the cache. */
bool prefix_hit(const struct model_usage *usage);

#endif
