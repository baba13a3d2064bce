/*
 * replay.c - see replay.h.
 *
 * One function a record type, in two tables: those of the run here, those of agents and their calls in replay_agents.c.
 * Types that are in neither say nothing about how to go on.
 * The order of records is the order in which things happened, so later ones win. What a record lacks changes nothing:
 * a journal that was cut may miss the record that should have come first.
 */
#include "orchestrator/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/record.h"
#include "orchestrator/replay_fold.h"
#include "orchestrator/settings.h"

/* ---- duplicates ---- */

/* Hashes of the lines seen so far, open addressing; 0 is no hash. */
struct seen {
	uint64_t *slots;
	size_t n, cap;
};

static bool seen_put(struct seen *seen, uint64_t hash)
{
	size_t at = hash & (seen->cap - 1);

	while (seen->slots[at] && seen->slots[at] != hash)
		at = (at + 1) & (seen->cap - 1);
	if (seen->slots[at])
		return true;
	seen->slots[at] = hash;
	seen->n++;
	return false;
}

static bool seen_before(struct seen *seen, struct json_object *record)
{
	const char *text = json_object_to_json_string_ext(record, JSON_C_TO_STRING_PLAIN);
	uint64_t hash = text_hash(text, strlen(text));

	if (seen->n * 2 >= seen->cap) {
		struct seen larger = {.cap = MAX(seen->cap * 2, (size_t)1024)};
		larger.slots = mem_array(NULL, larger.cap, sizeof(*larger.slots));
		memset(larger.slots, 0, larger.cap * sizeof(*larger.slots));
		for (size_t i = 0; i < seen->cap; i++)
			if (seen->slots[i])
				seen_put(&larger, seen->slots[i]);
		free(seen->slots);
		*seen = larger;
	}
	return seen_put(seen, hash ? hash : 1);
}

/* ---- the fold ---- */

static void part_ends(struct fold *f, int64_t last_ms)
{
	if (f->from_ms > 0 && last_ms > f->from_ms)
		f->out->elapsed_ms += last_ms - f->from_ms;
	f->from_ms = 0;
}

static void part_begins(struct fold *f, struct json_object *r)
{
	f->from_ms = clock_parse_stamp(json_str(r, "t", ""));
	f->out->finished = false;
	f->out->pid = (pid_t)json_i64(r, "pid", 0);
	if (json_obj(r, "settings"))
		replay_keep(&f->out->settings, json_obj(r, "settings"));
}

static void on_started(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	f->out->started = true;
	replay_keep(&f->out->request, r);
	part_begins(f, r);
	f->out->started_ms = f->from_ms;
}

static void on_resumed(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	part_ends(f, f->before_ms);
	f->part_ended_ms = f->before_ms;
	part_begins(f, r);
	f->out->resumes++;
}

static void on_finished(struct json_object *r, void *arg)
{
	struct fold *f = arg;
	struct replay *out = f->out;

	out->finished = true;
	out->resumable = json_flag(r, "resumable", false);
	replay_set(&out->status, json_str(r, "status", "failed"));
	replay_set(&out->reason, json_str(r, "reason", ""));
	out->exit_status = json_i64(r, "exit_status", 1);
}

/* What a person held is no time that the run worked. */
static void on_paused(struct json_object *r, void *arg)
{
	if (strcmp(json_str(r, "why", ""), "person") == 0)
		part_ends(arg, clock_parse_stamp(json_str(r, "t", "")));
}

static void on_continued(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	if (strcmp(json_str(r, "why", ""), "person") == 0)
		f->from_ms = clock_parse_stamp(json_str(r, "t", ""));
}

/* A limit that was raised while it worked is a word of the user like one at its start. */
static void on_limits(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	settings_record_limit(f->out->settings, "max-cost", json_get(r, "max_cost"));
	settings_record_limit(f->out->settings, "max-tokens", json_get(r, "max_tokens"));
}

static void on_base(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	replay_set(&f->out->base, json_str(r, "commit", NULL));
}

static void on_sharded(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	replay_keep(&f->out->sharded, r);
}

/* A resumption ends the part before it, whose last record is the one before. */
static bool on_each(struct json_object *r, void *arg)
{
	struct fold *f = arg;

	if (seen_before(f->seen, r)) {
		f->out->duplicates++;
		return false;
	}
	f->before_ms = f->out->last_ms;
	f->out->last_ms = MAX(f->out->last_ms, clock_parse_stamp(json_str(r, "t", "")));
	record_fold(&replay_agents, r, f);
	return true;
}

static const struct record_fold replay_fold = {
	.each = on_each,
	.on =
		{
			[RECORD_RUN_STARTED] = on_started,
			[RECORD_RUN_RESUMED] = on_resumed,
			[RECORD_RUN_FINISHED] = on_finished,
			[RECORD_RUN_PAUSED] = on_paused,
			[RECORD_RUN_CONTINUED] = on_continued,
			[RECORD_RUN_LIMITS] = on_limits,
			[RECORD_RUN_BASE] = on_base,
			[RECORD_REVIEW_SHARDED] = on_sharded,
		},
};

/* ---- the file ---- */

int replay_read(const char *dir, struct replay **ret, struct err *err)
{
	AUTO_FREE char *journal = file_join(dir, "run.jsonl");
	AUTO_FREE char *json = file_join(dir, "run.json");
	struct replay *out = mem_alloc(sizeof(*out));
	struct seen seen = {.cap = 0};
	struct fold fold = {.out = out, .seen = &seen};
	struct jsonl_stats stats = {0};
	struct err why = ERR_INIT;
	AUTO_JSON struct json_object *request = NULL;

	journal_fold(journal, &replay_fold, &fold, &stats, &why);
	part_ends(&fold, out->last_ms);
	struct stat st;
	out->size = stat(journal, &st) == 0 ? st.st_size : 0;
	free(seen.slots);
	replay_agents_end(out);
	out->bad_lines = stats.bad_lines;
	out->first_bad_line = stats.first_bad_line;
	if (json_parse_file(json, 4 << 20, &request, &why) == 0 && request) {
		if (!out->request)
			out->request = json_object_get(request);
		if (!out->settings)
			out->settings = json_object_get(json_obj(request, "settings"));
		if (!out->started_ms)
			out->started_ms = clock_parse_stamp(json_str(request, "started", ""));
	}
	if (out->request) {
		*ret = out;
		return 0;
	}
	replay_free(out);
	return err_set(err, ERR_NOT_FOUND,
		       "neither '%s' nor run.json beside it tells what the run was: %s", journal,
		       why.message);
}

void replay_free(struct replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; i < replay->n_agents; i++)
		replay_agent_free(replay->agents[i]);
	free(replay->agents);
	json_object_put(replay->request);
	json_object_put(replay->settings);
	json_object_put(replay->sharded);
	free(replay->base);
	free(replay->toplevel);
	free(replay->status);
	free(replay->reason);
	free(replay);
}

/* ---- questions ---- */

struct replay_agent *replay_by_key(const struct replay *replay, const char *key)
{
	for (size_t i = 0; key && i < replay->n_agents; i++) {
		if (replay->agents[i]->key && strcmp(replay->agents[i]->key, key) == 0)
			return replay->agents[i];
	}
	return NULL;
}

bool replay_number_taken(const struct replay *replay, int number)
{
	for (size_t i = 0; i < replay->n_agents; i++) {
		if (replay->agents[i]->number == number)
			return true;
	}
	return false;
}

char *replay_refusal(const struct replay *replay, const char *run)
{
	const char *command = json_str(replay->request, "command", "");

	if (strcmp(command, "run") != 0 && strcmp(command, "review") != 0)
		return mem_printf("run %s is of a command '%s' that this baton cannot go on with",
				  run, command);
	if (!replay->settings)
		return mem_printf("run %s was made by a baton that did not record its settings; "
				  "see its work with "
				  "'baton show %s', and start anew with 'baton %s'",
				  run, run, command);
	if (!replay->finished || replay->resumable)
		return NULL;
	return mem_printf("run %s has finished: %s%s%s; see 'baton show %s'. To work on from "
			  "there: 'baton run --base "
			  "BRANCH TASK' with the branch that it names",
			  run, replay->status, *replay->reason ? ", " : "", replay->reason, run);
}
