/*
 * handoff_make.c - see handoff_make.h.
 *
 * Nothing is asked of anybody and nothing waits: this also runs when the window is full, the model is gone or the money
 * spent. Everything is bounded here, roughly, and to the token by handoff_bound.
 */
#include "agent/handoff_make.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/context/about.h"
#include "agent/handoff_carry.h"
#include "agent/state.h"
#include "agent/tools/tool.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "handoff/document_vague.h"

#define WORDS_MOST   200
#define FILES_MOST   60
#define PASSED_MOST  20
#define OUTPUT_BYTES 3000
#define SAID_MOST    12
#define NAME_TOKENS  250 /* of each kind */
#define FACT_INDENT  4

static struct handoff_statement *add(struct handoff *h, enum handoff_part_name part,
				     enum handoff_origin origin, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static struct handoff_statement *add(struct handoff *h, enum handoff_part_name part,
				     enum handoff_origin origin, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	return handoff_add(h, part, origin, text, strlen(text));
}

static void set_exit(struct handoff_statement *s, int code)
{
	s->has_exit = true;
	s->exit_code = code;
}

/* ---- the user ---- */

static enum handoff_origin origin_of(const struct word *w)
{
	return w->speaker == SPEAKER_PERSON ? HANDOFF_FROM_USER : HANDOFF_FROM_RECORD;
}

static void add_spoken(struct handoff *h, enum handoff_part_name part, const struct word *w,
		       size_t at, size_t n)
{
	struct handoff_statement *s = handoff_add(h, part, origin_of(w), w->text + at, n);

	handoff_set(&s->speaker, w->name ? w->name : speaker_name(w->speaker));
	s->generation = w->generation;
	s->uid = w->uid;
}

static void add_goal(struct handoff *h, const struct user_words *words)
{
	const struct word *w;

	if (!words->n)
		return;
	w = &words->list[0];
	add_spoken(h, HANDOFF_GOAL, w, 0, handoff_goal_len(w->text, w->n));
}

static void add_words(struct handoff *h, const struct user_words *words)
{
	size_t skipped = words->n > WORDS_MOST ? words->n - WORDS_MOST : 0;

	add_goal(h, words);
	for (size_t i = 0; i < words->n; i++) {
		const struct word *w = &words->list[i];

		for (size_t k = 0; k < w->constraints.n; k++)
			add_spoken(h, HANDOFF_CONSTRAINTS, w, w->constraints.list[k].at,
				   w->constraints.list[k].n);
		if (i == 0 || i > skipped)
			add_spoken(h, HANDOFF_WORDS, w, 0, w->n);
	}
	if (skipped)
		add(h, HANDOFF_MISSING, HANDOFF_FROM_RECORD,
		    "words: %zu older messages are in the transcripts only", skipped);
}

/* ---- what was done ---- */

static const struct fact_file *newest_file(const struct facts *facts, bool changed)
{
	const struct fact_file *found = NULL;

	for (size_t i = 0; i < facts->n_files; i++) {
		const struct fact_file *f = &facts->files[i];

		if (f->changed == changed && (!found || f->round >= found->round))
			found = f;
	}
	return found;
}

static const struct fact_command *newest_command(const struct facts *facts, bool failing)
{
	const struct fact_command *found = NULL;

	for (size_t i = 0; i < facts->n_commands; i++) {
		const struct fact_command *c = &facts->commands[i];

		if ((!failing || c->failure) && (!found || c->round >= found->round))
			found = c;
	}
	return found;
}

/* The newest `most` of these: the round from which on they are taken. */
static int64_t passed_since(const struct facts *facts)
{
	size_t n = 0, i = facts->n_commands;

	while (i > 0 && n < PASSED_MOST)
		n += !facts->commands[--i].failure;
	return i ? facts->commands[i].round : 0;
}

static void add_finished(struct handoff *h, const struct agent *a)
{
	const struct facts *facts = &a->facts;
	int64_t since = passed_since(facts);

	for (size_t i = 0; i < facts->n_commands; i++) {
		const struct fact_command *c = &facts->commands[i];
		struct handoff_statement *s;

		if (c->failure || c->round < since)
			continue;
		s = add(h, HANDOFF_FINISHED, HANDOFF_FROM_RECORD,
			"`%s` succeeded when it ran last (round %" PRId64 ").", c->command,
			c->round);
		handoff_set(&s->command, c->command);
		set_exit(s, 0);
		s->state = HANDOFF_VERIFIED;
	}
}

static void add_plan(struct handoff *h, const struct plan *plan)
{
	int number = 0;

	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_entry *e = &plan->list[i];
		AUTO_FREE char *id = NULL;
		struct handoff_statement *s;

		if (!e->item)
			continue;
		id = mem_printf("plan-%d", ++number);
		s = add(h, e->done ? HANDOFF_FINISHED : HANDOFF_TASKS, HANDOFF_FROM_MODEL, "%s",
			e->text);
		s->state = e->done ? HANDOFF_CLAIMED : HANDOFF_OPEN;
		handoff_set(&s->id, id);
	}
}

static void add_lines(struct handoff *h, const struct working_memory *m, enum memory_field field,
		      enum handoff_part_name part, enum handoff_state state)
{
	const struct memory_lines *l = &m->fields[field];

	for (size_t i = 0; i < l->n; i++)
		add(h, part, HANDOFF_FROM_MODEL, "%s", l->list[i])->state = state;
}

static void add_memory(struct handoff *h, const struct working_memory *m)
{
	add_plan(h, &m->plan);
	add_lines(h, m, MEMORY_PENDING, HANDOFF_TASKS, HANDOFF_OPEN);
	add_lines(h, m, MEMORY_REJECTED, HANDOFF_RULED_OUT, HANDOFF_NO_STATE);
	add_lines(h, m, MEMORY_DECISIONS, HANDOFF_DECISIONS, HANDOFF_NO_STATE);
	add_lines(h, m, MEMORY_ERRORS, HANDOFF_RISKS, HANDOFF_NO_STATE);
}

/* A sentence that says nothing would have the whole document refused, and nobody could mend it. */
static bool has_sense(const struct fact_saying *s)
{
	return !vague_text(s->text);
}

static void add_decisions(struct handoff *h, const struct facts *facts)
{
	size_t n = 0, from = facts->n_sayings;

	while (from > 0 && n < SAID_MOST)
		n += facts->sayings[--from].kind == SAID_DECISION;
	for (size_t i = from; i < facts->n_sayings; i++)
		if (facts->sayings[i].kind == SAID_DECISION && has_sense(&facts->sayings[i]))
			add(h, HANDOFF_DECISIONS, HANDOFF_FROM_MODEL, "%s", facts->sayings[i].text);
}

/* What was announced, as long as the command that it names did not run. Behind the plan, which was made with more thought. */
static void add_next(struct handoff *h, const struct facts *facts)
{
	for (size_t i = 0; i < facts->n_sayings; i++) {
		const struct fact_saying *said = &facts->sayings[i];
		struct handoff_statement *s;

		if (said->kind != SAID_NEXT || !has_sense(said) ||
		    handoff_was_done(facts, said->text, said->round))
			continue;
		s = add(h, HANDOFF_TASKS, HANDOFF_FROM_MODEL, "%s", said->text);
		s->state = HANDOFF_OPEN;
		handoff_set(&s->id, HANDOFF_NEXT_ID);
	}
}

/* A line for each kind; the one with a name from before, too (handoff_carry). */
static void add_names(struct handoff *h, const struct facts *facts)
{
	AUTO_BUF struct buf lines = BUF_INIT;

	facts_write_names(facts, NAME_TOKENS, &lines);
	for (const char *at = buf_str(&lines); *at;) {
		size_t n = strcspn(at, "\n");

		handoff_add(h, HANDOFF_NAMES, HANDOFF_FROM_RECORD, at, n);
		at += n + (at[n] == '\n');
	}
}

/* ---- what fails ---- */

/* `results:NAME` in the newest result of this command. Caller frees; NULL. */
static char *find_log(const struct agent *a, const char *command)
{
	const struct conversation *c = &a->conversation;

	for (size_t i = c->n; i > 1; i--) {
		const struct message *calls = c->messages[i - 2], *results = c->messages[i - 1];

		for (size_t k = 0; k < calls->n_blocks; k++) {
			const struct block *b = &calls->blocks[k];
			AUTO_FREE char *target = NULL;
			const struct block *r;
			const char *at;

			if (b->kind != BLOCK_TOOL_CALL || about_kind(b->name) != ABOUT_RUN)
				continue;
			target = about_target(b);
			if (!target || strcmp(target, command) != 0 ||
			    !(r = validate_find_result(results, b->id)))
				continue;
			at = strstr(r->text, "results:");
			return at ? mem_strndup(at, strcspn(at, " ,;)]\n\t")) : NULL;
		}
	}
	return NULL;
}

/* The lines of a failure without the blanks that facts.c shows them with: they stand in a fence. */
static void set_output(struct handoff_statement *s, const char *failure)
{
	size_t n = strlen(failure);
	AUTO_BUF struct buf out = BUF_INIT;

	n = text_floor(failure, n, MIN(n, (size_t)OUTPUT_BYTES));
	for (const char *at = failure, *end = failure + n; at < end;) {
		const char *lf = memchr(at, '\n', (size_t)(end - at)), *stop = lf ? lf : end;

		for (int i = 0; i < FACT_INDENT && at < stop && *at == ' '; i++)
			at++;
		buf_adds(&out, out.len ? "\n" : "");
		buf_add(&out, at, (size_t)(stop - at));
		at = stop + 1;
	}
	handoff_setn(&s->output, buf_str(&out), out.len);
}

static void add_failure(struct handoff *h, const struct agent *a, const struct fact_command *c)
{
	AUTO_FREE char *log = find_log(a, c->command);
	struct handoff_statement *s =
		add(h, HANDOFF_FAILURES, HANDOFF_FROM_RECORD,
		    "`%s` fails with exit code %d (run %d time%s, last in round %" PRId64
		    "); run it again to see it.",
		    c->command, c->exit_code, c->times, c->times == 1 ? "" : "s", c->round);

	handoff_set(&s->command, c->command);
	set_exit(s, c->exit_code);
	set_output(s, c->failure);
	handoff_set(&s->log, log);
	if (!log)
		return;
	s = add(h, HANDOFF_LOGS, HANDOFF_FROM_RECORD, "Output of `%s`.", c->command);
	handoff_set(&s->log, log);
	handoff_set(&s->command, c->command);
}

static void add_failures(struct handoff *h, const struct agent *a)
{
	for (size_t i = 0; i < a->facts.n_commands; i++)
		if (a->facts.commands[i].failure)
			add_failure(h, a, &a->facts.commands[i]);
}

/* ---- where it stands ---- */

static void add_point(struct handoff *h, const struct facts *facts)
{
	const struct fact_file *changed = newest_file(facts, true),
			       *read = newest_file(facts, false);
	const struct fact_file *file = changed ? changed : read;
	const struct fact_command *command = newest_command(facts, false);
	AUTO_BUF struct buf text = BUF_INIT;
	struct handoff_statement *s;

	if (!file && !command)
		return;
	if (file)
		buf_addf(&text, "The last file that was %s is %s (round %" PRId64 ").",
			 changed ? "changed" : "read", file->path, file->round);
	if (command)
		buf_addf(&text, "%sThe last command was `%s` (round %" PRId64 ", exit code %d).",
			 file ? " " : "", command->command, command->round, command->exit_code);
	s = handoff_add(h, HANDOFF_POINT, HANDOFF_FROM_RECORD, text.data, text.len);
	handoff_set(&s->file, file ? file->path : NULL);
	if (!command)
		return;
	handoff_set(&s->command, command->command);
	set_exit(s, command->exit_code);
}

static const char *open_task(const struct handoff *h)
{
	const struct handoff_part *tasks = &h->parts[HANDOFF_TASKS];

	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->list[i].state == HANDOFF_OPEN)
			return tasks->list[i].text;
	return NULL;
}

/* In this order: what fails, what is open, where work was done. */
static void add_first_action(struct handoff *h, const struct facts *facts)
{
	const struct handoff_part *failures = &h->parts[HANDOFF_FAILURES];
	const struct fact_command *newest = newest_command(facts, true);
	const struct fact_file *file = newest_file(facts, true);
	const char *failing = newest	    ? newest->command
			      : failures->n ? failures->list[failures->n - 1].command
					    : NULL;
	const char *task = open_task(h);
	struct handoff_statement *s;

	if (!file)
		file = newest_file(facts, false);
	if (failing) {
		s = add(h, HANDOFF_FIRST_ACTION, HANDOFF_FROM_RECORD,
			"Run `%s` and mend what it shows.", failing);
		handoff_set(&s->command, failing);
	} else if (task) {
		s = add(h, HANDOFF_FIRST_ACTION, HANDOFF_FROM_RECORD,
			"Do the first open item of the plan: %s", task);
	} else if (file) {
		s = add(h, HANDOFF_FIRST_ACTION, HANDOFF_FROM_RECORD,
			"Read %s, which was in work last, compare it with the goal, and go on "
			"there.",
			file->path);
	} else {
		return;
	}
	if (file && (failing || !task))
		handoff_set(&s->file, file->path);
}

static void add_files(struct handoff *h, const struct facts *facts)
{
	size_t from = facts->n_files > FILES_MOST ? facts->n_files - FILES_MOST : 0;

	for (size_t i = 0; i < facts->n_files; i++) {
		const struct fact_file *f = &facts->files[i];
		struct handoff_statement *s;

		if (i < from && !f->changed)
			continue;
		s = add(h, HANDOFF_FILES, HANDOFF_FROM_RECORD, "%s in round %" PRId64,
			f->changed ? "changed" : "read", f->round);
		handoff_set(&s->file, f->path);
		s->state = f->changed ? HANDOFF_CHANGED : HANDOFF_READ;
	}
}

static void add_jobs(struct handoff *h, const struct agent *a)
{
	AUTO_BUF struct buf lines = BUF_INIT;

	if (!a->toolbox.context)
		return;
	tool_context_list_jobs(a->toolbox.context, &lines);
	for (const char *at = buf_str(&lines); *at;) {
		size_t n = strcspn(at, "\n");

		if (n)
			add(h, HANDOFF_JOBS, HANDOFF_FROM_RECORD,
			    "%.*s (ends with this generation: start it again if it is needed)",
			    (int)n, at)
				->state = HANDOFF_OPEN;
		at += n + (at[n] == '\n');
	}
}

/* ---- the document ---- */

static void set_head(struct handoff *h, const struct agent *a, enum handoff_reason reason,
		     const char *why)
{
	const struct agent_settings *s = a->settings;
	AUTO_FREE char *model = mem_printf("%s/%s", s->model->provider, s->model->name);
	char stamp[CLOCK_STAMP_SIZE];

	handoff_set(&h->run, s->run);
	handoff_set(&h->agent, s->agent);
	handoff_set(&h->role, s->role);
	handoff_set(&h->model, model);
	handoff_set(&h->reason, handoff_reason_name(reason));
	handoff_set(&h->why, why);
	handoff_set(&h->created, clock_stamp(clock_wall_ms(), stamp));
	handoff_set(&h->repository, s->repository);
	handoff_set(&h->branch, s->branch);
	handoff_set(&h->base, s->base);
	h->generation = s->generation;
	h->facts_only = true;
}

static void name_missing(struct handoff *h)
{
	static const struct {
		enum handoff_part_name part;
		const char *why;
	} rows[] = {
		{HANDOFF_DONE_MEANS, "done_means: the goal's own words say it; no model was asked"},
		{HANDOFF_POINT, "point: no file was touched and no command run yet"},
		{HANDOFF_RULED_OUT, "ruled_out: nothing was noted; no model was asked"},
		{HANDOFF_FIRST_ACTION, "first_action: nothing was begun, so begin with the goal"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!h->parts[rows[i].part].n)
			add(h, HANDOFF_MISSING, HANDOFF_FROM_RECORD, "%s", rows[i].why);
}

/* Rounds are counted in each generation anew, so what names one says of which. */
static void name_generation(struct handoff *h, int64_t generation)
{
	static const enum handoff_part_name parts[] = {HANDOFF_FINISHED, HANDOFF_FAILURES,
						       HANDOFF_POINT, HANDOFF_FILES};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (size_t k = 0; k < h->parts[parts[i]].n; k++) {
			struct handoff_statement *s = &h->parts[parts[i]].list[k];

			if (s->origin == HANDOFF_FROM_RECORD && !s->generation)
				s->generation = generation;
		}
}

struct handoff *handoff_make(struct agent *a, enum handoff_reason reason, const char *why)
{
	struct handoff *h = handoff_new();

	facts_take(&a->facts, &a->conversation);
	set_head(h, a, reason, why);
	add_words(h, &a->words);
	add_finished(h, a);
	add_memory(h, &a->memory);
	add_next(h, &a->facts);
	add_decisions(h, &a->facts);
	add_failures(h, a);
	add_files(h, &a->facts);
	add_names(h, &a->facts);
	add_point(h, &a->facts);
	name_generation(h, a->settings->generation);
	if (a->handoff)
		handoff_carry(h, a->handoff, &a->facts);
	add_first_action(h, &a->facts);
	add_jobs(h, a);
	name_missing(h);
	return h;
}
