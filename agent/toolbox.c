/*
 * toolbox.c - picks the role's tools from the table and opens their context.
 *
 * A role that may not write is not offered tools with effects on files, whatever its list says: the
 * list comes from a file that people copy around. The descriptors are opened late on purpose: on a
 * large repository the checkout takes longer than the model's first answer, and the first request
 * does not wait for it.
 */
#include "agent/toolbox.h"

#include "agent/events.h"
#include "agent/subagents.h"
#include "base/file.h"
#include "base/memory.h"
#include "handoff/report.h"

static const char report_description[] = "Ends the work and delivers its result. Call it once, "
					 "when the task is finished, or when you "
					 "cannot go on. The reader sees only this report: put into "
					 "it what was done, what was checked and "
					 "how, what is left, and evidence for each finding.";

static bool role_wants(const struct agent_settings *s, const char *name)
{
	for (size_t i = 0; s->tools[i]; i++)
		if (!strcmp(s->tools[i], name))
			return true;
	return false;
}

/* Roles are copied from other programs and name tools that we do not have: a warning, not a
 * failure. */
static void note_unknown(struct toolbox *box)
{
	for (size_t i = 0; box->agent->tools[i]; i++) {
		const char *name = box->agent->tools[i];

		if (!strcmp(name, REPORT_TOOL) || tool_find(name))
			continue;
		buf_addf(&box->unknown, "%s%s", box->unknown.len ? ", " : "", name);
	}
}

static int add_entry(struct toolbox *box, const struct tool *tool, struct err *err)
{
	struct json_object *schema = NULL;

	if (json_parse(tool->schema, strlen(tool->schema), &schema, err) < 0)
		return err_prefix(err, "schema of tool '%s'", tool->name);
	box->entries[box->n++] = (struct toolbox_entry){.tool = tool, .schema = schema};
	box->specs[box->n_specs++] = (struct tool_spec){
		.name = tool->name, .description = tool->description, .schema = tool->schema};
	return 0;
}

/* The table's order and not the role's: all roles with the same tools then share one cached prefix.
 */
int toolbox_init(struct toolbox *box, const struct agent_settings *settings,
		 const struct tool *table, size_t count, struct err *err)
{
	*box = (struct toolbox){.agent = settings};
	box->entries = mem_alloc((count + 1) * sizeof(*box->entries));
	box->specs = mem_alloc((count + 1) * sizeof(*box->specs));
	for (size_t i = 0; i < count; i++) {
		if (!role_wants(settings, table[i].name) ||
		    ((table[i].flags & TOOL_WRITES) && !settings->write) ||
		    ((table[i].flags & TOOL_SPAWNS) && !settings->subagents))
			continue;
		if (add_entry(box, &table[i], err) < 0)
			return -1;
	}
	note_unknown(box);
	box->report_schema = report_schema(settings->output_schema);
	box->specs[box->n_specs++] = (struct tool_spec){.name = REPORT_TOOL,
							.description = report_description,
							.schema = box->report_schema};
	box->results_dir = file_join(settings->dir_generation, "results");
	return 0;
}

void toolbox_release(struct toolbox *box)
{
	tool_context_free(box->context);
	for (size_t i = 0; i < box->n; i++)
		json_object_put(box->entries[i].schema);
	free(box->entries);
	free(box->specs);
	free(box->report_schema);
	free(box->results_dir);
	buf_release(&box->unknown);
	*box = (struct toolbox){.agent = NULL};
}

const struct toolbox_entry *toolbox_find(const struct toolbox *box, const char *name)
{
	for (size_t i = 0; i < box->n; i++)
		if (!strcmp(box->entries[i].tool->name, name))
			return &box->entries[i];
	return NULL;
}

void toolbox_names(const struct toolbox *box, struct buf *out)
{
	for (size_t i = 0; i < box->n_specs; i++)
		buf_addf(out, "%s%s", i ? ", " : "", box->specs[i].name);
}

/* The ready frame may have come long before; then this returns at once. */
static int wait_worktree(struct toolbox *box, struct waiter *waiter, struct err *err)
{
	const char *message = "";

	if (box->agent->worktree_ready)
		return 0;
	if (waiter_worktree(waiter, NULL) == WORKTREE_PENDING)
		event_state(waiter_channel(waiter), ACTIVITY_WAITING, "the worktree is being made");
	while (waiter_worktree(waiter, &message) == WORKTREE_PENDING)
		if (wait_poll(waiter, NULL, 0, INT64_MAX, err) < 0)
			return -1;
	if (waiter_worktree(waiter, &message) == WORKTREE_FAILED)
		return err_set(err, ERR_NOT_FOUND, "the worktree could not be made: %s", message);
	return 0;
}

int toolbox_open(struct toolbox *box, struct waiter *waiter, struct err *err)
{
	const struct agent_settings *s = box->agent;
	struct tool_settings settings = {
		.worktree = s->dir_worktree,
		.former_worktree = s->fork_worktree,
		.git_dir = s->dir_git,
		.git_file = s->git_file,
		.head_ref = s->head_ref,
		.results_dir = box->results_dir,
		.scratch_dir = s->dir_scratch,
		.cache_dir = s->dir_cache,
		.box_program = s->box_program,
		.box_level = s->box_level,
		.image_program = s->image_program,
		.network = s->network,
		.read_paths = s->read_paths,
		.pass_env = s->pass_env,
		.read_only = s->read_only || !s->write,
		.memory = box->memory,
		.subagent_ops = &subagent_ops,
		.subagents = box->subagents,
		.generation_dir = s->dir_generation,
		.generation = s->generation,
		.shell_timeout_ms = s->shell_timeout_ms,
		.shell_timeout_max_ms = s->shell_timeout_max_ms,
	};
	struct tool_context *context;

	if (box->context || box->needs_nothing)
		return 0;
	if (wait_worktree(box, waiter, err) < 0)
		return -1;
	context = tool_context_new(&settings, waiter, err);
	if (!context)
		return -1;
	/* The context looked for the worktree already; this tells why it is not there. */
	if (tool_context_open_worktree(context, err) < 0) {
		tool_context_free(context);
		return -1;
	}
	box->context = context;
	return 0;
}
