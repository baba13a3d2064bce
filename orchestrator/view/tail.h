/*
 * tail.h - whole lines of a growing file.
 */
#ifndef BATON_ORCHESTRATOR_VIEW_TAIL_H
#define BATON_ORCHESTRATOR_VIEW_TAIL_H

#include "base/buf.h"
#include "base/err.h"

struct tail {
	int fd;
	struct buf partial;
};

int tail_open(struct tail *tail, const char *path, struct err *err);
void tail_release(struct tail *tail);
/* Calls on_line for each whole line that came since the last call (without its \n). */
int tail_read(struct tail *tail, void (*on_line)(const char *line, size_t n, void *arg), void *arg,
	      struct err *err);

#endif
