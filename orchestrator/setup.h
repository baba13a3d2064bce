/*
 * setup.h - the `setup` command of a new worktree, run once in a box with a time limit (trap 126).
 */
#ifndef BATON_ORCHESTRATOR_SETUP_H
#define BATON_ORCHESTRATOR_SETUP_H

struct agent_record;

typedef void (*setup_done_fn)(struct agent_record *agent, const char *failure);
/* Calls done once, later: with NULL, or with the failure and the end of the command's output. */
void setup_run(struct agent_record *agent, const char *command, setup_done_fn done);

#endif
