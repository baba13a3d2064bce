/*
 * draw.c - the live table: one line an agent. Runs in the view process.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/view/display.h"

static void human_count(int64_t n, char *out, size_t size)
{
	if (n < 10000)
		snprintf(out, size, "%lld", (long long)n);
	else if (n < 1000000)
		snprintf(out, size, "%lldk", (long long)(n / 1000));
	else
		snprintf(out, size, "%.1fM", (double)n / 1e6);
}

/* Adds a line cut to the terminal's width. Width counts characters, which is right for most
 * scripts. */
static void add_line(struct buf *out, const char *text, int columns)
{
	size_t len = strlen(text), n = 0;
	int width = 0;

	while (n < len && width < columns) {
		n++;
		while (n < len && ((unsigned char)text[n] & 0xc0) == 0x80)
			n++;
		width++;
	}
	buf_add(out, text, n);
	buf_adds(out, "\033[K\n");
}

static void agent_line(const struct display_agent *a, int64_t now_ms, char *out, size_t size)
{
	char in[24], output[24], took[24], used[24] = "-";
	int64_t until = a->over ? a->ended_ms : now_ms;

	human_count(a->input, in, sizeof(in));
	human_count(a->output, output, sizeof(output));
	if (a->window > 0)
		snprintf(used, sizeof(used), "%lld%%", (long long)(100 * a->used / a->window));
	clock_human(MAX((int64_t)0, until - a->started_ms) / 1000 * 1000, took, sizeof(took));
	snprintf(out, size, "%-5s %-10.10s %-10.10s r%-3lld %4s %6s in %6s out %7.3f$ %7s  %s",
		 a->name, a->role, a->state, (long long)a->round, used, in, output, a->cost, took,
		 a->action);
}

void display_draw(const struct display *v, int columns, int rows, int64_t now_ms, bool color,
		  struct buf *out, int *ret_lines)
{
	char line[512], took[24];
	size_t live = 0, shown = 0, room = rows > 3 ? (size_t)rows - 2 : 1;

	for (size_t i = 0; i < v->n_agents; i++)
		live += !v->agents[i].over;
	clock_human(MAX((int64_t)0, now_ms - v->started_ms) / 1000 * 1000, took, sizeof(took));
	snprintf(line, sizeof(line), "baton %s %s  %s  %s  %zu of %zu agents at work  %.4f USD",
		 v->command, v->run, v->model, took, live, v->n_agents, v->cost);
	if (color)
		buf_adds(out, "\033[1m");
	add_line(out, line, columns);
	if (color)
		buf_adds(out, "\033[0m");
	/* Those at work first: with many agents the ended ones are the ones to leave out. */
	for (int over = 0; over < 2; over++) {
		for (size_t i = 0; i < v->n_agents && shown < room; i++) {
			if (v->agents[i].over != (over == 1))
				continue;
			agent_line(&v->agents[i], now_ms, line, sizeof(line));
			add_line(out, line, columns);
			shown++;
		}
	}
	*ret_lines = (int)shown + 1;
}
