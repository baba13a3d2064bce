/*
 * run_base.h - the commit that a run's work begins from: the one on record, --base, uncommitted work with --dirty, or
 * HEAD as it was when the run opened.
 *
 * Whoever makes something from it puts it on record first (run_base_record), since HEAD may move before a resumption.
 */
#ifndef BATON_ORCHESTRATOR_RUN_BASE_H
#define BATON_ORCHESTRATOR_RUN_BASE_H

#include "base/err.h"

struct agent_record;
struct run;
struct settings;

/* `base` is borrowed for the call. Not called when the run has failed or stops meanwhile. */
typedef void (*run_base_done_fn)(struct run *run, const char *base);
/* Calls done once, maybe at once. A commit that cannot be found fails the run. */
void run_base_choose(struct run *run, run_base_done_fn done);
/* The record run.base; none when the journal has it already. */
void run_base_record(struct run *run, const char *base);

/* What is wrong with --base, --dirty and --branch-prefix whatever the repository: nothing is started for it. */
int run_base_check(const struct settings *s, struct err *err);
/* An agent that writes needs a boundary, or the user's word (--unconfined). */
int run_box_check(struct run *run, const struct agent_record *agent, struct err *err);

#endif
