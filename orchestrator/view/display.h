/*
 * display.h - what a user sees of a run while it goes on: a fold over the journal's records.
 *
 * A view is a process of its own that reads run.jsonl, so a slow terminal stops nobody. It knows
 * nothing but the records (docs/journal.md); the same fold serves the live table and the plain
 * lines.
 */
#ifndef BATON_ORCHESTRATOR_VIEW_DISPLAY_H
#define BATON_ORCHESTRATOR_VIEW_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct display_agent {
	char name[16], role[24], state[24];
	char action[96]; /* last action, printable, one line */
	int64_t round, used, window;
	int64_t input, output; /* tokens so far */
	double cost;
	int64_t started_ms, ended_ms; /* wall; 0 while it works */
	bool over, paused;
};

struct display {
	char run[32], command[16], model[64], status[16];
	int64_t started_ms, now_ms; /* wall, from the records' stamps */
	struct display_agent *agents;
	size_t n_agents, cap_agents;
	double cost;
	bool unpriced; /* calls were settled without a cost: the model has no known prices */
	bool finished;
};

void display_init(struct display *v);
void display_release(struct display *v);
/* Takes one record. If it is worth a line of plain output, appends that line (with \n) to `line`.
 */
void display_fold(struct display *v, struct json_object *record, struct buf *line);
/* Draws the table for a terminal of this size, whose cursor is at the start of a line: whole lines,
 * each narrower than the terminal and ended by an erase of the rest; bold only if color is set. */
void display_draw(const struct display *v, int columns, int rows, int64_t now_ms, bool color,
		  struct buf *out, int *ret_lines);

/* Rows that a drawn table takes in a terminal of so many columns, which may be fewer than it was
 * drawn for: terminals wrap what stands there when they get narrower. */
int display_rows(const struct buf *drawn, int columns);

#endif
