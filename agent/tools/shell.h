/*
 * shell.h - how a command is put together: argument list with the box, environment by allow list.
 */
#ifndef BATON_AGENT_TOOLS_SHELL_H
#define BATON_AGENT_TOOLS_SHELL_H

#include "agent/tools/context.h"
#include "agent/tools/job.h"

/* A NULL-terminated list of borrowed strings. */
struct words {
	const char **items;
	size_t count, cap;
};
void words_add(struct words *words, const char *word);
void words_release(struct words *words);

/* Appends "baton-box --level ... --": what may be written and read by settings (docs/documents.md).
 * Nothing is appended without a box program. */
void shell_add_box(const struct tool_context *ctx, struct words *argv);

/* The environment of every command, made once: nothing of ours but the allow list and pass_env.
 * Without any GIT_* of the outside, with no way to open an editor or a pager (trap 102). */
char **shell_environment(struct tool_context *ctx);

/* Appends what a job printed since `from`; returns where to go on. While the job runs, a character
 * that has not come whole is left for the next time. */
off_t shell_add_output(struct tool_context *ctx, struct job *job, off_t from, struct buf *out);
/* Names the processes that its end left behind, if any. */
void shell_add_left(const struct job *job, struct buf *out);

#endif
