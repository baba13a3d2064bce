/*
 * snapshot.c - collects facts from calls and results, then writes what fits.
 *
 * One walk over the rounds fills lists of things (a file, a command, a call that failed); a thing that comes
 * again is brought up to date and moves to the end, so each list is in the order of last use. Texts are
 * looked at only for what ends up being shown (the errors of a command are cut out of its last result when
 * the snapshot is written), and for names, which cost one look at each byte.
 */
#include "agent/context/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/context/about.h"
#include "agent/context/facts.h"
#include "agent/context/rounds.h"
#include "agent/tools/output.h"
#include "base/memory.h"
#include "base/text.h"

#define START	    "[State snapshot of rounds "
#define QUOTE_MAX   600	 /* bytes of an answer's text */
#define NAME_MAX_   300	 /* of a path or a command */
#define FAILURE_MAX 900	 /* of what a failing command printed */
#define LINE_MAX_   160	 /* of a failure that is past */
#define REPORT_MAX  8000 /* of a result that cannot be had again */
#define NAME_TOKENS 150	 /* of functions, of identifiers */

enum section { FILES, COMMANDS, FAILED, DECISIONS, REPORTS, SECTIONS };

static const struct {
	const char *title;
	int share; /* per cent of the budget; what one does not use the next may */
} sections[SECTIONS] = {
	[FILES] = {"Files (read or changed, oldest first):", 20},
	[COMMANDS] = {"Commands (how each ended last):", 25},
	[FAILED] = {"Tried in vain:", 10},
	[DECISIONS] = {"Said by you at the time:", 30},
	[REPORTS] = {"Results that cannot be had again:", 15},
};

/* One line, or a few, of a section. */
struct thing {
	uint64_t key;
	char *name; /* owned */
	const struct block *call, *result;
	const struct block *failed; /* a command's last failure */
	int64_t round, reads, changes, runs, failures;
	bool gone; /* a failure that succeeded later */
};

struct list {
	struct thing *things;
	size_t n, cap;
};

struct lists {
	struct list list[SECTIONS];
	struct facts names; /* nothing else of it */
};

/* ---- collecting ---- */

/* The thing of that name at the end of its list, where what is newest stands. The name is taken over. */
static struct thing *touch(struct list *list, uint64_t key, char *name)
{
	struct thing found = {.key = key, .name = name};
	size_t i = list->n;

	while (i-- > 0)
		if (list->things[i].key == key)
			break;
	if (i < list->n) {
		found = list->things[i];
		free(name);
		memmove(&list->things[i], &list->things[i + 1],
			(list->n - i - 1) * sizeof(*list->things));
		list->n--;
	}
	MEM_GROW(list->things, list->cap, list->n + 1);
	list->things[list->n] = found;
	return &list->things[list->n++];
}

static uint64_t key_of(const char *name)
{
	return text_hash(name, strlen(name));
}

static void take_file(struct lists *f, const struct block *call, const struct block *result,
		      int64_t round)
{
	char *path = about_target(call);
	struct thing *t;

	if (!path)
		return;
	t = touch(&f->list[FILES], key_of(path), path);
	t->round = round;
	t->call = call;
	t->result = result;
	if (about_kind(call->name) == ABOUT_CHANGE)
		t->changes += !result->is_error;
	else
		t->reads++;
}

static void take_command(struct lists *f, const struct block *call, const struct block *result,
			 int64_t round)
{
	char *command = about_target(call);
	struct thing *t;

	if (!command)
		return;
	t = touch(&f->list[COMMANDS], key_of(command), command);
	t->round = round;
	t->result = result;
	t->runs++;
	if (result->is_error) {
		t->failures++;
		t->failed = result;
	}
}

/* A failure that the same call, or one about the same thing, put right is past: it is told beside the file. */
static void take_failure(struct lists *f, const struct block *call, const struct block *result,
			 int64_t round)
{
	AUTO_FREE char *target = about_target(call);
	char *name = mem_printf("%s %s", call->name, target ? target : "");
	struct thing *t = touch(&f->list[FAILED], key_of(name), name);

	t->round = round;
	t->gone = !result->is_error;
	if (result->is_error) {
		t->result = result;
		t->failures++;
	}
}

static void take_report(struct lists *f, const struct block *call, const struct block *result,
			int64_t round)
{
	uint64_t key[2] = {key_of(call->name), text_hash(call->text, call->text_len)};
	struct thing *t =
		touch(&f->list[REPORTS], text_hash(key, sizeof(key)), mem_strdup(call->name));

	t->round = round;
	t->call = call;
	t->result = result;
}

static void take_call(struct lists *f, const struct block *call, const struct block *result,
		      int64_t round)
{
	switch (about_kind(call->name)) {
	case ABOUT_READ:
	case ABOUT_CHANGE: take_file(f, call, result, round); break;
	case ABOUT_RUN: take_command(f, call, result, round); return;
	case ABOUT_OTHER: take_report(f, call, result, round); return;
	case ABOUT_SEARCH: break;
	}
	take_failure(f, call, result, round);
}

static const struct block *find_result(const struct message *m, const char *id)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_RESULT && !strcmp(m->blocks[i].id, id))
			return &m->blocks[i];
	return NULL;
}

static void take_answer(struct lists *f, const struct message *m, const struct message *results)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i], *result;

		if (b->kind == BLOCK_TEXT && text_has_substance(b->text, b->text_len)) {
			struct thing *t =
				touch(&f->list[DECISIONS], text_hash(b->text, b->text_len), NULL);

			t->result = b;
			t->round = m->round;
			facts_take_spoken(&f->names, b->text, b->text_len, m->round);
		}
		if (b->kind == BLOCK_TOOL_CALL && results && (result = find_result(results, b->id)))
			take_call(f, b, result, m->round);
	}
}

/* Rounds never fall along a conversation. */
static size_t first_of_round(const struct conversation *c, int64_t round)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->messages[middle]->round < round)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void collect(struct lists *f, const struct conversation *c, int64_t first, int64_t last)
{
	for (size_t i = first_of_round(c, first); i < c->n && c->messages[i]->round <= last; i++) {
		const struct message *m = c->messages[i];

		if (m->role == MESSAGE_ASSISTANT)
			take_answer(f, m, i + 1 < c->n ? c->messages[i + 1] : NULL);
		for (size_t k = 0; k < m->n_blocks; k++)
			if (m->blocks[k].kind == BLOCK_TOOL_RESULT)
				facts_take_shown(&f->names, m->blocks[k].text,
						 m->blocks[k].text_len, m->round);
	}
}

/* ---- writing ---- */

/* One line of a text, cut. */
static void add_line(struct buf *out, const char *s, size_t n, size_t most)
{
	const char *lf = memchr(s, '\n', n);
	size_t len = lf ? (size_t)(lf - s) : n;
	size_t keep = text_floor(s, len, MIN(len, most));

	buf_add(out, s, keep);
	if (keep < n)
		buf_adds(out, " ...");
}

static void add_name(struct buf *out, const char *name)
{
	add_line(out, name, strlen(name), NAME_MAX_);
}

/* "exit code N" is the first line of a command that failed. */
static int exit_code_of(const struct block *result)
{
	int code = result->is_error ? 1 : 0;

	sscanf(result->text, "exit code %d", &code);
	return code;
}

static void write_file(const struct thing *t, struct buf *out)
{
	buf_adds(out, "- ");
	add_name(out, t->name);
	if (t->changes)
		buf_addf(out, ": changed %" PRId64 " time%s", t->changes,
			 t->changes == 1 ? "" : "s");
	if (t->reads)
		buf_addf(out, "%s read %" PRId64 " time%s", t->changes ? "," : ":", t->reads,
			 t->reads == 1 ? "" : "s");
	buf_addf(out, "; last in round %" PRId64, t->round);
	if (t->result->is_error) {
		buf_addf(out, " (%s failed: ", t->call->name);
		add_line(out, t->result->text, t->result->text_len, LINE_MAX_);
		buf_addc(out, ')');
	}
	buf_addc(out, '\n');
}

/* The first line that says something: not the exit code. */
static void add_reason(struct buf *out, const struct block *result)
{
	const char *s = result->text, *lf = strchr(s, '\n');

	if (text_starts(s, "exit code ") && lf && lf[1])
		s = lf + 1;
	add_line(out, s, strlen(s), LINE_MAX_);
}

static void write_command(const struct thing *t, struct buf *out)
{
	int code = exit_code_of(t->result);

	buf_adds(out, "- ");
	add_name(out, t->name);
	buf_addf(out, " -> exit code %d in round %" PRId64, code, t->round);
	if (t->runs > 1)
		buf_addf(out, " (run %" PRId64 " times, %" PRId64 " failed)", t->runs, t->failures);
	if (!t->result->is_error && t->failed) {
		buf_adds(out, "; it failed before: ");
		add_reason(out, t->failed);
	}
	buf_addc(out, '\n');
	if (!t->result->is_error)
		return;
	size_t before = out->len;

	output_shorten(out, t->result->text, t->result->text_len, code, FAILURE_MAX, NULL);
	if (out->len > before && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

static void write_failure(const struct thing *t, struct buf *out)
{
	if (t->gone || !t->result)
		return;
	buf_adds(out, "- ");
	add_name(out, t->name);
	buf_addf(out, " (%" PRId64 " time%s, last in round %" PRId64 "): ", t->failures,
		 t->failures == 1 ? "" : "s", t->round);
	add_line(out, t->result->text, t->result->text_len, LINE_MAX_);
	buf_addc(out, '\n');
}

static void write_decision(const struct thing *t, struct buf *out)
{
	buf_addf(out, "- round %" PRId64 ": \"", t->round);
	text_clip(out, t->result->text, t->result->text_len, QUOTE_MAX, NULL);
	buf_adds(out, "\"\n");
}

static void write_report(const struct thing *t, struct buf *out)
{
	buf_addf(out, "- %s ", t->name);
	add_line(out, t->call->text, t->call->text_len, NAME_MAX_);
	buf_addf(out, " (round %" PRId64 "):\n", t->round);
	text_clip(out, t->result->text, t->result->text_len, REPORT_MAX, NULL);
	if (out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

static void (*const writers[SECTIONS])(const struct thing *, struct buf *) = {
	[FILES] = write_file,	      [COMMANDS] = write_command, [FAILED] = write_failure,
	[DECISIONS] = write_decision, [REPORTS] = write_report,
};

/* The newest that fit, in their order. Returns the bytes that it took. */
static size_t write_section(enum section s, const struct list *list, size_t budget, struct buf *out)
{
	AUTO_BUF struct buf text = BUF_INIT;
	size_t *ends = mem_array(NULL, list->n + 1, sizeof(*ends));
	size_t from = list->n, before = out->len;

	/* Each is written once, the newest first, to know what fits; then they are put in order. */
	for (size_t i = list->n; i-- > 0;) {
		writers[s](&list->things[i], &text);
		if (text.len > budget) {
			buf_truncate(&text, i + 1 < list->n ? ends[i + 1] : 0);
			break;
		}
		ends[i] = text.len;
		from = i;
	}
	if (text.len) {
		buf_addf(out, "%s\n", sections[s].title);
		if (from)
			buf_addf(out, "- [%zu older ones left out]\n", from);
	}
	for (size_t i = from; text.len && i < list->n; i++) {
		size_t begin = i + 1 < list->n ? ends[i + 1] : 0;

		buf_add(out, text.data + begin, ends[i] - begin);
	}
	free(ends);
	return out->len - before;
}

static void release(struct lists *f)
{
	for (size_t s = 0; s < SECTIONS; s++) {
		for (size_t i = 0; i < f->list[s].n; i++)
			free(f->list[s].things[i].name);
		free(f->list[s].things);
	}
	facts_release(&f->names);
}

void snapshot_write(const struct conversation *conversation, int64_t first, int64_t last,
		    size_t budget, struct buf *out)
{
	struct lists lists = {0};
	size_t left = 0;

	collect(&lists, conversation, first, last);
	buf_addf(out,
		 START "%" PRId64 " to %" PRId64 ", made by rule from the record; those rounds are "
		       "not shown any more. The files are "
		       "as they are on disk: read them again where it matters.]\n",
		 first, last);
	for (size_t s = 0; s < SECTIONS; s++) {
		size_t share = budget * (size_t)sections[s].share / 100 + left;
		size_t took = write_section((enum section)s, &lists.list[s], share, out);

		left = share > took ? share - took : 0;
	}
	facts_write_names(&lists.names, NAME_TOKENS, out);
	release(&lists);
}

bool snapshot_is(const struct block *block, int64_t *ret_first, int64_t *ret_last)
{
	return block->kind == BLOCK_TEXT && block->origin == ORIGIN_SUMMARY &&
	       sscanf(block->text, START "%" SCNd64 " to %" SCNd64, ret_first, ret_last) == 2;
}
