/*
 * memory.c - the fields, their limits, and how they are shown.
 *
 * A change is made on a copy of one field, measured, stored, and only then kept: what the model is told to be
 * noted is on disk, and a refused change leaves everything as it was. Files are memory_file.c's.
 */
#include "agent/memory.h"

#include <inttypes.h>
#include <string.h>

#include "agent/memory_file.h"
#include "base/memory.h"
#include "base/text.h"

static const struct {
	const char *name, *title;
} fields[] = {
	[MEMORY_TASK] = {"task", "Current task"},
	[MEMORY_DECISIONS] = {"decisions", "Decisions"},
	[MEMORY_CONSTRAINTS] = {"constraints", "Constraints as you understood them (not the user's "
					       "words, which count before these)"},
	[MEMORY_REJECTED] = {"rejected", "Rejected approaches"},
	[MEMORY_FILES] = {"files", "Modified files"},
	[MEMORY_PENDING] = {"pending", "Pending actions"},
	[MEMORY_PREFERENCES] = {"preferences", "Preferences"},
	[MEMORY_ERRORS] = {"errors", "Known errors"},
	[MEMORY_LESSONS] = {"lessons", "Lessons for later runs"},
};

const char *memory_field_name(enum memory_field field)
{
	return fields[field].name;
}

int memory_field_find(const char *name, enum memory_field *ret)
{
	for (size_t i = 0; i < MEMORY_FIELDS; i++) {
		if (!strcmp(fields[i].name, name)) {
			*ret = (enum memory_field)i;
			return 0;
		}
	}
	return -1;
}

/* ---- lists ---- */

static void lines_release(struct memory_lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i]);
	free(l->list);
	*l = (struct memory_lines){.n = 0};
}

static bool lines_hold(const struct memory_lines *l, const char *text)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcasecmp(l->list[i], text))
			return true;
	return false;
}

static void lines_push(struct memory_lines *l, const char *text)
{
	MEM_GROW(l->list, l->cap, l->n + 1);
	l->list[l->n++] = mem_strdup(text);
}

static struct memory_lines lines_copy(const struct memory_lines *l)
{
	struct memory_lines copy = {.n = 0};

	for (size_t i = 0; i < l->n; i++)
		lines_push(&copy, l->list[i]);
	return copy;
}

/* Runs of white space become one blank. */
static void squeeze(struct buf *text)
{
	size_t to = 0;

	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] != ' ' || (to && text->data[to - 1] != ' '))
			text->data[to++] = text->data[i];
	buf_truncate(text, to);
}

/* One line without control characters, without a bullet before it. */
static int clean_line(const struct memory_line *line, struct buf *out, struct err *err)
{
	AUTO_BUF struct buf all = BUF_INIT;
	const char *s;
	size_t n;

	text_printable(&all, line->text, line->n, true);
	squeeze(&all);
	s = buf_str(&all);
	n = all.len;
	while (n && s[n - 1] == ' ')
		n--;
	while (n && (*s == ' ' || (n > 1 && (*s == '-' || *s == '*') && s[1] == ' '))) {
		s++;
		n--;
	}
	if (!n)
		return err_set(err, ERR_INVALID, "a line must not be empty");
	if (n > MEMORY_LINE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "a line has %zu bytes, at most %d are taken: '%.60s...'", n,
			       MEMORY_LINE_MAX, s);
	buf_clear(out);
	buf_add(out, s, n);
	return 0;
}

static int lines_add(struct memory_lines *l, const struct memory_line *lines, size_t n,
		     struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		if (clean_line(&lines[i], &text, err) < 0)
			return -1;
		if (!lines_hold(l, buf_str(&text)))
			lines_push(l, buf_str(&text));
	}
	return 0;
}

/* The index of the one line that is meant; -1. */
static long find_line(const struct memory_lines *l, const char *text, struct err *err)
{
	long part = -1;
	size_t parts = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->list[i], text))
			return (long)i;
		if (strstr(l->list[i], text)) {
			part = (long)i;
			parts++;
		}
	}
	if (parts == 1)
		return part;
	return err_set(err, ERR_NOT_FOUND, "%s line holds '%.100s'; nothing was removed",
		       parts ? "more than one" : "no", text);
}

static int lines_remove(struct memory_lines *l, const struct memory_line *lines, size_t n,
			struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		long at;

		if (clean_line(&lines[i], &text, err) < 0 ||
		    (at = find_line(l, buf_str(&text), err)) < 0)
			return -1;
		free(l->list[at]);
		memmove(l->list + at, l->list + at + 1, (l->n - (size_t)at - 1) * sizeof(*l->list));
		l->n--;
	}
	return 0;
}

/* ---- size ---- */

static int64_t estimate(const struct working_memory *m, const struct buf *text)
{
	if (m->settings.estimate)
		return m->settings.estimate(m->settings.arg, buf_str(text), text->len);
	return (int64_t)(text->len / BYTES_PER_TOKEN);
}

int64_t memory_tokens(const struct working_memory *m)
{
	AUTO_BUF struct buf text = BUF_INIT;

	memory_show(m, &text);
	return estimate(m, &text);
}

int64_t memory_plan_tokens(const struct working_memory *m)
{
	AUTO_BUF struct buf text = BUF_INIT;

	memory_show_plan(m, &text);
	return estimate(m, &text);
}

static int check_size(const struct working_memory *m, int64_t tokens, int64_t before,
		      const char *what, const char *how, struct err *err)
{
	/* Less is never refused: a smaller window may have made too much of what was fine. */
	if (tokens <= m->settings.hard || tokens < before)
		return 0;
	return err_set(err, ERR_TOO_LARGE,
		       "%s would take %" PRId64 " tokens, at most %" PRId64
		       " are allowed (it takes %" PRId64 " now); nothing was changed: %s",
		       what, tokens, m->settings.hard, before, how);
}

/* ---- changes ---- */

size_t memory_lines_count(const struct working_memory *m)
{
	size_t sum = 0;

	for (size_t i = 0; i < MEMORY_FIELDS; i++)
		sum += m->fields[i].n;
	return sum;
}

/* Puts the new list in its place, or throws it away. */
static int commit(struct working_memory *m, enum memory_field field, struct memory_lines *now,
		  struct err *err)
{
	struct memory_lines old = m->fields[field];
	int64_t before = memory_tokens(m);

	m->fields[field] = *now;
	m->changes++;
	if (check_size(m, memory_tokens(m), before, "the working memory",
		       "shorten it first, with set and remove", err) < 0 ||
	    memory_file_store(m, err) < 0) {
		m->fields[field] = old;
		m->changes--;
		lines_release(now);
		return -1;
	}
	lines_release(&old);
	return 0;
}

typedef int (*lines_change_fn)(struct memory_lines *l, const struct memory_line *lines, size_t n,
			       struct err *err);

static int change(struct working_memory *m, enum memory_field field, struct memory_lines now,
		  lines_change_fn fn, const struct memory_line *lines, size_t n, struct err *err)
{
	if (fn(&now, lines, n, err) < 0) {
		lines_release(&now);
		return -1;
	}
	return commit(m, field, &now, err);
}

int memory_set(struct working_memory *m, enum memory_field field, const struct memory_line *lines,
	       size_t n, struct err *err)
{
	return change(m, field, (struct memory_lines){.n = 0}, lines_add, lines, n, err);
}

int memory_add(struct working_memory *m, enum memory_field field, const struct memory_line *lines,
	       size_t n, struct err *err)
{
	return change(m, field, lines_copy(&m->fields[field]), lines_add, lines, n, err);
}

int memory_remove(struct working_memory *m, enum memory_field field,
		  const struct memory_line *lines, size_t n, struct err *err)
{
	return change(m, field, lines_copy(&m->fields[field]), lines_remove, lines, n, err);
}

int memory_set_plan(struct working_memory *m, struct plan *plan, struct err *err)
{
	struct plan old = m->plan;
	int64_t before = memory_plan_tokens(m);

	m->plan = *plan;
	m->plan_changes++;
	if (check_size(m, memory_plan_tokens(m), before, "the plan",
		       "merge or drop items, and write it whole again", err) < 0 ||
	    memory_file_store_plan(m, err) < 0) {
		m->plan = old;
		m->plan_changes--;
		return -1;
	}
	*plan = (struct plan){.n = 0};
	plan_release(&old);
	return 0;
}

void memory_forget_fields(struct working_memory *m)
{
	for (size_t i = 0; i < MEMORY_FIELDS; i++)
		lines_release(&m->fields[i]);
}

void memory_release(struct working_memory *m)
{
	memory_forget_fields(m);
	plan_release(&m->plan);
	free(m->folder);
	*m = (struct working_memory){.folder = NULL};
}

/* ---- for the model ---- */

void memory_title(const struct working_memory *m, struct buf *out)
{
	buf_addf(out, "[working memory, state %" PRIu64, m->changes);
}

void memory_show(const struct working_memory *m, struct buf *out)
{
	if (!memory_lines_count(m))
		return;
	memory_title(m, out);
	buf_adds(out,
		 ": what you noted with the tool `notes`, in your own words; the highest state "
		 "counts]\n");
	for (size_t i = 0; i < MEMORY_FIELDS; i++) {
		if (m->fields[i].n)
			buf_addf(out, "%s:\n", fields[i].title);
		for (size_t k = 0; k < m->fields[i].n; k++)
			buf_addf(out, "- %s\n", m->fields[i].list[k]);
	}
}

void memory_plan_title(const struct working_memory *m, struct buf *out)
{
	buf_addf(out, "[plan, state %" PRIu64, m->plan_changes);
}

void memory_show_plan(const struct working_memory *m, struct buf *out)
{
	if (!m->plan.n)
		return;
	memory_plan_title(m, out);
	buf_addf(out, ": your plan.md, %zu done, %zu open; the highest state counts]\n",
		 m->plan.done, m->plan.items - m->plan.done);
	plan_show(&m->plan, out);
}
