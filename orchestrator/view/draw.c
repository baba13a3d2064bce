/*
 * draw.c - the live table: one line an agent. Runs in the view process.
 *
 * A line that wraps would put every later redraw in the wrong place, so lines are cut to one column
 * less than the terminal has: a full line leaves some terminals between two lines, where "erase to
 * the end" takes the last character away. Widths are counted here and not by wcwidth, which depends
 * on a locale that may not be set.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/view/display.h"

/* What an agent does now tells more than its counts: a narrower terminal gets fewer of these, so
 * that 20 columns are left for the action. */
#define COLUMNS_TOKENS 98
#define COLUMNS_ROLE   77

struct range {
	uint32_t first, last;
};

/* East Asian wide forms and emoji; rough, and wrong only towards shorter lines. */
static const struct range wide[] = {
	{0x1100, 0x115f}, {0x231a, 0x23ff}, {0x2600, 0x27bf},	{0x2b1b, 0x2b55},
	{0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},	{0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f000, 0x1faff}, {0x20000, 0x3fffd},
};
static const struct range no_width[] = {
	{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

/* Columns of the character at s, which is valid UTF-8, and its length in bytes. */
static int char_width(const char *s, size_t n, size_t *ret_len)
{
	unsigned char lead = (unsigned char)*s;
	uint32_t c = lead < 0x80   ? lead
		     : lead < 0xe0 ? lead & 0x1f
		     : lead < 0xf0 ? lead & 0xf
				   : lead & 7;
	size_t len = 1;

	for (; len < n && ((unsigned char)s[len] & 0xc0) == 0x80; len++)
		c = c << 6 | ((unsigned char)s[len] & 0x3f);
	*ret_len = len;
	if (in_ranges(c, no_width, ARRAY_SIZE(no_width)))
		return 0;
	return in_ranges(c, wide, ARRAY_SIZE(wide)) ? 2 : 1;
}

/* Bytes of text that fit into so many columns. */
static size_t fit(const char *text, int columns, int *ret_width)
{
	size_t len = strlen(text), n = 0, step;
	int width = 0;

	while (n < len) {
		int w = char_width(text + n, len - n, &step);
		if (width + w > columns)
			break;
		width += w;
		n += step;
	}
	*ret_width = width;
	return n;
}

/* A left-aligned cell and a blank. */
static void add_cell(struct buf *out, const char *text, int columns)
{
	int width;

	buf_add(out, text, fit(text, columns, &width));
	buf_addf(out, "%*s", columns - width + 1, "");
}

static void add_line(struct buf *out, const struct buf *line, int columns)
{
	int width;

	buf_add(out, buf_str(line), fit(buf_str(line), columns - 1, &width));
	buf_adds(out, "\033[K\n");
}

/* Four or five characters whatever the number: the columns must not move. */
static void human_count(int64_t n, char *out, size_t size)
{
	if (n < 10000)
		snprintf(out, size, "%lld", (long long)n);
	else if (n < 1000000)
		snprintf(out, size, "%lldk", (long long)(n / 1000));
	else
		snprintf(out, size, "%.1fM", (double)n / 1e6);
}

/* Whole seconds; a clock that was set back gives 0. The first frame may be drawn before the record
 * that tells the start was read: a difference to 0 would be half a million hours. */
static void human_span(int64_t from_ms, int64_t until_ms, char *out, size_t size)
{
	if (from_ms > 0)
		clock_human(MAX((int64_t)0, until_ms - from_ms) / 1000 * 1000, out, size);
	else
		snprintf(out, size, "-");
}

static void add_tokens(struct buf *out, const struct display_agent *a)
{
	char in[24], output[24];

	human_count(a->input, in, sizeof(in));
	human_count(a->output, output, sizeof(output));
	buf_addf(out, " %6s in %6s out", in, output);
}

static void agent_line(const struct display_agent *a, int columns, int64_t now_ms, bool unpriced,
		       struct buf *out)
{
	char took[24], used[24] = "-", cost[24] = "-";
	int64_t until = a->over ? a->ended_ms : now_ms;

	if (a->window > 0)
		snprintf(used, sizeof(used), "%lld%%", (long long)(100 * a->used / a->window));
	if (!unpriced)
		snprintf(cost, sizeof(cost), "%.3f$", a->cost);
	human_span(a->started_ms, until, took, sizeof(took));
	add_cell(out, a->name, 5);
	if (columns >= COLUMNS_ROLE)
		add_cell(out, a->role, 10);
	add_cell(out, a->paused && !a->over ? "paused" : a->state, 10);
	buf_addf(out, "r%-3lld %4s", (long long)a->round, used);
	if (columns >= COLUMNS_TOKENS)
		add_tokens(out, a);
	if (columns >= COLUMNS_ROLE)
		buf_addf(out, " %8s", cost);
	buf_addf(out, " %7s  %s", took, a->action);
}

/* The run as a whole; times are differences of wall clocks, which is all that records have. */
static void head_line(const struct display *v, int64_t now_ms, struct buf *out)
{
	char took[24];
	size_t live = 0;

	for (size_t i = 0; i < v->n_agents; i++)
		live += !v->agents[i].over;
	human_span(v->started_ms, now_ms, took, sizeof(took));
	buf_addf(out, "baton %s %s  %s  %s  %zu of %zu agents at work", v->command, v->run,
		 v->model, took, live, v->n_agents);
	if (!v->unpriced)
		buf_addf(out, "  %.4f USD", v->cost);
	if (strcmp(v->status, "paused") == 0)
		buf_adds(out, "  paused");
}

void display_draw(const struct display *v, int columns, int rows, int64_t now_ms, bool color,
		  struct buf *out, int *ret_lines)
{
	AUTO_BUF struct buf line = BUF_INIT;
	size_t shown = 0, room = rows > 3 ? (size_t)rows - 2 : 1;

	head_line(v, now_ms, &line);
	if (color)
		buf_adds(out, "\033[1m");
	add_line(out, &line, columns);
	if (color)
		buf_adds(out, "\033[0m");
	/* Those at work first: with many agents the ended ones are the ones to leave out. */
	for (int over = 0; over < 2; over++) {
		for (size_t i = 0; i < v->n_agents && shown < room; i++) {
			if (v->agents[i].over != (over == 1))
				continue;
			buf_clear(&line);
			agent_line(&v->agents[i], columns, now_ms, v->unpriced, &line);
			add_line(out, &line, columns);
			shown++;
		}
	}
	*ret_lines = (int)shown + 1;
}

/* Our own escapes only: all others are taken out of what is drawn. */
static size_t skip_escape(const char *s)
{
	size_t n = strcspn(s, "mK");

	return n + (s[n] != '\0');
}

int display_rows(const struct buf *drawn, int columns)
{
	int rows = 0, width = 0;

	for (size_t i = 0; i < drawn->len;) {
		size_t step = 1;
		if (drawn->data[i] == '\033') {
			i += skip_escape(drawn->data + i);
			continue;
		}
		if (drawn->data[i] == '\n') {
			rows += MAX(1, (width + columns - 1) / columns);
			width = 0;
		} else {
			width += char_width(drawn->data + i, drawn->len - i, &step);
		}
		i += step;
	}
	return rows;
}
