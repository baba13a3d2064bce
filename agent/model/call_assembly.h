/*
 * call_assembly.h - tool calls of the OpenAI form, put together from their fragments.
 *
 * The rules of wire.md 4 that survive all known servers: missing or repeated indexes, ids on each
 * fragment or none at all, arguments as string, object, null or nothing, fields of the call in a
 * delta of their own (traps 33, 35, 43, 50).
 */
#ifndef BATON_AGENT_MODEL_CALL_ASSEMBLY_H
#define BATON_AGENT_MODEL_CALL_ASSEMBLY_H

#include "agent/model/arguments.h"
#include "base/buf.h"
#include "base/json.h"

struct call_part {
	int64_t index;	 /* -1: none was given */
	size_t place;	 /* in the array of its first fragment */
	char *id, *name; /* NULL while unknown */
	struct buf arguments;
	struct arguments_scan scan;
	struct json_object *extra; /* unknown fields of the call; NULL: none */
};

struct call_assembly {
	struct call_part *calls;
	size_t n, cap;
	size_t current; /* the call that was touched last, if n > 0 */
};

void call_assembly_release(struct call_assembly *a);

/* Takes one element of delta.tool_calls; `place` is its position among `count` elements. Returns
 * the call that it went to, borrowed until the next one; *ret_bytes is what was added to it. */
struct call_part *call_assembly_add(struct call_assembly *a, struct json_object *fragment,
				    size_t place, size_t count, size_t *ret_bytes);

#endif
