/*
 * run_handoff.h - `baton run --handoff FILE`: a run that begins from a document which a person, another tool or another run
 * wrote, perhaps in another clone of the repository (R1, R2).
 */
#ifndef BATON_ORCHESTRATOR_RUN_HANDOFF_H
#define BATON_ORCHESTRATOR_RUN_HANDOFF_H

#include "base/err.h"
#include "handoff/document.h"
#include "orchestrator/settings.h"

struct run;

/* --handoff's file in either form; *ret is NULL without the option. Caller frees. */
int run_handoff_read(const struct settings *s, struct handoff **ret, struct err *err);
/* What it asks to be done: the task of a run that was given none. Caller frees; NULL: it has no goal. */
char *run_handoff_task(const struct handoff *handoff);

/* Looks what of it exists at `base` in this repository, writes it where the first agent finds it, and calls `done`
 * with what does not exist here, as one line (NULL: all of it does), or with a failure. `handoff` is borrowed until
 * then. */
typedef void (*run_handoff_fn)(struct run *run, const char *base, const char *told,
			       const struct err *failure);
void run_handoff_place(struct run *run, struct handoff *handoff, const char *base,
		       run_handoff_fn done);

#endif
