/*
 * runs.h - runs on disk, read-only: for ls, show, diff, stop, clean, adopt.
 */
#ifndef BATON_ORCHESTRATOR_RUNS_H
#define BATON_ORCHESTRATOR_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "orchestrator/settings.h"

/* One agent, as the journal tells it. */
struct past_agent {
	char *name, *role, *status, *reason, *branch, *base, *worktree, *commit, *kept;
	char *adopted; /* where the user's worktree is that it became, or was last seen; NULL */
	bool worktree_made;
	int64_t rounds, generation;
};

struct past_run {
	char *id, *dir, *command, *task, *model, *status, *reason, *worktrees;
	char *toplevel; /* a checkout of the repository, where it is now (runs_list, runs_find) */
	int64_t started_ms, ended_ms; /* wall; 0 if unknown */
	double cost;
	bool cost_known; /* the model has prices */
	bool alive;	 /* its lock is held */
	bool resumable;	 /* `baton resume` can go on with it */
	bool recorded;	 /* its settings are on record, without which it cannot */
	pid_t pid;	 /* of the parent, if alive */
	struct past_agent *agents;
	size_t n_agents, cap_agents;
	int64_t bad_lines;
};

/* <common>/baton/runs of the repository that -C or the working folder is in; caller frees. NULL: it is in none. */
char *runs_folder(const struct settings *s, struct err *err);
/* All runs of the repository that -C or the working folder is in, oldest first. */
int runs_list(const struct settings *s, struct past_run **ret, size_t *ret_count, struct err *err);
void runs_free(struct past_run *runs, size_t count);

/* The run named by "RUN" or "RUN/AGENT" (unique prefixes do; no name: the newest). *ret_agent may
 * be NULL if no agent was named; with want_agent a run of one agent needs none. The error names the
 * candidates. */
int runs_find(const struct settings *s, const char *name, bool want_agent, struct past_run *ret,
	      struct past_agent **ret_agent, struct err *err);
/* Index of the run that `name` (up to a slash) means among these, or -1 with err. */
long runs_pick(const struct past_run *runs, size_t n, const char *name, struct err *err);
void run_release(struct past_run *run);
/* Reads it again. A run that was seen ended never works again, so what is read now is the last word; the
 * first look may have read the journal a moment before the run's last records. */
void run_reread(struct past_run *run);

/* Notes beside the run's records that the user took the agent's worktree over, as `path`. */
int past_agent_adopted(const struct past_run *run, const struct past_agent *agent, const char *path,
		       struct err *err);
/* {agent: path} of the worktrees that the user took over, or NULL; caller puts it. */
struct json_object *past_run_adopted(const struct past_run *run);

/* {"run", "agent", "branch", "base", "worktree", "git_dir"}; caller puts it. */
struct json_object *past_agent_entry(const struct past_run *run, const struct past_agent *agent);

#endif
