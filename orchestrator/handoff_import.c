/*
 * handoff_import.c - see handoff_import.h: what both formats have in common, and the document that is made of it.
 */
#include "orchestrator/handoff_import.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonl.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/constraints.h"

#define LINE_MAX_BYTES	((size_t)32 << 20)
#define OUTPUT_BYTES	3000
#define DOCUMENT_TOKENS 10000 /* R2 */
#define ROOM                                                                                       \
	(DOCUMENT_TOKENS - 150) /* with what telling of it costs, where something is left out */

struct import {
	struct handoff *handoff;
	const char *tool; /* NULL: no record of either was seen */
	char *cwd;
	struct json_object *files;    /* path: state, in the order of their first use */
	struct json_object *commands; /* call: command, until its result is there */
	char *last;		      /* the command that was called last */
	char *failed, *output;	      /* the command that failed last and did not pass since */
	int exit_code;
	struct import_counts counts;
};

/* ---- taking in ---- */

void import_unknown(struct import *im)
{
	im->counts.unknown++;
}

void import_head(struct import *im, const char *tool, const char *model, const char *cwd,
		 const char *branch, const char *time)
{
	struct handoff *h = im->handoff;

	im->tool = tool;
	if (model)
		handoff_set(&h->model, model);
	if (cwd && *cwd == '/') {
		handoff_set(&h->repository, cwd);
		free(im->cwd);
		im->cwd = mem_strdup(cwd);
	}
	if (branch && *branch)
		handoff_set(&h->branch, branch);
	if (time)
		handoff_set(&h->created, time);
}

static bool has_text(const struct handoff_part *part, const char *text)
{
	for (size_t i = 0; i < part->n; i++)
		if (strcmp(part->list[i].text, text) == 0)
			return true;
	return false;
}

static void add_constraints(struct import *im, const char *text, size_t n)
{
	struct constraints found = {.n = 0};

	constraints_find(text, n, &found);
	for (size_t i = 0; i < found.n; i++) {
		const char *at = text + found.list[i].at;
		struct handoff_part *part = &im->handoff->parts[HANDOFF_CONSTRAINTS];
		struct handoff_statement *s = handoff_add(im->handoff, HANDOFF_CONSTRAINTS,
							  HANDOFF_FROM_USER, at, found.list[i].n);
		handoff_set(&s->speaker, "person");
		part->n--; /* it shall not find itself */
		bool known = has_text(part, s->text);
		part->n++;
		if (known)
			handoff_remove(im->handoff, HANDOFF_CONSTRAINTS, part->n - 1);
	}
	constraints_release(&found);
}

void import_said(struct import *im, const char *text, size_t n)
{
	if (strspn(text, " \t\r\n") == n)
		return;
	if (!im->handoff->parts[HANDOFF_GOAL].n)
		handoff_add(im->handoff, HANDOFF_GOAL, HANDOFF_FROM_USER, text,
			    handoff_goal_len(text, n));
	struct handoff_statement *s =
		handoff_add(im->handoff, HANDOFF_WORDS, HANDOFF_FROM_USER, text, n);
	handoff_set(&s->speaker, "person");
	add_constraints(im, text, n);
}

void import_file(struct import *im, const char *path, enum handoff_state state)
{
	size_t n = im->cwd ? strlen(im->cwd) : 0;

	if (!path || !*path)
		return;
	if (n && strncmp(path, im->cwd, n) == 0 && path[n] == '/')
		path += n + 1;
	if (*path == '/' || *path == '~' || text_starts(path, "../"))
		return;
	if (state == HANDOFF_READ && json_has(im->files, path))
		return; /* what was done to it before counts for more */
	json_set_i64(im->files, path, state);
}

void import_command(struct import *im, const char *call, const char *command)
{
	if (!call || !command || !*command)
		return;
	json_set_str(im->commands, call, command);
	free(im->last);
	im->last = mem_strdup(command);
}

void import_result(struct import *im, const char *call, int exit_code, const char *output)
{
	const char *command = json_str(im->commands, call ? call : "", NULL);

	if (!command)
		return;
	if (exit_code != 0) {
		free(im->failed);
		free(im->output);
		im->failed = mem_strdup(command);
		im->output = mem_strdup(output);
		im->exit_code = exit_code;
	} else if (im->failed && strcmp(im->failed, command) == 0) {
		free(take_ptr(im->failed));
		free(take_ptr(im->output));
	}
	json_object_object_del(im->commands, call);
}

void import_tasks_begin(struct import *im)
{
	while (im->handoff->parts[HANDOFF_TASKS].n)
		handoff_remove(im->handoff, HANDOFF_TASKS, im->handoff->parts[HANDOFF_TASKS].n - 1);
}

void import_task(struct import *im, const char *text, bool done)
{
	struct handoff_statement *s;

	if (!text || !*text)
		return;
	s = handoff_add(im->handoff, HANDOFF_TASKS, HANDOFF_FROM_MODEL, text, strlen(text));
	s->state = done ? HANDOFF_CLAIMED : HANDOFF_OPEN;
}

/* ---- the document ---- */

static struct handoff_statement *add_record(struct handoff *h, enum handoff_part_name part,
					    const char *text)
{
	return handoff_add(h, part, HANDOFF_FROM_RECORD, text, strlen(text));
}

static void add_files(struct import *im)
{
	json_object_object_foreach (im->files, path, value) {
		enum handoff_state state = (enum handoff_state)json_object_get_int64(value);
		struct handoff_statement *s =
			add_record(im->handoff, HANDOFF_FILES, handoff_state_name(state));
		s->state = state;
		handoff_set(&s->file, path);
	}
}

static void add_failure(struct import *im)
{
	AUTO_BUF struct buf output = BUF_INIT;
	struct handoff_statement *s;

	if (!im->failed)
		return;
	AUTO_FREE char *text =
		mem_printf("the last command that failed ended with exit code %d", im->exit_code);
	s = add_record(im->handoff, HANDOFF_FAILURES, text);
	s->state = HANDOFF_FAILED;
	s->has_exit = true;
	s->exit_code = im->exit_code;
	handoff_set(&s->command, im->failed);
	if (!im->output || !*im->output)
		return;
	text_clip(&output, im->output, strlen(im->output), OUTPUT_BYTES, NULL);
	handoff_setn(&s->output, buf_str(&output), output.len);
}

/* The file that was changed last, or the command that was called last. */
static void add_point(struct import *im)
{
	const char *file = NULL;
	struct handoff_statement *s;

	json_object_object_foreach (im->files, path, value) {
		if (json_object_get_int64(value) == HANDOFF_CHANGED)
			file = path;
	}
	if (!file && !im->last)
		return;
	s = add_record(im->handoff, HANDOFF_POINT, "where the session stood when it ended");
	if (file)
		handoff_set(&s->file, file);
	if (im->last)
		handoff_set(&s->command, im->last);
}

static const struct handoff_statement *open_task(const struct handoff *h)
{
	const struct handoff_part *tasks = &h->parts[HANDOFF_TASKS];

	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->list[i].state == HANDOFF_OPEN)
			return &tasks->list[i];
	return NULL;
}

/* A rule has no opinion, but a command that fails is where one looks first. */
static void add_first_action(struct import *im)
{
	const struct handoff_statement *task = open_task(im->handoff);

	if (im->failed) {
		struct handoff_statement *s =
			add_record(im->handoff, HANDOFF_FIRST_ACTION,
				   "run the command that failed last, and see why");
		handoff_set(&s->command, im->failed);
	} else if (task) {
		AUTO_FREE char *text = mem_printf("the first open task: `%s`", task->text);
		add_record(im->handoff, HANDOFF_FIRST_ACTION, text);
	}
}

static void add_missing(struct import *im)
{
	AUTO_FREE char *skipped = NULL;
	struct handoff *h = im->handoff;

	for (enum handoff_part_name part = 0; part < HANDOFF_N_PARTS; part++) {
		AUTO_FREE char *text =
			mem_printf("%s: the session file does not tell", handoff_part_key(part));
		if ((handoff_part_flags(part) & HANDOFF_REQUIRED) && !h->parts[part].n)
			handoff_set(&add_record(h, HANDOFF_MISSING, text)->id,
				    handoff_part_key(part));
	}
	add_record(h, HANDOFF_MISSING,
		   "what was finished, decided and ruled out: no model had a word in this");
	if (!im->counts.unknown && !im->counts.bad)
		return;
	skipped = mem_printf(
		"%lld records of unknown types and %lld lines that could not be read were skipped",
		(long long)im->counts.unknown, (long long)im->counts.bad);
	add_record(h, HANDOFF_MISSING, skipped);
}

/* The oldest: about half of what is too much, since they differ in length. */
static int64_t take_constraints(struct handoff *h, int64_t tokens)
{
	size_t n = h->parts[HANDOFF_CONSTRAINTS].n;
	int64_t excess = tokens - ROOM;
	size_t some = MAX((size_t)((int64_t)n * excess / tokens / 2), (size_t)1);

	for (size_t i = 0; i < MIN(some, n - 1); i++)
		handoff_remove(h, HANDOFF_CONSTRAINTS, 0);
	return handoff_bound(h, ROOM, NULL, NULL);
}

/* A session of weeks may lay down more than a document has room for. The newest stay; where the others are is said. */
static void bound_constraints(struct import *im, const char *path)
{
	struct handoff *h = im->handoff;
	struct handoff_part *constraints = &h->parts[HANDOFF_CONSTRAINTS];
	size_t all = constraints->n, words = h->parts[HANDOFF_WORDS].n;
	int64_t tokens = handoff_bound(h, ROOM, NULL, NULL);

	while (tokens > ROOM && constraints->n > 1)
		tokens = take_constraints(h, tokens);
	if (constraints->n == all && h->parts[HANDOFF_WORDS].n == words)
		return;
	AUTO_FREE char *whole = realpath(path, NULL);
	AUTO_FREE char *text = mem_printf(
		"constraints: the %zu oldest of %zu were left out for want of room; read "
		"them in the messages of the user in %s",
		all - constraints->n, all, whole ? whole : path);
	if (constraints->n < all)
		add_record(h, HANDOFF_MISSING, text);
	handoff_set(&add_record(h, HANDOFF_LOGS,
				"The session that this was made from, with all that was said.")
			     ->log,
		    whole ? whole : path);
}

static void finish(struct import *im, const char *path)
{
	struct handoff *h = im->handoff;
	AUTO_FREE char *why = mem_printf("made from a session of %s", im->tool);

	h->facts_only = true;
	handoff_set(&h->reason, "import");
	handoff_set(&h->why, why);
	add_failure(im);
	add_files(im);
	add_point(im);
	add_first_action(im);
	add_missing(im);
	bound_constraints(im, path);
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct import *im = arg;

	if (!import_codex(im, record) && !import_claude(im, record))
		import_unknown(im);
	return 0;
}

int handoff_import(const char *path, struct handoff **ret, struct import_counts *ret_counts,
		   struct err *err)
{
	struct import im = {.handoff = handoff_new(),
			    .files = json_object_new_object(),
			    .commands = json_object_new_object()};
	struct jsonl_stats stats = {0};
	int rc = jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &im, &stats, err);

	im.counts.records = stats.records;
	im.counts.bad = stats.bad_lines;
	if (rc == 0 && !im.tool)
		rc = err_set(err, ERR_INVALID, "'%s' is no session file of Claude Code or Codex",
			     path);
	if (rc == 0) {
		finish(&im, path);
		*ret = take_ptr(im.handoff);
		*ret_counts = im.counts;
	}
	handoff_free(im.handoff);
	json_object_put(im.files);
	json_object_put(im.commands);
	free(im.cwd);
	free(im.last);
	free(im.failed);
	free(im.output);
	return rc;
}
