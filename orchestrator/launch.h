/*
 * launch.h - the way of a command that works with agents: model, processes, the printed outcome.
 */
#ifndef BATON_ORCHESTRATOR_LAUNCH_H
#define BATON_ORCHESTRATOR_LAUNCH_H

struct run;

/* Opens the model, runs to the end and prints what a person reads. Returns the exit status; the run
 * is freed. */
int run_launch(struct run *run);

#endif
