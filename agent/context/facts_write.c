/*
 * facts_write.c - the text of the facts, within a number of tokens.
 *
 * Each part has a share of the tokens; what one part does not use the next one may. Within a part
 * resample.h chooses: near-duplicates go (the same command with another number), then what the task names, then
 * what is newest.
 */
#include "agent/context/facts.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/context/resample.h"
#include "base/memory.h"
#include "base/text.h"

#define COMMAND_SIMILAR 85
#define EXACT		100 /* two paths that differ are two files */

#define NAMES_SHARE	10 /* per cent of the tokens, each kind */
#define NAMED_OFTEN	3  /* more than that says nothing more */

static const char heading[] = "On record from the calls and results of this conversation, kept by "
			      "rule; where a summary says "
			      "something else, this holds:\n";

/* Lines of one part, each an item. */
struct part {
	struct resample_item *items;
	char **texts;
	size_t n, cap, cap_texts;
};

static void part_add(struct part *p, char *text, int64_t age, int64_t weight)
{
	MEM_GROW(p->items, p->cap, p->n + 1);
	MEM_GROW(p->texts, p->cap_texts, p->n + 1);
	p->texts[p->n] = text;
	p->items[p->n++] = (struct resample_item){
		.text = text, .n = strlen(text), .age = age, .weight = weight};
}

static void part_release(struct part *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->texts[i]);
	free(p->texts);
	free(p->items);
}

/* Appends title and chosen lines; takes them off *left. Releases the part. */
static void part_write(struct part *p, const char *title, const struct facts_spec *spec, int share,
		       int similar, int64_t *left, struct buf *out)
{
	struct resample_spec choose = {
		.task = spec->task,
		.task_len = spec->task_len,
		.tokens = MIN(*left, spec->tokens * share / 100),
		.similar = similar,
		.ledger = spec->ledger,
	};
	size_t *order = mem_array(NULL, p->n + 1, sizeof(*order));
	size_t kept = choose.tokens > 0 ? resample(p->items, p->n, &choose, order) : 0;

	if (kept)
		buf_adds(out, title);
	for (size_t i = 0; i < kept; i++) {
		buf_adds(out, p->texts[order[i]]);
		*left -= p->items[order[i]].tokens;
	}
	free(order);
	part_release(p);
}

static int64_t newest_round(const struct facts *facts)
{
	int64_t newest = 0;

	for (size_t i = 0; i < facts->n_files; i++)
		newest = MAX(newest, facts->files[i].round);
	for (size_t i = 0; i < facts->n_commands; i++)
		newest = MAX(newest, facts->commands[i].round);
	for (size_t i = 0; i < facts->n_names; i++)
		newest = MAX(newest, facts->names[i].round);
	return newest;
}

/* Long commands (a here-document) are named by their beginning. */
static char *command_line(const struct fact_command *c)
{
	const int most = 300;
	char times[32] = "";

	if (c->times > 1)
		snprintf(times, sizeof(times), ", run %d times", c->times);
	return mem_printf("- `%.*s%s` (exit code %d, round %" PRId64 "%s)%s\n%s",
			  (int)text_floor(c->command, strlen(c->command),
					  MIN(strlen(c->command), (size_t)most)),
			  c->command, strlen(c->command) > (size_t)most ? " ..." : "", c->exit_code,
			  c->round, times, c->failure ? ":" : "", c->failure ? c->failure : "");
}

/* Whether a command builds or tests: those say where the work stands. */
static bool is_check(const char *command)
{
	static const char *const words[] = {"test",   "check",	 "build", "make", "bench", "lint",
					    "verify", "compare", "run",	  "mypy", "tsc",   "cargo"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(command, words[i]))
			return true;
	return false;
}

static void write_commands(const struct facts *facts, const struct facts_spec *spec, bool failed,
			   int64_t newest, int64_t *left, struct buf *out)
{
	struct part p = {.n = 0};

	for (size_t i = 0; i < facts->n_commands; i++) {
		const struct fact_command *c = &facts->commands[i];

		if (!c->failure == failed)
			continue;
		part_add(&p, command_line(c), newest - c->round,
			 (c->times > 1) + is_check(c->command));
	}
	if (failed)
		part_write(&p, "Failed when they last ran, and not seen to pass since:\n", spec, 50,
			   COMMAND_SIMILAR, left, out);
	else
		part_write(&p, "Other commands:\n", spec, 40, COMMAND_SIMILAR, left, out);
}

static void write_files(const struct facts *facts, const struct facts_spec *spec, bool changed,
			int64_t newest, int64_t *left, struct buf *out)
{
	struct part p = {.n = 0};

	for (size_t i = 0; i < facts->n_files; i++) {
		const struct fact_file *f = &facts->files[i];

		if (f->changed == changed)
			part_add(&p, mem_printf("- %s (round %" PRId64 ")\n", f->path, f->round),
				 newest - f->round, 0);
	}
	part_write(&p, changed ? "Files changed:\n" : "Files read:\n", spec, changed ? 40 : 30,
		   EXACT, left, out);
}

/* One line of each kind: a name is worth little, and there are many. */
static void write_names(const struct facts *facts, const struct facts_spec *spec,
			enum fact_name_kind kind, int64_t newest, int64_t *left, struct buf *out)
{
	size_t before = out->len;
	struct part p = {.n = 0};

	for (size_t i = 0; i < facts->n_names; i++) {
		const struct fact_name *f = &facts->names[i];

		if (f->kind == kind)
			part_add(&p, mem_printf(" %s", f->text), newest - f->round,
				 MIN(f->times, NAMED_OFTEN));
	}
	part_write(&p, kind == NAME_FUNCTION ? "Functions spoken of:" : "Identifiers seen:", spec,
		   NAMES_SHARE, EXACT, left, out);
	if (out->len > before)
		buf_addc(out, '\n');
}

void facts_write_names(const struct facts *facts, int64_t tokens, struct buf *out)
{
	struct facts_spec spec = {.tokens = tokens * 100 / NAMES_SHARE};
	int64_t newest = newest_round(facts), left = spec.tokens;

	write_names(facts, &spec, NAME_FUNCTION, newest, &left, out);
	write_names(facts, &spec, NAME_ID, newest, &left, out);
}

void facts_write(const struct facts *facts, const struct facts_spec *spec, struct buf *out)
{
	AUTO_BUF struct buf text = BUF_INIT;
	int64_t newest = newest_round(facts), left = spec->tokens;

	write_commands(facts, spec, true, newest, &left, &text);
	write_files(facts, spec, true, newest, &left, &text);
	write_commands(facts, spec, false, newest, &left, &text);
	write_names(facts, spec, NAME_FUNCTION, newest, &left, &text);
	write_names(facts, spec, NAME_ID, newest, &left, &text);
	write_files(facts, spec, false, newest, &left, &text);
	if (!text.len)
		return;
	buf_adds(out, heading);
	buf_add(out, text.data, text.len);
}

void facts_write_sayings(const struct facts *facts, const struct facts_spec *spec, struct buf *out)
{
	static const char *const titles[] = {
		"Announced as the next step, and perhaps not done yet:\n",
		"Said of decisions and of what was ruled out:\n"};
	int64_t left = spec->tokens;

	for (enum fact_saying_kind kind = SAID_NEXT; kind <= SAID_DECISION; kind++) {
		struct part p = {.n = 0};

		for (size_t i = 0; i < facts->n_sayings; i++) {
			const struct fact_saying *s = &facts->sayings[i];

			if (s->kind == kind)
				part_add(&p,
					 mem_printf("- round %" PRId64 ": %s\n", s->round, s->text),
					 -s->round, 0);
		}
		part_write(&p, titles[kind], spec, 100, 0, &left, out);
	}
}
