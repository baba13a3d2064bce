/*
 * table.c - the tools, one row each.
 *
 * Prompts, permission lists and the model request read the same table. The order is the order in
 * the request and must not depend on anything: the provider's cache hangs on it (W11). A new tool
 * is a file with its three parts (context.h) and a row here.
 */
#include "agent/tools/context.h"
#include "base/memory.h"

static const struct tool table[] = {
	{
		.name = "read",
		.description = read_description,
		.schema = read_schema,
		.flags = TOOL_READS | TOOL_REOBTAINABLE | TOOL_NO_OFFLOAD,
		.run = read_run,
	},
	{
		.name = "write",
		.description = write_description,
		.schema = write_schema,
		.flags = TOOL_WRITES | TOOL_REOBTAINABLE,
		.run = write_run,
	},
	{
		.name = "edit",
		.description = edit_description,
		.schema = edit_schema,
		.flags = TOOL_WRITES | TOOL_REOBTAINABLE,
		.run = edit_run,
	},
	{
		.name = "glob",
		.description = glob_description,
		.schema = glob_schema,
		.flags = TOOL_READS | TOOL_REOBTAINABLE,
		.run = glob_run,
	},
	{
		.name = "grep",
		.description = grep_description,
		.schema = grep_schema,
		.flags = TOOL_READS | TOOL_REOBTAINABLE,
		.result_limit = 20000,
		.run = grep_run,
		.shorten = grep_shorten,
	},
	{
		.name = "shell",
		.description = shell_description,
		.schema = shell_schema,
		.flags = TOOL_REOBTAINABLE,
		.result_limit = 30000,
		.run = shell_run,
		.shorten = shell_shorten,
	},
	{
		.name = "job",
		.description = job_description,
		.schema = job_schema,
		.flags = TOOL_REOBTAINABLE,
		.result_limit = 30000,
		.run = job_run,
		.shorten = shell_shorten,
	},
	{
		.name = "notes",
		.description = notes_description,
		.schema = notes_schema,
		.run = notes_run,
	},
	{
		.name = "recall",
		.description = recall_description,
		.schema = recall_schema,
		.flags = TOOL_READS | TOOL_REOBTAINABLE,
		.run = recall_run,
	},
	{
		.name = "agent",
		.description = subagent_description,
		.schema = subagent_schema,
		.flags = TOOL_SPAWNS,
		.result_limit = 100000,
		.begin = subagent_begin,
		.run = subagent_run,
	},
};

const struct tool *tool_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(table);
	return table;
}

const struct tool *tool_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
