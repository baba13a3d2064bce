/*
 * cmd_context.c - `baton context [RUN[/AGENT]]`: how an agent's window is filled (W5).
 *
 * Two records tell it: the newest `request` of the agent's transcript (thresholds and categories as they
 * were when it left), and the run's journal (compactions, tokens, money). So it works at any time, also
 * while the agent works, and asks nobody.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "orchestrator/command.h"
#include "orchestrator/runs.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define BAR_CELLS      60
#define COMPACTIONS    5 /* the newest are listed */

struct facts {
	const char *agent;
	struct json_object *request;	 /* newest; NULL */
	struct json_object *compactions; /* all */
	int64_t fresh, cache_read, cache_write, output;
	double cost;
	bool priced;
};

static int on_transcript(struct json_object *record, int64_t offset, void *arg)
{
	struct facts *f = arg;

	if (strcmp(json_str(record, "type", ""), "request") == 0) {
		json_object_put(f->request);
		f->request = json_object_get(record);
	}
	return 0;
}

static int on_journal(struct json_object *record, int64_t offset, void *arg)
{
	struct facts *f = arg;
	const char *type = json_str(record, "type", "");

	if (strcmp(json_str(record, "agent", ""), f->agent) != 0)
		return 0;
	if (strcmp(type, "agent.compact") == 0) {
		json_object_array_add(f->compactions, json_object_get(record));
	} else if (strcmp(type, "call.settled") == 0) {
		f->fresh += json_i64(record, "fresh", 0);
		f->cache_read += json_i64(record, "cache_read", 0);
		f->cache_write += json_i64(record, "cache_write", 0);
		f->output += json_i64(record, "output", 0);
		f->priced |= json_has(record, "cost");
		f->cost += json_double(record, "cost", 0);
	}
	return 0;
}

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
	if (jsonl_read(journal, 0, LINE_MAX_BYTES, on_journal, f, NULL, err) < 0)
		return -1;
	if (file_exists(transcript) &&
	    jsonl_read(transcript, 0, LINE_MAX_BYTES, on_transcript, f, NULL, err) < 0)
		return -1;
	if (!f->request)
		return err_set(err, ERR_NOT_FOUND, "agent '%s' of run '%s' has made no request yet",
			       agent->name, run->id);
	return 0;
}

static void release(struct facts *f)
{
	json_object_put(f->request);
	json_object_put(f->compactions);
}

/* ---- text ---- */

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* '#' what is used, 'w', 'c' and 'b' where warning, compact and blocking are. */
static void print_bar(struct json_object *request)
{
	static const struct {
		const char *key;
		char mark;
	} marks[] = {{"warning", 'w'}, {"compact", 'c'}, {"blocking", 'b'}};
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
	command_say("  [%s]\n", bar);
}

static void print_counts(const char *title, struct json_object *counts, int64_t whole)
{
	if (!counts || json_object_object_length(counts) == 0)
		return;
	command_say("\n%s\n", title);
	json_object_object_foreach (counts, key, value) {
		int64_t tokens = json_object_get_int64(value);

		if (tokens)
			command_say("  %-20s %10lld  %5.1f %%\n", key, (long long)tokens,
				    percent(tokens, whole));
	}
}

static void print_compactions(const struct facts *f)
{
	size_t n = json_len(f->compactions);

	command_say("\nCompactions: %zu\n", n);
	for (size_t i = n > COMPACTIONS ? n - COMPACTIONS : 0; i < n; i++) {
		struct json_object *record = json_at(f->compactions, i);
		struct json_object *data = json_obj(record, "data");

		command_say("  %s  %s%s: %lld to %lld tokens\n", json_str(record, "t", "?"),
			    json_str(data, "trigger", "?"),
			    json_flag(data, "by_rule", false) ? ", without a summary" : "",
			    (long long)json_i64(data, "before", 0),
			    (long long)json_i64(data, "after", 0));
	}
}

static void print_text(const struct past_run *run, const struct past_agent *agent,
		       const struct facts *f)
{
	struct json_object *r = f->request;
	int64_t used = json_i64(r, "used", 0), effective = json_i64(r, "effective", 0);
	int64_t input = f->fresh + f->cache_read + f->cache_write;

	command_say("%s/%s (%s) on %s, round %lld\n\n", run->id, agent->name,
		    agent->role ? agent->role : "?", run->model ? run->model : "?",
		    (long long)json_i64(r, "round", 0));
	command_say("  %lld of %lld tokens used (%.0f %%), window %lld\n", (long long)used,
		    (long long)effective, percent(used, effective),
		    (long long)json_i64(r, "window", 0));
	print_bar(r);
	command_say("  w warning %lld, c compact %lld, b blocking %lld\n",
		    (long long)json_i64(r, "warning", 0), (long long)json_i64(r, "compact", 0),
		    (long long)json_i64(r, "blocking", 0));
	print_counts("By category, estimated:", json_obj(r, "by"), json_i64(r, "window", 0));
	print_counts("Tool results by tool:", json_obj(r, "results_by_tool"),
		     json_i64(r, "window", 0));
	print_compactions(f);
	command_say("Cache: %.1f %% of %lld input tokens were read from it\n",
		    percent(f->cache_read, input), (long long)input);
	if (f->priced)
		command_say("Cost: %.4f USD\n", f->cost);
}

static void print_json(const struct past_run *run, const struct facts *f)
{
	AUTO_JSON struct json_object *doc = json_object_new_object();

	json_set_str(doc, "run", run->id);
	json_set_str(doc, "agent", f->agent);
	json_set(doc, "request", json_object_get(f->request));
	json_set(doc, "compactions", json_object_get(f->compactions));
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
		print_json(&run, &facts);
	else if (rc == 0)
		print_text(&run, agent, &facts);
	release(&facts);
	run_release(&run);
	return rc < 0 ? command_fail(&err) : EXIT_OK;
}
