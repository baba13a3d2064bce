/*
 * collect.h - bringing an ended agent's work home.
 *
 * Two git operations as a rule: commit_rest (uncommitted work becomes a commit on the branch, which moves in the
 * user's repository) and status, with the stat of the diff. Where the first fails, or the agent was lost, step
 * by step: status; commit_rest, or a checkpoint if a merge or rebase is in progress; import; status again. A
 * step that fails keeps the worktree and says why. Then the agent is DONE.
 */
#ifndef BATON_ORCHESTRATOR_COLLECT_H
#define BATON_ORCHESTRATOR_COLLECT_H

#include <stdbool.h>

struct agent_record;

/* Begins once nothing of the agent's is under way any more: its worktree's creation, its setup
 * command, a hook, a checkpoint. Their ends call this again. */
void collect_start(struct agent_record *agent);
/* Of a run that goes on: its worktree was removed, or half removed, after its work was taken over. */
void collect_gone(struct agent_record *agent, bool half);
/* The same of one that was DONE before: reads what its work looks like, and records nothing. */
void collect_look(struct agent_record *agent);

#endif
