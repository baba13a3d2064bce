/*
 * cost.h - what the ladder costs: a fixed session of 500 rounds, with parts of it and with all of it.
 */
#ifndef SIMULATOR_COST_H
#define SIMULATOR_COST_H

/* Prints a table; 1 if a bar is missed: all of it costs at most 0.80 of compaction alone, and at least half of its
 * automatic compactions need no call for a summary. The worst of five seeds at two models' prices counts. */
int cost_run(const char *base);

#endif
