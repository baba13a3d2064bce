/*
 * agent_start.h - what an agent gets to begin with: its worktree and its start document.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_START_H
#define BATON_ORCHESTRATOR_AGENT_START_H

#include <stdbool.h>

struct agent_record;
struct json_object;
struct run;

/* Asks baton-git for the worktree; `ready` goes to the agent when it is there (after the setup
 * command, if one is configured). */
void agent_make_worktree(struct agent_record *agent);
/* It is there, new or again: the setup command runs if it waits for it, then tools may begin. */
void agent_worktree_made(struct agent_record *agent);
/* Sends the start document (docs/documents.md). */
void agent_send_start(struct agent_record *agent);
/* The same, if it said hello and nothing holds it back. */
void agent_start_if_ready(struct agent_record *agent);
/* {"run", "agent", "branch", "base", "worktree", "git_dir"} for git operations; caller puts it. */
struct json_object *agent_git_entry(const struct agent_record *agent);
/* What boxes of this agent may read beside its own folders: --read-paths, the user's objects and
 * those that they borrow from. NULL-terminated; free with env_list_free. */
char **agent_read_paths(const struct agent_record *agent);
/* The same for a box of the run's own; `objects`: with those of the user's repository. */
char **run_read_paths(const struct run *run, bool objects);
/* "none", "loopback" or "open": the user's --network, or less if its role asks for less. */
const char *agent_network(const struct agent_record *agent);

#endif
