/*
 * tool.h - what a tool is, and the table of all of them.
 *
 * Each tool is one file and one row of the table in tools/table.c. A tool gets its input as a
 * checked JSON object (json_check_schema against its schema has passed) and fills a result; it
 * never ends the process and never trusts a path: file access goes through the roots
 * (tools/roots.h). A failure that the model should see is a result with is_error, returned as 0; -1
 * is for the agent itself (cancelled, parent gone, boundary broken).
 */
#ifndef BATON_AGENT_TOOLS_TOOL_H
#define BATON_AGENT_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "agent/wait.h"

struct subagent_ops;
struct subagents;
struct working_memory;
struct tool_context; /* tools/context.h: roots, jobs, file states, settings of one agent */

struct tool_image {
	char *media_type, *base64;
	size_t base64_len;
};

struct tool_result {
	struct buf text; /* any bytes; the agent sanitises them */
	bool is_error;
	int exit_code;	  /* shell: 0-255, 128+signal; -1 where there is none */
	bool has_effects; /* something outside may have changed */
	bool shortage;	  /* it failed for want of descriptors or memory: the agent cannot go on */
	char *summary;	  /* one line for people: "edit src/a.c (+3 -1)"; owned */
	char *full_path;  /* "results:N.txt" where all of the output is already; NULL; owned */
	struct tool_image *images;
	size_t n_images;
};
void tool_result_release(struct tool_result *result);

enum tool_flag {
	TOOL_READS = 1,	       /* no effects: may run again after an interruption */
	TOOL_WRITES = 2,       /* only offered to roles that write */
	TOOL_REOBTAINABLE = 4, /* T7: may be cleared later */
	TOOL_NO_OFFLOAD = 8,   /* T1: exempt */
	TOOL_SPAWNS =
		16, /* not offered where no further agents may be started (A3); after an interruption it
				* may be asked again: the parent knows the call by its key */
};

struct tool {
	const char *name;
	const char *description; /* for the model; no absolute path, no agent id */
	const char *schema;	 /* JSON text */
	unsigned flags;
	size_t result_limit; /* characters before T1 offloads; 0: 50,000 */
	int (*run)(struct tool_context *ctx, const char *call_id, struct json_object *input,
		   struct tool_result *ret, struct err *err);
	/* T5: shortens text of more than the limit better than head and tail; NULL: text_clip. */
	void (*shorten)(const struct tool_result *full, size_t budget, const char *where,
			struct buf *out);
	/* What calls that stand in a row can do before the first of them is waited for; NULL: nothing. What it finds
	 * wrong is told by run. -1 as run. */
	int (*begin)(struct tool_context *ctx, const char *call_id, struct json_object *input,
		     struct err *err);
};

/* The table. read, write, edit, glob, grep, shell, job (poll, wait, kill of background jobs), notes,
 * recall. The report tool is the agent's own (agent/report_tool.c): it ends the work. */
const struct tool *tool_table(size_t *ret_count);
const struct tool *tool_find(const char *name); /* NULL if unknown */

struct tool_settings { /* borrowed strings, valid for the context's life */
	const char
		*worktree; /* absolute path of the root for file tools; "" if it is not there yet */
	const char *
		former_worktree; /* paths below it are meant as paths below `worktree` (A2); NULL: none */
	const char *git_dir;	 /* the agent's private repository; NULL: no git */
	const char *git_file;	 /* exact bytes that worktree/.git must hold; NULL: no check */
	const char *head_ref;	 /* "refs/heads/baton/r/a1"; NULL: no check */
	const char *results_dir; /* `results:` */
	const char *scratch_dir; /* `scratch:`, also TMPDIR */
	const char *cache_dir;
	const char
		*box_program;  /* absolute path of baton-box; NULL: unconfined by the user's word */
	const char *box_level; /* "auto", "landlock", "partial", "unconfined" */
	const char *image_program;     /* absolute path of baton-image */
	const char *network;	       /* "none", "loopback", "open" */
	const char *const *read_paths; /* NULL-terminated: further folders that the box may read */
	const char *const
		*pass_env; /* NULL-terminated names that tools get beside the built-in list */
	bool read_only;	   /* reviewers: shell sees a read-only tree */
	struct working_memory *memory; /* that `notes` keeps, the agent's; NULL: none */
	const struct subagent_ops *subagent_ops;
	struct subagents *subagents; /* that `agent` starts, the agent's; NULL: none */
	const char *generation_dir;  /* whose transcripts `recall` reads; NULL: none */
	int64_t generation;
	int64_t shell_timeout_ms;     /* default of a call (120,000) */
	int64_t shell_timeout_max_ms; /* largest that a call may ask for (600,000) */
	int64_t shell_output_max;     /* bytes of output at which a command is ended; 0: 64 MiB */
};

struct tool_context *tool_context_new(const struct tool_settings *settings, struct waiter *waiter,
				      struct err *err);
/* Kills what still runs (jobs die with the run), reaps it, closes the roots. NULL allowed. */
void tool_context_free(struct tool_context *ctx);

/* Opens the worktree root once it is there (READY). */
int tool_context_open_worktree(struct tool_context *ctx, struct err *err);

/* Work for the time in which the model thinks: the next command\'s output file is made. */
void tool_context_idle(struct tool_context *ctx);

struct job_end {
	char id[16];	 /* "j3" */
	int exit_code;	 /* 128 + signal if one ended it */
	struct buf line; /* for the model and for people, without a newline; the caller's */
};
/* The next end of a background job that was not told yet; false: none. Each is told once. */
bool tool_context_next_end(struct tool_context *ctx, struct job_end *ret);
size_t tool_context_running_jobs(const struct tool_context *ctx);
/* Appends a line for each background job that runs. */
void tool_context_list_jobs(const struct tool_context *ctx, struct buf *out);

/* Is there a file of this name in the worktree? */
bool tool_context_file_exists(struct tool_context *ctx, const char *name);

/* When it was changed last, wall ms; false: there is none. */
bool tool_context_file_time(struct tool_context *ctx, const char *name, int64_t *ret_ms);
/* Its bytes, at most as many as `out` may hold. -1: it cannot be read, or is larger. */
int tool_context_file_read(struct tool_context *ctx, const char *name, struct buf *out);
/* A process that wrote it was killed: removes the half that it may have left beside it. */
void tool_context_file_tidy(struct tool_context *ctx, const char *name);

/* Names of files that write and edit touched (I7), for checkpoints: borrowed list. */
const char *const *tool_context_touched(const struct tool_context *ctx, size_t *ret_count);

#endif
