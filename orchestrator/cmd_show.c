/*
 * cmd_show.c - `baton show RUN[/AGENT]`: the report of a run, or what is known of one that has
 * none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"

#define REPORT_MAX (64 << 20)

static void print_text(const char *text)
{
	AUTO_BUF struct buf out = BUF_INIT;

	text_printable(&out, text, strlen(text), true);
	fputs(buf_str(&out), stdout);
}

static void print_agent(const struct past_run *run, const struct past_agent *agent)
{
	printf("%s  %s  %s  %lld rounds\n", agent->name, agent->role ? agent->role : "?",
	       agent->status, (long long)agent->rounds);
	if (agent->reason) {
		fputs("  reason: ", stdout);
		print_text(agent->reason);
		putchar('\n');
	}
	if (agent->branch)
		printf("  branch: %s%s%.12s\n", agent->branch, agent->commit ? " at " : "",
		       agent->commit ? agent->commit : "");
	if (agent->worktree_made && (agent->kept || !agent->commit))
		printf("  worktree: %s%s%s\n", agent->worktree, agent->kept ? "\n  kept: " : "",
		       agent->kept ? agent->kept : "");
	printf("  transcript: %s/agents/%s/1/transcript.jsonl\n", run->dir, agent->name);
}

static int print_report(const struct past_run *run, const char *name, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, name);
	AUTO_BUF struct buf text = BUF_INIT;

	if (file_read(AT_FDCWD, path, REPORT_MAX, &text, err) < 0)
		return -1;
	fwrite(text.data, 1, text.len, stdout);
	return 0;
}

static void print_folded(const struct past_run *run)
{
	printf("# run %s: %s\n\n", run->id, run->status);
	if (run->alive)
		printf("It is running as process %d; 'baton stop %s' ends it in good order.\n\n",
		       (int)run->pid, run->id);
	for (size_t i = 0; i < run->n_agents; i++)
		print_agent(run, &run->agents[i]);
	if (run->bad_lines)
		printf("%lld lines of its journal are damaged and were skipped.\n",
		       (long long)run->bad_lines);
}

int cmd_show(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct err err = ERR_INIT;
	bool json = settings_flag(s, OPT_JSON);

	if (runs_find(s, settings_arg(s, 0), false, &run, &agent, &err) < 0)
		return command_fail(&err);
	int status = EXIT_OK;
	if (agent)
		print_agent(&run, agent);
	else if (print_report(&run, json ? "report.json" : "report.md", &err) < 0) {
		if (json)
			status = command_fail(&err);
		else
			print_folded(&run);
	}
	run_release(&run);
	return status;
}
