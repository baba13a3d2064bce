/*
 * collect.h - bringing an ended agent's work home.
 *
 * Steps, each a git operation: status; commit_rest (uncommitted work becomes a commit on the
 * branch, unless a merge or rebase is in progress: then a checkpoint); import (the branch moves in
 * the user's repository); status again and diff. A step that fails keeps the worktree and says why.
 * Then the agent is DONE.
 */
#ifndef BATON_ORCHESTRATOR_COLLECT_H
#define BATON_ORCHESTRATOR_COLLECT_H

struct agent_record;

/* Begins once nothing of the agent's is under way any more: its worktree's creation, its setup
 * command, a hook, a checkpoint. Their ends call this again. */
void collect_start(struct agent_record *agent);

#endif
