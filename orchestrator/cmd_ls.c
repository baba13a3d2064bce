/*
 * cmd_ls.c - `baton ls`: the runs of this repository, newest last.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"

static void print_json(const struct past_run *runs, size_t n)
{
	AUTO_JSON struct json_object *list = json_object_new_array();
	char stamp[CLOCK_STAMP_SIZE];

	for (size_t i = 0; i < n; i++) {
		struct json_object *entry = json_object_new_object();
		json_set_str(entry, "run", runs[i].id);
		json_set_str(entry, "command", runs[i].command);
		json_set_str(entry, "status", runs[i].status);
		json_set_bool(entry, "resumable", runs[i].resumable);
		json_set_str(entry, "started", clock_stamp(runs[i].started_ms, stamp));
		json_set_i64(entry, "agents", (int64_t)runs[i].n_agents);
		if (runs[i].cost_known)
			json_set_double(entry, "cost", runs[i].cost);
		struct json_object *adopted = past_run_adopted(&runs[i]);
		if (adopted)
			json_set(entry, "adopted", adopted);
		json_set_str(entry, "task", runs[i].task);
		json_object_array_add(list, entry);
	}
	command_print_json(list);
}

static void print_run(const struct past_run *run)
{
	AUTO_JSON struct json_object *adopted = past_run_adopted(run);
	AUTO_BUF struct buf task = BUF_INIT;
	char stamp[CLOCK_STAMP_SIZE], cost[32] = "";
	const char *text = run->task && *run->task ? run->task : run->command ? run->command : "";

	text_printable(&task, text, strlen(text), true);
	buf_truncate(&task, text_floor(task.data, task.len, MIN(task.len, (size_t)60)));
	clock_stamp(run->started_ms, stamp);
	if (run->cost_known)
		snprintf(cost, sizeof(cost), "%.4f USD", run->cost);
	command_say("%-12s %.16s  %-7s %-10s %3zu agent%s  %12s  %s%s\n", run->id, stamp,
		    run->command ? run->command : "?", run->status, run->n_agents,
		    run->n_agents == 1 ? " " : "s", cost, buf_str(&task),
		    adopted ? "  (adopted)" : "");
	if (run->resumable)
		command_say("%-12s   to go on:  baton resume %s\n", "", run->id);
}

int cmd_ls(struct settings *s)
{
	struct past_run *runs;
	size_t n;
	struct err err = ERR_INIT;

	if (runs_list(s, &runs, &n, &err) < 0)
		return command_fail(&err);
	if (settings_flag(s, OPT_JSON))
		print_json(runs, n);
	else if (n == 0)
		puts("this repository has no runs yet; start one with 'baton run TASK'");
	for (size_t i = 0; i < n && !settings_flag(s, OPT_JSON); i++)
		print_run(&runs[i]);
	runs_free(runs, n);
	return EXIT_OK;
}
