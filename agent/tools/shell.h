/*
 * shell.h - what the tools shell, job and image share: the box of a command, and its output.
 */
#ifndef BATON_AGENT_TOOLS_SHELL_H
#define BATON_AGENT_TOOLS_SHELL_H

#include "agent/tools/context.h"
#include "agent/tools/job.h"
#include "handoff/box_command.h"

/* The environment of every command, made at the first one; the context's. */
char **shell_environment(struct tool_context *ctx);

/* Appends what a job printed since `from`; returns where to go on. While the job runs, a character
 * that has not come whole is left for the next time. */
off_t shell_add_output(struct tool_context *ctx, struct job *job, off_t from, struct buf *out);
/* Names the processes that its end left behind, if any. */
void shell_add_left(const struct job *job, struct buf *out);

#endif
