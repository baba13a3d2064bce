/*
 * plan.c - reads, changes and writes a plan.
 *
 * Models write plans in many hands: "- [ ] x", "* [X] x", "1. x", "3. [x] x". All of these are taken, so
 * that what plan_show printed can be sent back as it is.
 */
#include "agent/plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define INDENT_MAX 12

void plan_release(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		free(plan->list[i].text);
	free(plan->list);
	*plan = (struct plan){.n = 0};
}

/* ---- lines ---- */

struct line {
	const char *text;
	size_t n;
	unsigned indent;
	bool bullet, box, done;
};

static void skip_blanks(struct line *l)
{
	while (l->n && (*l->text == ' ' || *l->text == '\t')) {
		l->text++;
		l->n--;
	}
}

/* "- ", "* ", "+ ", "12. ", "12) "; 0: none. */
static size_t bullet_len(const char *s, size_t n)
{
	size_t i = 0;

	if (n > 1 && strchr("-*+", s[0]) && s[0])
		return s[1] == ' ' ? 2 : 0;
	while (i < n && i < 4 && s[i] >= '0' && s[i] <= '9')
		i++;
	if (!i || i + 1 >= n || (s[i] != '.' && s[i] != ')') || s[i + 1] != ' ')
		return 0;
	return i + 2;
}

static bool take_bullet(struct line *l)
{
	size_t n = bullet_len(l->text, l->n);

	l->text += n;
	l->n -= n;
	skip_blanks(l);
	return n > 0;
}

static bool take_box(struct line *l)
{
	if (l->n < 3 || l->text[0] != '[' || l->text[2] != ']' || !strchr(" xX", l->text[1]) ||
	    !l->text[1])
		return false;
	l->done = l->text[1] != ' ';
	l->text += 3;
	l->n -= 3;
	skip_blanks(l);
	return true;
}

static void drop_numbers(struct line *l)
{
	while (l->n && *l->text >= '0' && *l->text <= '9' && take_bullet(l))
		;
}

/* "- [x] 3. text" is how plan_show prints an item: its number is not a part of its text. */
static struct line parse_line(const char *s, size_t n)
{
	struct line l = {.text = s, .n = n};

	while (l.n && strchr(" \t\r", l.text[l.n - 1]))
		l.n--;
	skip_blanks(&l);
	l.indent = (unsigned)MIN((size_t)(l.text - s), (size_t)INDENT_MAX);
	l.bullet = take_bullet(&l);
	if (l.bullet)
		drop_numbers(&l);
	l.box = take_box(&l);
	if (l.bullet || l.box)
		drop_numbers(&l);
	return l;
}

/* The next line of [*at, end); moves *at behind it. */
static struct line next_line(const char **at, const char *end)
{
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));
	const char *stop = nl ? nl : end, *start = *at;

	*at = nl ? nl + 1 : end;
	return parse_line(start, (size_t)(stop - start));
}

static bool has_box(const char *text, size_t n)
{
	for (const char *at = text, *end = text + n; at < end;) {
		struct line l = next_line(&at, end);

		if (l.box && l.n)
			return true;
	}
	return false;
}

/* ---- entries ---- */

static int push(struct plan *plan, const struct plan_entry *like, const char *text, size_t n,
		struct err *err)
{
	struct plan_entry e = *like;

	if (plan->n >= PLAN_ENTRIES_MAX)
		return err_set(err, ERR_TOO_LARGE, "a plan has at most %d lines", PLAN_ENTRIES_MAX);
	if (n > PLAN_LINE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "a line of the plan has %zu bytes, at most %d are taken: '%.60s...'",
			       n, PLAN_LINE_MAX, text);
	e.text = mem_strndup(text, n);
	MEM_GROW(plan->list, plan->cap, plan->n + 1);
	plan->list[plan->n++] = e;
	plan->items += e.item;
	plan->done += e.item && e.done;
	return 0;
}

/* Terminal sequences and broken UTF-8 never get in; line ends are what parts the lines. */
static void clean(const char *text, size_t n, struct buf *out)
{
	text_printable(out, text, n, false);
}

int plan_parse(struct plan *plan, const char *text, size_t n, struct err *err)
{
	AUTO_BUF struct buf all = BUF_INIT;
	bool boxes;

	clean(text, n, &all);
	boxes = has_box(buf_str(&all), all.len);
	for (const char *at = buf_str(&all), *end = at + all.len; at < end;) {
		const char *start = at;
		struct line l = next_line(&at, end);
		struct plan_entry e = {.item = l.n && (boxes ? l.box : l.bullet),
				       .done = l.done,
				       .indent = l.indent};

		if (!l.n)
			continue;
		if (!e.item) { /* with what looks like a bullet */
			l.n += (size_t)(l.text - start);
			l.text = start;
			skip_blanks(&l);
		}
		if (push(plan, &e, l.text, l.n, err) < 0) {
			plan_release(plan);
			return -1;
		}
	}
	return 0;
}

static struct plan_entry *find_item(const struct plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->list[i].item && !strcmp(plan->list[i].text, text))
			return &plan->list[i];
	return NULL;
}

size_t plan_keep_done(struct plan *plan, const struct plan *before, const char *text, size_t n)
{
	size_t kept = 0;

	if (has_box(text, n))
		return 0; /* it says itself what is done */
	for (size_t i = 0; i < plan->n; i++) {
		struct plan_entry *e = &plan->list[i], *old;

		old = e->item && !e->done ? find_item(before, e->text) : NULL;
		if (!old || !old->done)
			continue;
		e->done = true;
		plan->done++;
		kept++;
	}
	return kept;
}

int plan_add(struct plan *plan, const char *text, size_t n, struct err *err)
{
	struct plan_entry e = {.item = true};
	AUTO_BUF struct buf line = BUF_INIT;
	struct line l;

	text_printable(&line, text, n, true);
	l = parse_line(buf_str(&line), line.len);
	if (!l.n)
		return err_set(err, ERR_INVALID, "an item of the plan must not be empty");
	e.done = l.done;
	return push(plan, &e, l.text, l.n, err);
}

static struct plan_entry *item_at(const struct plan *plan, size_t number)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->list[i].item && !--number)
			return &plan->list[i];
	return NULL;
}

int plan_tick(struct plan *plan, const size_t *numbers, size_t n, bool done, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!numbers[i] || numbers[i] > plan->items)
			return err_set(err, ERR_NOT_FOUND,
				       "the plan has no item %zu: it has %zu items", numbers[i],
				       plan->items);
	for (size_t i = 0; i < n; i++)
		item_at(plan, numbers[i])->done = done;
	plan->done = 0;
	for (size_t i = 0; i < plan->n; i++)
		plan->done += plan->list[i].item && plan->list[i].done;
	return 0;
}

void plan_copy(const struct plan *plan, struct plan *ret)
{
	*ret = *plan;
	ret->list = mem_array(NULL, plan->n + 1, sizeof(*ret->list));
	ret->cap = plan->n + 1;
	for (size_t i = 0; i < plan->n; i++) {
		ret->list[i] = plan->list[i];
		ret->list[i].text = mem_strdup(plan->list[i].text);
	}
}

/* ---- writing ---- */

static void write_item(const struct plan_entry *e, size_t number, struct buf *out)
{
	buf_addf(out, "%*s- [%c] ", (int)e->indent, "", e->done ? 'x' : ' ');
	if (number)
		buf_addf(out, "%zu. ", number);
	buf_addf(out, "%s\n", e->text);
}

/* A blank line between prose and list is what Markdown wants. */
void plan_write(const struct plan *plan, struct buf *out)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_entry *e = &plan->list[i];

		if (i && e->item != plan->list[i - 1].item)
			buf_addc(out, '\n');
		if (e->item)
			write_item(e, 0, out);
		else
			buf_addf(out, "%s\n", e->text);
	}
}

void plan_show(const struct plan *plan, struct buf *out)
{
	size_t number = 0;

	for (size_t i = 0; i < plan->n; i++) {
		if (plan->list[i].item)
			write_item(&plan->list[i], ++number, out);
		else
			buf_addf(out, "%s\n", plan->list[i].text);
	}
}
