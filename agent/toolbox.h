/*
 * toolbox.h - the tools of this role: which are offered, their schemas, and their shared context.
 *
 * The list in the request is made once and never changes (W11); what may not be called is refused
 * by a result. The context (roots, jobs) is made at the first call, when the worktree is there.
 */
#ifndef BATON_AGENT_TOOLBOX_H
#define BATON_AGENT_TOOLBOX_H

#include "agent/model/client.h"
#include "agent/start.h"
#include "agent/tools/tool.h"
#include "agent/waiter.h"

#define REPORT_TOOL "report"

struct toolbox_entry {
	const struct tool *tool;
	struct json_object *schema;
};

struct toolbox {
	const struct agent_settings *agent;
	struct toolbox_entry *entries; /* in the table's order */
	size_t n;
	struct tool_spec *specs; /* the entries, then report */
	size_t n_specs;
	char *report_schema;
	char *results_dir;
	struct working_memory *memory; /* the agent's; for notes */
	struct subagents *subagents;   /* the agent's; for agent */
	struct tool_context *context;  /* NULL before the first call */
	bool needs_nothing;	       /* its tools work without a context: nothing is opened */
	struct buf unknown;	       /* names of the role that no tool has: for a warning */
};

/* Picks from `table` (tool_table in a real agent) what the role wants. */
int toolbox_init(struct toolbox *box, const struct agent_settings *settings,
		 const struct tool *table, size_t n_table, struct err *err);
/* Ends all jobs. */
void toolbox_release(struct toolbox *box);

/* The entry of an offered tool, NULL else. */
const struct toolbox_entry *toolbox_find(const struct toolbox *box, const char *name);
/* "read, grep, report" */
void toolbox_names(const struct toolbox *box, struct buf *out);

/* Waits until the worktree is there, and makes the context. ERR_NOT_FOUND: it could not be made. */
int toolbox_open(struct toolbox *box, struct waiter *waiter, struct err *err);

#endif
