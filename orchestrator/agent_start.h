/*
 * agent_start.h - what an agent gets to begin with: its worktree and its start document.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_START_H
#define BATON_ORCHESTRATOR_AGENT_START_H

struct agent_record;
struct json_object;

/* Asks baton-git for the worktree; `ready` goes to the agent when it is there (after the setup
 * command, if one is configured). */
void agent_make_worktree(struct agent_record *agent);
/* Sends the start document (docs/documents.md). */
void agent_send_start(struct agent_record *agent);
/* The same, if it said hello and nothing holds it back. */
void agent_start_if_ready(struct agent_record *agent);
/* {"run", "agent", "branch", "base", "worktree", "git_dir"} for git operations; caller puts it. */
struct json_object *agent_git_entry(const struct agent_record *agent);

#endif
