/*
 * boundary.h - after a command: are `.git` and HEAD still as they must be (X10).
 */
#ifndef BATON_AGENT_TOOLS_BOUNDARY_H
#define BATON_AGENT_TOOLS_BOUNDARY_H

#include "agent/tools/context.h"

/* A changed `.git` file is restored and gives -1 with ERR_DENIED: the agent stops, since what it
 * leads to may run programs outside a box. A HEAD that left the branch makes the result an error
 * that says how to go back; a rebase, merge or bisect in progress is allowed. Both notes go into
 * the result. */
int boundary_check(struct tool_context *ctx, struct tool_result *ret, struct err *err);

#endif
