/*
 * arrival.h - a tool's result on its way into the context.
 *
 * Between the end of a tool and the message that holds its result, offload (T1, T2, T10) and the
 * window's room (W7) decide what of it the model sees. The decision is made here, once: the message
 * that is built afterwards is immutable, so T3 holds by construction.
 */
#ifndef BATON_AGENT_CONTEXT_ARRIVAL_H
#define BATON_AGENT_CONTEXT_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/message.h"
#include "agent/tools/tool.h"
#include "base/buf.h"

struct arrival {
	const struct block *call; /* in the assistant message */
	const struct tool *tool;  /* NULL: not run by a tool (refused, the report) */
	struct json_object
		*input; /* checked, and no hook denies it; NULL: not looked at yet, or refused */
	bool begun;	/* tool->begin was called */
	struct tool_result result;
	struct buf text; /* what the model will see; valid UTF-8, never empty once admitted */
	char *file;	 /* "results:3.txt" where all of it is; NULL; owned */
	bool images_left_out;
	int64_t duration_ms;
};

static inline void arrival_release(struct arrival *a)
{
	json_object_put(a->input);
	tool_result_release(&a->result);
	buf_release(&a->text);
	free(a->file);
}

#endif
