/*
 * start.h - the start document of an agent, checked and typed (docs/documents.md, "start").
 *
 * The document stays alive inside the settings: every string below is borrowed from it. Checking is
 * strict: a missing member, a wrong type or a number out of range is an error that names the field
 * ("field 'role.max_rounds' must be an integer"), because a wrong start is a bug of the parent, or
 * of whoever hosts `baton agent`, and must not show itself an hour later as something else.
 */
#ifndef BATON_AGENT_START_H
#define BATON_AGENT_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/message.h"
#include "base/err.h"
#include "base/json.h"
#include "base/model_table.h"
#include "handoff/hook.h"
#include "handoff/knobs.h"

struct start_instructions {
	const char *origin; /* "user" or "project" */
	const char *path;
	const char *text;
};

struct start_hook {
	enum hook_event event;
	const char *matcher;
};

struct agent_settings {
	struct json_object *doc; /* owns all strings */

	const char *run, *agent;
	int64_t generation;
	const char *
		resume_note; /* what the parent found out on the way: a sentence or more; NULL: nothing */
	bool resume; /* this generation was cut off: its transcript says how far it came (R6) */
	const char *handoff_file, *handoff_reason; /* from which it starts (R1); NULL: none */
	int64_t handoff_from;			   /* the generation that wrote it; 0: a person */
	/* A2: whose conversation it began with, up to which call; all NULL: it is no fork. fork_worktree: the other one's,
	 * whose paths stand in that conversation; NULL: it looks at the same files. */
	const char *fork_agent, *fork_folder, *fork_call, *fork_worktree;
	int64_t fork_generation;
	const char *reset; /* "auto", "never" or "per_stage" (R1) */

	const char *role, *prompt;
	const char **tools; /* names, NULL-terminated */
	bool write;
	const char *network, *effort; /* effort: NULL if not given */
	int64_t max_rounds, max_output;
	struct json_object *output_schema; /* NULL if the role has none */

	const char *memory;	  /* what earlier runs noted; NULL: nothing */
	const char *task, *brief; /* brief: "" if there is none */
	enum block_origin task_origin;
	struct start_instructions *instructions;
	size_t n_instructions;
	struct start_hook *hooks; /* which events are worth a question to the parent (M6) */
	size_t n_hooks;
	const char *branch, *base, *platform, *date, *repository; /* NULL if not given */

	struct model *model;
	struct model *compact_model; /* that summarises (H16); NULL: the agent's own */

	const char *dir_generation, *dir_worktree, *dir_scratch, *dir_cache;
	const char *stderr_path; /* where this process's own messages go; NULL: as inherited */
	const char *dir_git;	 /* NULL: no git */
	const char *git_file, *head_ref;
	bool worktree_ready, read_only, verbose;
	bool subagents; /* it may start others (A3); those that it has stand in the document's `children` */

	const char *box_program, *box_level, *image_program;
	const char **read_paths, **pass_env; /* NULL-terminated */

	int64_t shell_timeout_ms, shell_timeout_max_ms;
	int64_t report_tokens; /* A4 */
	int64_t checkpoint_ms; /* least time between two checkpoints; 0: none */
	struct context_knobs knobs;
	struct json_object *calibration; /* W6: rates that earlier runs learned; NULL if none */
};

/* Parses and checks the document. ERR_INVALID names the field; ERR_USAGE if the model's window is
 * not known. *ret is owned by the caller. */
int agent_settings_parse(const char *bytes, size_t n, struct agent_settings **ret, struct err *err);
void agent_settings_free(struct agent_settings *settings); /* NULL allowed */

#endif
