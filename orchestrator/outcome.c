/*
 * outcome.c - reports of a whole run. Runs in the parent, at the end.
 *
 * Claims of agents and what the parent saw stand side by side (X5): a report with no tool call
 * behind it is marked, a commit that was claimed but is not on the branch is named, and fails the
 * agent: ended is not done.
 */
#include "orchestrator/outcome.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/outcome_table.h"
#include "orchestrator/review/markdown.h"
#include "orchestrator/run.h"

#define ROWS_PRINTED 20

static struct json_object *usage_json(const struct budget_usage *u, bool priced)
{
	struct json_object *doc = json_object_new_object();

	json_set_i64(doc, "fresh", u->fresh);
	json_set_i64(doc, "cache_read", u->cache_read);
	json_set_i64(doc, "cache_write", u->cache_write);
	json_set_i64(doc, "output", u->output);
	json_set_i64(doc, "calls", u->calls);
	json_set_i64(doc, "estimated_calls", u->estimated_calls);
	if (priced)
		json_set_double(doc, "cost", u->cost);
	return doc;
}

/* Is what the report names one of the branch's commits? A subject may follow the id. */
static bool commit_seen(struct json_object *commits, const char *id)
{
	size_t n = strspn(id, "0123456789abcdef");

	for (size_t i = 0; n >= 7 && i < json_len(commits); i++) {
		if (strncmp(json_str(json_at(commits, i), "id", ""), id, n) == 0)
			return true;
	}
	return false;
}

/* The i-th commit that the report names, if the branch does not have it; else NULL. Of a branch that
 * could not be looked at nothing is said. */
static const char *commit_missing(const struct agent_record *agent, size_t i)
{
	const char *id = json_object_get_string(json_at(json_arr(agent->report, "commits"), i));

	return id && agent->changes && !commit_seen(json_arr(agent->changes, "commits"), id) ? id
											     : NULL;
}

char *outcome_contradiction(const struct agent_record *agent)
{
	size_t n = json_len(json_arr(agent->report, "commits"));

	for (size_t i = 0; i < n; i++) {
		const char *id = commit_missing(agent, i);
		if (id)
			return mem_printf("the report names the commit '%.60s', which is not on "
					  "the branch",
					  id);
	}
	return NULL;
}

static struct json_object *seen_json(const struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *missing = json_object_new_array();
	struct json_object *commits = json_arr(agent->changes, "commits");
	struct json_object *claimed = json_arr(agent->report, "commits");

	json_set_i64(doc, "tool_calls", agent->tool_calls);
	json_set_i64(doc, "failed_calls", agent->failed_calls);
	json_set(doc, "commits", json_object_get(commits));
	json_set(doc, "files", json_object_get(json_arr(agent->changes, "files")));
	json_set_str(doc, "diff_stat", agent->diff_stat);
	for (size_t i = 0; i < json_len(claimed); i++) {
		const char *id = commit_missing(agent, i);
		if (id)
			json_object_array_add(missing, json_object_new_string(id));
	}
	json_set(doc, "claimed_commits_missing", missing);
	/* verified: the claim's commits are there; claimed: nothing contradicts it; failed:
	 * something does. Nothing done is no contradiction (an answer may need no tool), only marked. */
	bool contradicted = json_len(missing) > 0 || agent->collect_failed;
	const char *state = !agent->report || contradicted ? "failed"
			    : json_len(claimed) > 0	   ? "verified"
							   : "claimed";
	json_set_str(doc, "state", state);
	if (agent->report && agent->tool_calls == 0)
		json_set_str(doc, "note", "the report has no tool call behind it");
	return doc;
}

static struct json_object *resets_json(const struct agent_record *agent)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < agent->resets.n; i++) {
		const struct agent_reset *r = &agent->resets.list[i];
		struct json_object *doc = json_object_new_object();
		json_set_i64(doc, "generation", r->generation);
		json_set_str(doc, "reason", r->reason);
		json_set_str(doc, "why", r->why);
		json_set_bool(doc, "progress", r->progress);
		json_set_bool(doc, "facts_only", r->facts_only);
		json_set_str(doc, "first_action", r->first_action);
		json_set_str(doc, "handoff", r->handoff);
		json_object_array_add(list, doc);
	}
	return list;
}

static struct json_object *agent_json(struct agent_record *agent)
{
	struct json_object *doc = json_object_new_object();

	json_object_put(agent->seen);
	agent->seen = seen_json(agent);
	json_set_str(doc, "agent", agent->name);
	json_set_str(doc, "role", agent->role->name);
	json_set_str(doc, "status", outcome_name(agent->status));
	json_set_str(doc, "reason", agent->reason);
	json_set_i64(doc, "rounds", agent->rounds);
	json_set_i64(doc, "generations", agent->generation);
	json_set(doc, "resets", resets_json(agent));
	json_set_str(doc, "no_reset", agent->no_reset);
	json_set_str(doc, "branch", agent->branch);
	json_set_str(doc, "commit", agent->merged_tip);
	json_set_str(doc, "worktree", agent->kept ? agent->worktree : NULL);
	json_set_str(doc, "kept", agent->kept);
	json_set(doc, "claimed", json_object_get(agent->report));
	json_set(doc, "seen", json_object_get(agent->seen));
	json_set(doc, "usage", usage_json(&agent->usage, agent->model->price.known));
	return doc;
}

static struct json_object *report_json(struct run *run)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *agents = json_object_new_array();
	AUTO_FREE char *model = mem_printf("%s/%s", run->provider, run->model_name);

	json_set_i64(doc, "version", 1);
	json_set_str(doc, "run", run->id);
	json_set_str(doc, "command", run->driver->command);
	json_set_str(doc, "task", run->task);
	json_set_str(doc, "status", run_status_name(run));
	json_set_i64(doc, "exit_status", run->exit_status);
	json_set_str(doc, "reason", run->stop_reason);
	json_set_str(doc, "model", model);
	json_set_str(doc, "box", box_level_name(run->box_level));
	json_set_i64(doc, "duration_ms", clock_mono_ms() - run->started_ms);
	json_set(doc, "usage", usage_json(&run->budget.used, run->model->price.known));
	for (size_t i = 0; i < run->agents.count; i++)
		json_object_array_add(agents, agent_json(run->agents.list[i]));
	json_set(doc, "agents", agents);
	json_set(doc, "table", outcome_table(run));
	json_set(doc, "result", json_object_get(run->report));
	return doc;
}

/* ---- Markdown ---- */

static void add_usage(struct buf *out, const struct run *run)
{
	const struct budget_usage *u = &run->budget.used;

	buf_addf(out, "%lld call%s, %lld new + %lld cached input, %lld output tokens",
		 (long long)u->calls, u->calls == 1 ? "" : "s",
		 (long long)(u->fresh + u->cache_write), (long long)u->cache_read,
		 (long long)u->output);
	if (run->model->price.known)
		buf_addf(out, ", %.4f USD", u->cost);
}

/* What was claimed beside the summary, one line each: all of it is in report.json. */
static void add_claims(struct buf *out, struct json_object *report)
{
	struct json_object *findings = json_arr(report, "findings");
	struct json_object *tests = json_arr(report, "tests");
	struct json_object *questions = json_arr(report, "questions");

	for (size_t i = 0; i < json_len(findings); i++) {
		struct json_object *f = json_at(findings, i);
		buf_adds(out, "- finding: ");
		markdown_word(out, json_str(f, "file", ""));
		if (json_has(f, "line"))
			buf_addf(out, ":%lld", (long long)json_i64(f, "line", 0));
		buf_addc(out, ' ');
		markdown_word(out, json_str(f, "claim", ""));
		buf_addc(out, '\n');
	}
	for (size_t i = 0; i < json_len(tests); i++) {
		struct json_object *t = json_at(tests, i);
		buf_adds(out, "- claimed test: ");
		markdown_word(out, json_str(t, "command", ""));
		buf_adds(out, ": ");
		markdown_word(out, json_str(t, "result", ""));
		buf_addc(out, '\n');
	}
	for (size_t i = 0; i < json_len(questions); i++) {
		buf_adds(out, "- open question: ");
		markdown_word(out, json_object_get_string(json_at(questions, i)));
		buf_addc(out, '\n');
	}
}

/* What the parent saw itself, and where the work is. */
static void add_seen(struct buf *out, const struct agent_record *agent)
{
	const char *note = json_str(agent->seen, "note", NULL);
	struct json_object *missing = json_arr(agent->seen, "claimed_commits_missing");

	buf_adds(out, "- claimed: ");
	markdown_word(out, json_str(agent->report, "status", "nothing"));
	size_t commits = json_len(json_arr(agent->seen, "commits"));
	buf_addf(out, "; seen: %lld tool call%s (%lld failed), %zu commit%s; %s\n",
		 (long long)agent->tool_calls, agent->tool_calls == 1 ? "" : "s",
		 (long long)agent->failed_calls, commits, commits == 1 ? "" : "s",
		 json_str(agent->seen, "state", ""));
	if (note)
		buf_addf(out, "- %s\n", note);
	for (size_t i = 0; i < json_len(missing); i++) {
		buf_adds(out, "- claimed, but not on the branch: ");
		markdown_word(out, json_object_get_string(json_at(missing, i)));
		buf_addc(out, '\n');
	}
	if (agent->branch && agent->merged_tip)
		buf_addf(out, "- branch: `%s` at `%.12s`\n", agent->branch, agent->merged_tip);
	if (agent->kept) {
		buf_adds(out, "- worktree kept (");
		markdown_word(out, agent->kept);
		buf_addf(out, "): `%s`\n", agent->worktree);
	}
	if (agent->diff_stat && *agent->diff_stat) {
		AUTO_BUF struct buf stat = BUF_INIT;
		text_printable(&stat, agent->diff_stat, strlen(agent->diff_stat), false);
		buf_addc(out, '\n');
		markdown_fenced(out, buf_str(&stat));
	}
}

/* R5: what was tried, when a chain of generations came to nothing, and else that there was one. */
static void add_resets(struct buf *out, const struct agent_record *agent)
{
	for (size_t i = 0; i < agent->resets.n; i++) {
		const struct agent_reset *r = &agent->resets.list[i];
		buf_addf(out, "- generation %lld ended with a handoff (", (long long)r->generation);
		markdown_word(out, r->reason ? r->reason : "?");
		buf_addf(out, "%s%s): ", r->progress ? "" : ", without progress",
			 r->facts_only ? ", facts alone" : "");
		markdown_word(out, r->why ? r->why : "");
		if (r->first_action) {
			buf_adds(out, "; to go on with: ");
			markdown_word(out, r->first_action);
		}
		buf_addc(out, '\n');
	}
	if (agent->no_reset) {
		buf_adds(out, "- no further reset: ");
		markdown_word(out, agent->no_reset);
		buf_addc(out, '\n');
	}
}

/* "done" means that it reported; what it reported may be that the task is not. The three words are
 * the report's own (handoff/report.c), so nothing else gets here. */
static const char *shown_status(const struct agent_record *agent)
{
	const char *claimed = json_str(agent->report, "status", "done");

	if (agent->status != OUTCOME_DONE)
		return outcome_name(agent->status);
	if (json_len(json_arr(agent->seen, "claimed_commits_missing")) > 0)
		return "failed";
	return strcmp(claimed, "blocked") == 0	 ? "blocked"
	       : strcmp(claimed, "partial") == 0 ? "partly done"
						 : "done";
}

static void add_agent(struct buf *out, const struct agent_record *agent)
{
	const char *summary = json_str(agent->report, "summary", NULL);

	buf_addf(out, "## %s (%s): %s\n\n", agent->name, agent->role->name, shown_status(agent));
	if (agent->reason) {
		markdown_word(out, agent->reason);
		buf_adds(out, "\n\n");
	}
	if (summary) {
		markdown_quote(out, summary);
		buf_addc(out, '\n');
	}
	add_claims(out, agent->report);
	add_resets(out, agent);
	add_seen(out, agent);
	buf_addc(out, '\n');
}

/* A table of so many agents at most; the whole stands in report.json. */
static void report_markdown(const struct run *run, size_t rows, struct buf *out)
{
	char took[32];

	buf_addf(out, "# baton %s %s: %s\n\n", run->driver->command, run->id, run_status_name(run));
	if (run->stop_reason) {
		markdown_word(out, run->stop_reason);
		buf_adds(out, "\n\n");
	}
	buf_addf(out, "%s on %s/%s, box: %s, %s; ", run->driver->command, run->provider,
		 run->model_name, box_level_name(run->box_level),
		 clock_human(clock_mono_ms() - run->started_ms, took, sizeof(took)));
	add_usage(out, run);
	buf_adds(out, "\n\n");
	AUTO_JSON struct json_object *table = outcome_table(run);
	outcome_table_markdown(out, table, rows);
	const char *body = json_str(run->report, "markdown", NULL);
	if (body)
		buf_adds(out, body);
	for (size_t i = 0; !body && i < run->agents.count; i++)
		add_agent(out, run->agents.list[i]);
}

static void write_file(struct run *run, const char *name, const struct buf *text)
{
	AUTO_FREE char *path = run_path(run, "%s", name);
	struct err err = ERR_INIT;

	if (file_write_atomic(AT_FDCWD, path, text->data, text->len, 0600, &err) < 0)
		run_output_failed(run, &err);
}

static void write_report(struct run *run)
{
	AUTO_JSON struct json_object *doc = report_json(run);
	AUTO_BUF struct buf text = BUF_INIT;

	json_write_pretty(&text, doc);
	write_file(run, "report.json", &text);
	buf_clear(&text);
	report_markdown(run, SIZE_MAX, &text);
	write_file(run, "report.md", &text);
}

/* The user's own files come last: whatever becomes of them, what was paid for is kept. That one could
 * not be written changes the outcome, so the report is written once more. */
static void write_files(struct run *run)
{
	if (run->driver->report)
		run->driver->report(run, run->driver_arg);
	write_report(run);
	enum exit_status before = run->exit_status;
	if (run->driver->deliver)
		run->driver->deliver(run, run->driver_arg);
	if (run->exit_status != before)
		write_report(run);
}

/* H21: what is worth keeping across runs. */
static void keep_memory(struct run *run)
{
	struct project_memory_saved saved;

	if (!project_memory_save(&run->memory, &saved))
		return;
	journal_add(run->journal, RECORD_MEMORY_SAVED,
		    "added:i known:i refused:i expired:i total:i lines:j", saved.added, saved.known,
		    saved.refused, saved.expired, saved.total, saved.lines);
	json_object_put(saved.lines);
}

void outcome_write(struct run *run)
{
	keep_memory(run);
	write_files(run);
	AUTO_JSON struct json_object *doc = report_json(run);
	AUTO_FREE char *path = run_path(run, "report.md");
	journal_last(run->journal);
	journal_add(
		run->journal, RECORD_RUN_FINISHED,
		"run:s status:s exit_status:i reason:s resumable:b report:s duration_ms:i usage:j "
		"cost:d",
		run->id, run_status_name(run), (int64_t)run->exit_status, run->stop_reason,
		(int)run_is_resumable(run), path, clock_mono_ms() - run->started_ms,
		json_obj(doc, "usage"), run_cost(run, run->budget.used.cost));
}

void outcome_print(const struct run *run)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf out = BUF_INIT;

	if (!run->journal || settings_flag(run->settings, OPT_JSON))
		return;
	report_markdown(run, ROWS_PRINTED, &text);
	markdown_plain(&out, buf_str(&text));
	for (size_t i = 0; i < run->agents.count; i++) {
		const struct agent_record *agent = run->agents.list[i];
		/* What an agent did for another one is that one's to take over. */
		if (!agent->family.spawner && agent->merged_tip &&
		    json_len(json_arr(agent->changes, "commits")) > 0)
			buf_addf(&out, "To take the work over:  git merge %s\n", agent->branch);
	}
	if (run_is_resumable(run) && run->way_on)
		buf_addf(&out, "To go on with it:  %s\n", run->way_on);
	else if (run_is_resumable(run))
		buf_addf(&out, "To go on with it:  baton resume %s\n", run->id);
	buf_addf(&out, "Report: %s/report.md\n", run->dir);
	command_write(out.data, out.len);
}
