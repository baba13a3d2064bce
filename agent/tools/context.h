/*
 * context.h - what the tools of one agent share: roots, file states, jobs, settings.
 *
 * Private to tools/. The public face (new, free, announcements) is in tool.h.
 */
#ifndef BATON_AGENT_TOOLS_CONTEXT_H
#define BATON_AGENT_TOOLS_CONTEXT_H

#include <sys/stat.h>

#include "agent/tools/file_state.h"
#include "agent/tools/roots.h"
#include "agent/tools/tool.h"

struct job;

struct tool_context {
	struct tool_settings settings; /* a copy; its strings are borrowed */
	struct waiter *waiter;
	struct roots roots;
	struct file_states files;
	struct job *jobs;     /* all that run, and ended background jobs; newest first */
	unsigned last_start;  /* number of the newest command: its BATON_JOB */
	unsigned last_job;    /* number of the newest background job */
	unsigned last_output; /* number of the newest output file */
	int next_output_fd;   /* a file made beforehand, with its name; -1 */
	char *next_output;
	char **shell_env; /* made at the first command */
	char **touched;	  /* worktree paths that write and edit changed (I7) */
	size_t n_touched, cap_touched;
	int64_t next_check_ms; /* when tool_check looks again */
};

/* What each tool's file gives to its row in table.c. */
#define TOOL_PARTS(name)                                                                           \
	extern const char name##_description[], name##_schema[];                                   \
	int name##_run(struct tool_context *ctx, const char *call_id, struct json_object *input,   \
		       struct tool_result *ret, struct err *err)
TOOL_PARTS(read);
TOOL_PARTS(write);
TOOL_PARTS(edit);
TOOL_PARTS(glob);
TOOL_PARTS(grep);
TOOL_PARTS(shell);
TOOL_PARTS(job);
TOOL_PARTS(notes);
TOOL_PARTS(recall);
TOOL_PARTS(subagent);
int subagent_begin(struct tool_context *ctx, const char *call_id, struct json_object *input,
		   struct err *err);
void grep_shorten(const struct tool_result *full, size_t budget, const char *where,
		  struct buf *out);
void shell_shorten(const struct tool_result *full, size_t budget, const char *where,
		   struct buf *out);

/* Makes *ret an error for the model: the text is e's message. Returns 0, so that tools can end on
 * it. */
int result_fail(struct tool_result *ret, const struct err *e);
/* The same with a message of its own. */
int result_failf(struct tool_result *ret, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Ends a tool that failed with e: 0 with an error result, or -1 where the agent is to stop
 * (ERR_CANCELLED, ERR_CLOSED). */
int result_end(struct tool_result *ret, const struct err *e, struct err *err);
void result_summary(struct tool_result *ret, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Parses the member `key` of the input as a place; absent: the worktree's root. */
int input_place(struct tool_context *ctx, struct json_object *input, const char *key,
		struct place *ret, struct err *err);

/* To be called now and then in long work without waits: looks for a cancel every 25 ms. 0, or -1
 * with ERR_CANCELLED or ERR_CLOSED. */
int tool_check(struct tool_context *ctx, struct err *err);

/* Remembers a file that write or edit changed. */
void tool_touch(struct tool_context *ctx, const struct place *place);

#endif
