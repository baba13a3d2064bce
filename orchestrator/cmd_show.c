/*
 * cmd_show.c - `baton show [RUN[/AGENT]]`: the report of a run, or what is known of one that has
 * none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/review/markdown.h"
#include "orchestrator/runs.h"

#define REPORT_MAX (64 << 20)

static void print_worktree(const struct past_agent *agent)
{
	if (agent->adopted)
		command_say("  worktree: %s, adopted by you%s\n", agent->adopted,
			    file_exists(agent->adopted) ? "" : " and gone");
	else if (agent->worktree_made && (agent->kept || !agent->commit))
		command_say("  worktree: %s%s%s\n", agent->worktree,
			    agent->kept ? "\n  kept: " : "", agent->kept ? agent->kept : "");
}

static void print_agent(const struct past_run *run, const struct past_agent *agent)
{
	command_say("%s  %s  %s  %lld round%s\n", agent->name, agent->role ? agent->role : "?",
		    agent->status, (long long)agent->rounds, agent->rounds == 1 ? "" : "s");
	if (agent->reason)
		command_say("  reason: %s\n", agent->reason);
	if (agent->branch)
		command_say("  branch: %s%s%.12s\n", agent->branch, agent->commit ? " at " : "",
			    agent->commit ? agent->commit : "");
	print_worktree(agent);
	if (agent->generation > 1)
		command_say("  generations: %lld\n", (long long)agent->generation);
	command_say("  transcript: %s/agents/%s/%lld/transcript.jsonl\n", run->dir, agent->name,
		    (long long)agent->generation);
}

static struct json_object *agent_json(const struct past_run *run, const struct past_agent *agent)
{
	struct json_object *doc = json_object_new_object();
	AUTO_FREE char *transcript = mem_printf("%s/agents/%s/%lld/transcript.jsonl", run->dir,
						agent->name, (long long)agent->generation);

	json_set_str(doc, "run", run->id);
	json_set_str(doc, "agent", agent->name);
	json_set_str(doc, "role", agent->role);
	json_set_str(doc, "status", agent->status);
	json_set_str(doc, "reason", agent->reason);
	json_set_i64(doc, "rounds", agent->rounds);
	json_set_i64(doc, "generation", agent->generation);
	json_set_str(doc, "branch", agent->branch);
	json_set_str(doc, "commit", agent->commit);
	json_set_str(doc, "worktree", agent->adopted ? agent->adopted : agent->worktree);
	json_set_bool(doc, "adopted", agent->adopted != NULL);
	json_set_str(doc, "kept", agent->kept);
	json_set_str(doc, "transcript", transcript);
	return doc;
}

/* The report as it was written, and what the user did since. */
static int print_report(const struct past_run *run, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, "report.md");
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf plain = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;

	if (file_read(AT_FDCWD, path, REPORT_MAX, &text, err) < 0)
		return -1;
	markdown_plain(&plain, buf_str(&text));
	text_printable(&clean, buf_str(&plain), plain.len, false);
	command_write(buf_str(&clean), clean.len);
	for (size_t i = 0; i < run->n_agents; i++) {
		if (run->agents[i].adopted)
			command_say("The worktree of %s is yours since you adopted it: %s\n",
				    run->agents[i].name, run->agents[i].adopted);
	}
	return 0;
}

static int print_json(const struct past_run *run, struct err *err)
{
	AUTO_FREE char *path = file_join(run->dir, "report.json");
	AUTO_JSON struct json_object *doc = NULL;

	if (json_parse_file(path, REPORT_MAX, &doc, err) < 0)
		return -1;
	struct json_object *adopted = past_run_adopted(run);
	if (adopted)
		json_set(doc, "adopted", adopted);
	command_print_json(doc);
	return 0;
}

static void print_folded(const struct past_run *run)
{
	command_say("# run %s: %s\n\n", run->id, run->status);
	if (run->alive)
		command_say(
			"It is running as process %d; 'baton stop %s' ends it in good order.\n\n",
			(int)run->pid, run->id);
	else if (run->resumable)
		command_say("It can go on: baton resume %s\n\n", run->id);
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
	int rc = 0;

	if (runs_find(s, settings_arg(s, 0), false, &run, &agent, &err) < 0)
		return command_fail(&err);
	if (agent && json) {
		AUTO_JSON struct json_object *doc = agent_json(&run, agent);
		command_print_json(doc);
	} else if (agent) {
		print_agent(&run, agent);
	} else if (json) {
		rc = print_json(&run, &err);
	} else if (print_report(&run, &err) < 0) {
		print_folded(&run);
	}
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
