/*
 * output_table.c - finds tables by their form, not by the command that printed them.
 *
 * A query may be run by psql, a script or a build tool, so the name of the program says little. Two forms count:
 * lines with the same number of separators ('|', a tab, a comma), and a head that a ruled line follows (psql, mysql,
 * duckdb, Markdown). The end of a table says nothing that its beginning does not, so unlike in other
 * outputs no tail is kept, but the count that the program prints.
 */
#include "agent/tools/output_table.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum {
	ROWS_LEAST = 20, /* fewer are not worth the word */
	ROWS_SHOWN = 20,
	UNIFORM = 95,	/* per cent of the lines that have to look like rows */
	HEAD_LINES = 3, /* in which a ruled line stands, if there is one */
	ROW_BYTES = 500,
	FOOTER_BYTES = 100,
};

struct line {
	const char *s;
	size_t n;
};

static bool next_line(const char **at, const char *end, struct line *ret)
{
	if (*at >= end)
		return false;
	const char *lf = memchr(*at, '\n', (size_t)(end - *at));
	const char *stop = lf ? lf : end;
	*ret = (struct line){*at, (size_t)(stop - *at)};
	*at = stop + 1;
	while (ret->n && isspace((unsigned char)ret->s[ret->n - 1]))
		ret->n--;
	return true;
}

/* Dashes and what stands between them; *ret_groups: how many rows of dashes. */
static bool is_ruled(struct line l, size_t *ret_groups)
{
	bool in_dashes = false;

	*ret_groups = 0;
	for (size_t i = 0; i < l.n; i++) {
		bool dash = l.s[i] == '-' || l.s[i] == '=';

		/* Of box drawing characters all bytes are above 0x7f. */
		if (!dash && !strchr("+|: \t", l.s[i]) && !((unsigned char)l.s[i] & 0x80))
			return false;
		*ret_groups += dash && !in_dashes;
		in_dashes = dash;
	}
	return l.n >= 3 && (*ret_groups || (unsigned char)l.s[0] & 0x80);
}

/* Commas in quotes separate nothing, and what stands in spaces is of a sentence or of a log. */
static size_t count_separators(struct line l, char separator)
{
	size_t count = 0;
	bool quoted = false;

	for (size_t i = 0; i < l.n; i++) {
		quoted ^= l.s[i] == '"' && separator == ',';
		count += !quoted && l.s[i] == separator && (i + 1 == l.n || l.s[i + 1] != ' ');
	}
	return count;
}

struct table {
	const char *body; /* behind the head and its ruled line */
	size_t rows;
	struct line footer; /* n 0: none */
};

/* "(123 rows)", "123 rows in set (0.01 sec)", "(5 行)" is left to the reader's own count. */
static bool is_footer(struct line l)
{
	bool digit = false;

	for (size_t i = 0; i < l.n; i++)
		digit |= isdigit((unsigned char)l.s[i]) != 0;
	return digit && l.n < FOOTER_BYTES && text_find_nocase(l.s, l.n, "row");
}

/* Rows behind the head: all lines that are neither empty, ruled nor a count. */
static void count_rows(struct table *t, const char *end)
{
	const char *at = t->body;
	struct line l;
	size_t groups;

	t->rows = 0;
	while (next_line(&at, end, &l)) {
		bool footer = is_footer(l) && end - at < 2 * FOOTER_BYTES;

		if (footer)
			t->footer = l;
		t->rows += l.n && !footer && !is_ruled(l, &groups);
	}
}

/* The place behind a ruled line with columns near the top; NULL: there is none. */
static const char *behind_rule(const char *s, const char *end)
{
	const char *at = s, *body = NULL;
	size_t groups, words = 0;
	struct line l;

	for (int i = 0; i < HEAD_LINES && next_line(&at, end, &l); i++) {
		if (!is_ruled(l, &groups))
			words += l.n > 0;
		else if (words && (groups > 1 || (unsigned char)l.s[0] & 0x80))
			body = at;
	}
	return body;
}

static bool is_uniform(const char *s, const char *end, char separator, size_t least)
{
	size_t columns = 0, same = 0, all = 0, groups;
	const char *at = s;
	struct line l;

	while (next_line(&at, end, &l)) {
		if (!l.n || is_ruled(l, &groups))
			continue;
		size_t k = count_separators(l, separator);
		if (!all)
			columns = k;
		if (columns < least)
			return false;
		all++;
		same += k == columns;
		if (all == 50 && same * 100 < all * UNIFORM)
			return false; /* enough is seen */
	}
	return all && same * 100 >= all * UNIFORM;
}

/* Loggers write columns too, but no heads: a line that begins with a time is none. */
static bool has_head(struct line head, char separator)
{
	return separator == '|' || (head.n && !isdigit((unsigned char)*head.s) && *head.s != '[');
}

static bool find_table(const char *s, const char *end, struct table *ret)
{
	static const struct {
		char separator;
		size_t least; /* in a line: prose has commas too */
	} forms[] = {{'|', 1}, {'\t', 1}, {',', 2}};
	const char *second = s;
	struct line head;

	*ret = (struct table){.body = behind_rule(s, end)};
	if (!next_line(&second, end, &head))
		return false;
	for (size_t i = 0; !ret->body && i < ARRAY_SIZE(forms); i++)
		if (has_head(head, forms[i].separator) &&
		    is_uniform(s, end, forms[i].separator, forms[i].least))
			ret->body = second;
	if (!ret->body)
		return false;
	count_rows(ret, end);
	return ret->rows >= ROWS_LEAST;
}

static void add_row(struct buf *out, struct line l, size_t most)
{
	size_t keep = text_floor(l.s, l.n, MIN(l.n, most));

	buf_add(out, l.s, keep);
	if (keep < l.n)
		buf_addf(out, " [%zu more bytes]", l.n - keep);
	buf_addc(out, '\n');
}

bool output_shorten_table(struct buf *out, const char *s, size_t n, size_t budget,
			  const char *where)
{
	const char *at = s, *end = s + n;
	size_t before = out->len, shown = 0, groups;
	struct table t;
	struct line l;

	if (!find_table(s, end, &t))
		return false;
	while (at < t.body && next_line(&at, end, &l))
		add_row(out, l, ROW_BYTES);
	while (shown < MIN(t.rows, (size_t)ROWS_SHOWN) && next_line(&at, end, &l)) {
		if (!l.n || is_ruled(l, &groups))
			continue;
		if (shown && out->len - before + MIN(l.n, (size_t)ROW_BYTES) > budget)
			break;
		add_row(out, l, ROW_BYTES);
		shown++;
	}
	buf_addf(out, "[the first %zu of %zu rows", shown, t.rows);
	if (where)
		buf_addf(out, "; all of it is in %s", where);
	buf_adds(out, "]\n");
	if (t.footer.n)
		add_row(out, t.footer, FOOTER_BYTES);
	return true;
}
