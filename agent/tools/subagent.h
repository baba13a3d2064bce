/*
 * subagent.h - what the tool `agent` needs of the agent itself, which knows the channel to the parent.
 *
 * A table of functions and not their names: the tools are built and tested without the agent round them.
 */
#ifndef BATON_AGENT_TOOLS_SUBAGENT_H
#define BATON_AGENT_TOOLS_SUBAGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct subagents; /* agent/subagents.h */

struct subagent_ops {
	/* Asks the parent for one, once a call; *ret_name of the new one, or why not (*ret_refusal); both borrowed until the
	 * next call of any of these. -1: stopped or alone. */
	int (*start)(struct subagents *s, const char *call, struct json_object *wish,
		     const char **ret_name, const char **ret_refusal, struct err *err);
	bool (*known)(struct subagents *s, const char *name);
	/* Until it ended. ERR_TIMEOUT; -1 also: stopped or alone. */
	int (*wait)(struct subagents *s, const char *name, int64_t deadline_ms, struct err *err);
	/* What is told of one that ended; its status. */
	const char *(*tell)(struct subagents *s, const char *name, struct buf *out);
	/* `say`, `stop`, `capacity` (handoff/frame_types.h, message). *ret_answer is the caller's. -1: stopped or alone. */
	int (*message)(struct subagents *s, const char *call, const char *action, const char *to,
		       const char *text, bool *ret_ok, struct json_object **ret_answer,
		       struct err *err);
	/* A line of each. */
	void (*list)(struct subagents *s, struct buf *out);
};

#endif
