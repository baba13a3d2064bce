/*
 * cmd_context.c - `baton context [RUN[/AGENT]]`: how an agent's window is filled (W5, H15, H17).
 *
 * Two records tell it: the newest `request` and `usage` of the agent's transcript (thresholds and categories as
 * they were when it left, and as the provider counted them), and the run's journal (compactions and what became
 * of them, cache, tokens, money). So it works at any time, also while the agent works, and asks nobody. The form
 * of --json is docs/context.md's.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/command.h"
#include "orchestrator/record.h"
#include "orchestrator/runs.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define BAR_CELLS      60
#define COMPACTIONS    5 /* the newest are listed */
#define JSON_VERSION   1

struct first_token { /* answers of one kind, and how long each took to begin */
	int64_t n, timed, sum_ms;
};

struct facts {
	const char *agent;
	struct json_object *request;	 /* newest; NULL */
	struct json_object *usage;	 /* newest with counts; NULL */
	struct json_object *budget;	 /* data of the newest agent.budget; NULL */
	struct json_object *compactions; /* all, `return` put in where it is settled */
	struct first_token hit, miss;
	int64_t breaks; /* unexpected ones */
	int64_t fresh, cache_read, cache_write, output;
	double cost;
	bool priced;
};

/* ---- reading ---- */

static void keep(struct json_object **place, struct json_object *record)
{
	json_object_put(*place);
	*place = json_object_get(record);
}

/* Messages make up nearly all of a transcript and are of no interest: those lines are not parsed. */
static bool is_count(const char *line, size_t n, void *arg)
{
	return text_find_nocase(line, MIN(n, (size_t)200), "\"type\":\"request\"") ||
	       text_find_nocase(line, MIN(n, (size_t)200), "\"type\":\"usage\"");
}

static int on_transcript(struct json_object *record, int64_t offset, void *arg)
{
	struct facts *f = arg;
	const char *type = json_str(record, "type", "");

	if (strcmp(type, "request") == 0)
		keep(&f->request, record);
	else if (strcmp(type, "usage") == 0 && json_obj(record, "by"))
		keep(&f->usage, record);
	return 0;
}

static void on_compact(struct json_object *record, void *arg)
{
	struct facts *f = arg;

	json_object_array_add(f->compactions, json_object_get(record));
}

static void on_budget(struct json_object *record, void *arg)
{
	struct facts *f = arg;

	keep(&f->budget, json_obj(record, "data"));
}

static void on_cache_break(struct json_object *record, void *arg)
{
	struct facts *f = arg;

	f->breaks++;
}

static void on_settled(struct json_object *record, void *arg)
{
	struct facts *f = arg;

	f->fresh += json_i64(record, "fresh", 0);
	f->cache_read += json_i64(record, "cache_read", 0);
	f->cache_write += json_i64(record, "cache_write", 0);
	f->output += json_i64(record, "output", 0);
	f->priced |= json_has(record, "cost");
	f->cost += json_double(record, "cost", 0);
}

static void on_round(struct json_object *r, void *arg)
{
	struct facts *f = arg;
	struct json_object *data = json_obj(r, "data");
	struct first_token *kind = json_flag(data, "cache_hit", false) ? &f->hit : &f->miss;
	int64_t ms = json_i64(data, "ttft_ms", -1);

	kind->n++;
	if (ms < 0)
		return;
	kind->timed++;
	kind->sum_ms += ms;
}

/* It is about the newest compaction that has an account: those of rungs have none. */
static void on_return(struct json_object *r, void *arg)
{
	struct facts *f = arg;

	for (size_t i = json_len(f->compactions); i-- > 0;) {
		struct json_object *record = json_at(f->compactions, i);

		if (!json_has(json_obj(record, "data"), "trigger_source") ||
		    json_has(record, "return"))
			continue;
		json_set(record, "return", json_object_get(json_obj(r, "data")));
		return;
	}
}

static bool is_of_agent(struct json_object *record, void *arg)
{
	struct facts *f = arg;

	return strcmp(json_str(record, "agent", ""), f->agent) == 0;
}

static const struct record_fold agent_fold = {
	.each = is_of_agent,
	.on =
		{
			[RECORD_AGENT_COMPACT] = on_compact,
			[RECORD_AGENT_COMPACT_RETURN] = on_return,
			[RECORD_AGENT_ROUND] = on_round,
			[RECORD_AGENT_BUDGET] = on_budget,
			[RECORD_AGENT_CACHE_BREAK] = on_cache_break,
			[RECORD_CALL_SETTLED] = on_settled,
		},
};

/* The folder of the newest generation; caller frees. NULL if there is none. */
static char *newest_generation(const char *folder)
{
	long best = 0;
	struct dirent *entry;
	DIR *dir = opendir(folder);

	if (!dir)
		return NULL;
	while ((entry = readdir(dir)))
		best = MAX(best, strtol(entry->d_name, NULL, 10));
	closedir(dir);
	return best > 0 ? mem_printf("%s/%ld", folder, best) : NULL;
}

static int gather(const struct past_run *run, const struct past_agent *agent, struct facts *f,
		  struct err *err)
{
	AUTO_FREE char *folder = mem_printf("%s/agents/%s", run->dir, agent->name);
	AUTO_FREE char *generation = newest_generation(folder);
	AUTO_FREE char *transcript =
		file_join(generation ? generation : folder, "transcript.jsonl");
	AUTO_FREE char *journal = file_join(run->dir, "run.jsonl");

	*f = (struct facts){.agent = agent->name, .compactions = json_object_new_array()};
	if (journal_fold(journal, &agent_fold, f, NULL, err) < 0)
		return -1;
	if (file_exists(transcript) &&
	    jsonl_search(transcript, LINE_MAX_BYTES, is_count, on_transcript, f, NULL, err) < 0)
		return -1;
	if (!f->request)
		return err_set(err, ERR_NOT_FOUND, "agent '%s' of run '%s' has made no request yet",
			       agent->name, run->id);
	return 0;
}

static void release(struct facts *f)
{
	json_object_put(f->request);
	json_object_put(f->usage);
	json_object_put(f->budget);
	json_object_put(f->compactions);
}

/* ---- text ---- */

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* What is used, and letters where the thresholds are; a later one covers an earlier one. */
static const struct {
	const char *key;
	char mark;
} marks[] = {{"warning", 'w'}, {"collapse", 'l'}, {"compact", 'c'}, {"blocking", 'b'}};

static void print_bar(struct json_object *request)
{
	int64_t window = MAX(json_i64(request, "window", 1), 1);
	char bar[BAR_CELLS + 1];

	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = json_i64(request, "used", 0) * BAR_CELLS / window > i ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		int64_t at = json_i64(request, marks[i].key, -1) * BAR_CELLS / window;
		if (at >= 0 && at < BAR_CELLS)
			bar[at] = marks[i].mark;
	}
	command_say("  [%s]\n ", bar);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		if (json_has(request, marks[i].key))
			command_say(" %c %s %lld", marks[i].mark, marks[i].key,
				    (long long)json_i64(request, marks[i].key, 0));
	}
	command_say("\n");
}

/* `measured` may be NULL, and then there is no such column. */
static void print_counts(const char *title, struct json_object *counts,
			 struct json_object *measured, int64_t whole)
{
	if (!counts || json_object_object_length(counts) == 0)
		return;
	command_say("\n%-22s %10s %8s %10s\n", title, "estimate", "window",
		    measured ? "measured" : "");
	json_object_object_foreach (counts, key, value) {
		int64_t tokens = json_object_get_int64(value);
		int64_t real = json_i64(measured, key, 0);

		if (!tokens && !real)
			continue;
		command_say("  %-20s %10lld %6.1f %%", key, (long long)tokens,
			    percent(tokens, whole));
		if (json_has(measured, key))
			command_say(" %10lld", (long long)real);
		command_say("\n");
	}
}

static void print_compaction(struct json_object *record)
{
	struct json_object *data = json_obj(record, "data");
	struct json_object *settled = json_obj(record, "return");
	int64_t before = json_i64(data, "before", 0), after = json_i64(data, "after", 0);

	command_say("  %s  %s%s: %lld to %lld tokens, %lld freed", json_str(record, "t", "?"),
		    json_str(data, "trigger", "?"),
		    json_flag(data, "by_rule", false) ? ", without a summary" : "",
		    (long long)before, (long long)after, (long long)(before - after));
	if (json_has(data, "call_cost"))
		command_say(", the call %.4f USD", json_double(data, "call_cost", 0));
	if (json_has(settled, "return"))
		command_say(", returned %+.4f USD in %lld rounds",
			    json_double(settled, "return", 0),
			    (long long)json_i64(settled, "rounds", 0));
	command_say("\n");
}

static void print_compactions(const struct facts *f)
{
	size_t n = json_len(f->compactions);

	command_say("\nCompactions: %zu\n", n);
	for (size_t i = n > COMPACTIONS ? n - COMPACTIONS : 0; i < n; i++)
		print_compaction(json_at(f->compactions, i));
}

static void print_answers(const char *what, const struct first_token *kind)
{
	command_say(", %lld %s", (long long)kind->n, what);
	if (kind->timed)
		command_say(" (first token after %lld ms)",
			    (long long)(kind->sum_ms / kind->timed));
}

static void print_cache(const struct facts *f)
{
	int64_t input = f->fresh + f->cache_read + f->cache_write;

	command_say("Cache: %.1f %% of %lld input tokens were read from it",
		    percent(f->cache_read, input), (long long)input);
	print_answers(f->hit.n == 1 ? "hit" : "hits", &f->hit);
	print_answers(f->miss.n == 1 ? "miss" : "misses", &f->miss);
	if (f->breaks)
		command_say(", %lld unexpected break%s", (long long)f->breaks,
			    f->breaks == 1 ? "" : "s");
	command_say("\n");
	if (f->priced)
		command_say("Cost: %.4f USD\n", f->cost);
}

static void print_text(const struct past_run *run, const struct past_agent *agent,
		       const struct facts *f)
{
	struct json_object *r = f->request;
	int64_t used = json_i64(r, "used", 0), effective = json_i64(r, "effective", 0);
	int64_t window = json_i64(r, "window", 0);

	command_say("%s/%s (%s) on %s, round %lld%s\n\n", run->id, agent->name,
		    agent->role ? agent->role : "?", run->model ? run->model : "?",
		    (long long)json_i64(r, "round", 0), run->alive ? ", running" : "");
	command_say("  %lld of %lld tokens used (%.0f %%), window %lld", (long long)used,
		    (long long)effective, percent(used, effective), (long long)window);
	if (f->budget)
		command_say(", working space %lld",
			    (long long)json_i64(f->budget, "working_space", 0));
	command_say("\n");
	print_bar(r);
	print_counts("By category", json_obj(r, "by"), json_obj(f->usage, "by"), window);
	print_counts("Tool results by tool", json_obj(r, "results_by_tool"),
		     json_obj(f->usage, "results_by_tool"), window);
	print_compactions(f);
	print_cache(f);
}

/* ---- data ---- */

static void set_answers(struct json_object *doc, const char *count, const char *time,
			const struct first_token *kind)
{
	json_set_i64(doc, count, kind->n);
	if (kind->timed)
		json_set_i64(doc, time, kind->sum_ms / kind->timed);
}

static struct json_object *cache_json(const struct facts *f)
{
	struct json_object *doc = json_object_new_object();
	int64_t input = f->fresh + f->cache_read + f->cache_write;

	json_set_double(doc, "read_share", percent(f->cache_read, input) / 100);
	set_answers(doc, "hits", "hit_ttft_ms", &f->hit);
	set_answers(doc, "misses", "miss_ttft_ms", &f->miss);
	json_set_i64(doc, "unexpected_breaks", f->breaks);
	return doc;
}

static void print_json(const struct past_run *run, const struct past_agent *agent,
		       const struct facts *f)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();

	json_set_i64(doc, "version", JSON_VERSION);
	json_set_str(doc, "run", run->id);
	json_set_str(doc, "agent", f->agent);
	json_set_str(doc, "role", agent->role);
	json_set_i64(doc, "generation", agent->generation);
	json_set_str(doc, "model", run->model);
	json_set_bool(doc, "running", run->alive);
	json_set(doc, "request", json_object_get(f->request));
	json_set(doc, "usage", json_object_get(f->usage));
	json_set(doc, "budget", json_object_get(f->budget));
	json_set(doc, "compactions", json_object_get(f->compactions));
	json_set(doc, "cache", cache_json(f));
	json_set_i64(doc, "fresh", f->fresh);
	json_set_i64(doc, "cache_read", f->cache_read);
	json_set_i64(doc, "cache_write", f->cache_write);
	json_set_i64(doc, "output", f->output);
	if (f->priced)
		json_set_double(doc, "cost", f->cost);
	command_print_json(doc);
}

int cmd_context(struct settings *s)
{
	struct past_run run;
	struct past_agent *agent;
	struct facts facts;
	struct err err = ERR_INIT;

	if (runs_find(s, settings_arg(s, 0), true, &run, &agent, &err) < 0)
		return command_fail(&err);
	int rc = gather(&run, agent, &facts, &err);
	if (rc == 0 && settings_flag(s, OPT_JSON))
		print_json(&run, agent, &facts);
	else if (rc == 0)
		print_text(&run, agent, &facts);
	release(&facts);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
