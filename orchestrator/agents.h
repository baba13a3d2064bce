/*
 * agents.h - the parent's side of its agents: spawn, frames, stop, collect.
 *
 * States and legal moves:
 *
 *     from                  to           when
 *     QUEUED                PREPARING    a slot is free (agents_pump)
 *     QUEUED                DONE         the run stops before it has one
 *     PREPARING             WORKING      it has its start document
 *     WORKING               ENDING       its result frame came
 *     PREPARING..ENDING     COLLECTING   its process is gone, with or without a result (then it is lost)
 *     COLLECTING            PREPARING    it ended with a reset: the next generation starts (agent_next)
 *     COLLECTING            DONE         its work is home
 *
 * Of a run that goes on (agent_resume.h) the journal knows agents already; then also:
 *
 *     PREPARING             COLLECTING   its process had ended: its work is brought home, or only looked at
 *
 * PREPARING: the process runs and said hello or not yet; its worktree is being made at the same time.
 * COLLECTING: baton-git brings its work home (uncommitted work becomes a commit, the branch is imported, status and
 * diff are read). DONE frees the slot and calls the driver. Whatever the state, the agent's name, worktree, private
 * repository, branch and books are one; a generation is a process, a folder and a transcript.
 */
#ifndef BATON_ORCHESTRATOR_AGENTS_H
#define BATON_ORCHESTRATOR_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/event.h"
#include "handoff/outcome.h"
#include "orchestrator/command.h"
#include "orchestrator/effects.h"
#include "orchestrator/reset.h"
#include "orchestrator/run_budget.h"
#include "orchestrator/role.h"

struct box_job;
struct child;
struct event;
struct replay_agent;
struct run;

enum agent_state {
	AGENT_QUEUED,
	AGENT_PREPARING,
	AGENT_WORKING,
	AGENT_ENDING,
	AGENT_COLLECTING,
	AGENT_DONE,
};

/* Of an agent that another one started (subagents.h). */
struct agent_family {
	struct agent_record *spawner; /* NULL: the run's own */
	int64_t depth;		      /* 0: the run's own */
	int64_t max_tokens;	      /* of it and of those that it starts; 0: the run's alone */
	double max_cost;	      /* the same in USD */
	size_t asked;		      /* agents that it asked for and that are not made yet */
	bool told;		      /* its end has come to its spawner's model */
	bool foreign_role;	      /* whoever it starts may not take the project's roles */
	int64_t fork_of; /* generation of its spawner whose conversation it began with (A2); 0: no fork */
};

/* What an agent is to do. Strings are copied. */
struct agent_spec {
	/* Says which piece of the run's work this is, the same whenever the run goes on: "lead", "shard:3". */
	const char *key;
	const char *role; /* name for role_load */
	const char *task;
	bool task_of_user;
	const char *brief; /* may be NULL */
	const char
		*view; /* absolute path of a shared read-only tree; NULL: a worktree of its own */
	const char *base;  /* commit; needed when view is NULL */
	bool foreign_role; /* not one of the project's: what is reviewed may not choose its reviewer
			    */
	struct json_object *output_schema; /* overrides the role's; may be NULL; borrowed */
	int64_t max_rounds;		   /* 0: the role's or the run's */
	const char
		*stage; /* whose budget it shares (stage_budget.h); NULL: none, or its spawner's */
	struct agent_family family; /* of one that an agent started: spawner, depth, limit */
	void *arg;		    /* the driver's */
};

/* One open reservation of an agent's call. */
struct agent_call {
	int64_t req;
	struct reservation reservation;
	int64_t estimate;
	int64_t bytes_down;		   /* of the attempt, when it ended without usage */
	bool over;			   /* the gateway ended it; usage is awaited */
	bool background;		   /* nobody waits for it */
	const char *waits_for;		   /* as the agent was told; NULL: it is not held back */
	const struct run_budget *short_of; /* does not cover it, with nothing in flight; NULL */
	const struct model *model;	   /* whose prices it has */
};

struct agent_record {
	struct run *run;
	char name[16]; /* "a1" */
	int number;
	char *key;
	struct replay_agent *past; /* what the journal knows of it, of a run that goes on; NULL */
	int64_t generation;
	enum agent_state state;
	struct role *role;
	struct model *model;	     /* the run's, or own_model */
	struct model *own_model;     /* that the role names; NULL */
	struct model *compact_model; /* that summarises (H16); NULL: its own */
	char *task, *brief, *view, *base, *stage;
	bool task_of_user;
	struct json_object *output_schema;
	int64_t max_rounds;
	void *arg;

	struct agent_family family;
	struct child *child; /* NULL when it is gone */
	bool said_hello, sent_start;
	bool worktree_made; /* git create answered ok */
	char *worktree, *git_dir, *branch, *dir, *gen_dir;
	enum { READY_UNKNOWN, READY_OK, READY_FAILED } ready;
	char *ready_message;
	bool create_pending;	    /* baton-git has not answered yet: collecting waits for it */
	struct box_job *setup;	    /* the running setup command, or NULL */
	struct hook_question *hook; /* a hook of it runs or waits for the worktree; NULL */
	bool setup_pending;	    /* the start document waits for the setup command */
	bool reopening;		    /* it waits for the worktree of a run that goes on */
	bool resume;		    /* the transcript of this generation is to be gone on with */
	struct json_object *notes;  /* what it should know of the interruption; NULL */

	enum outcome_status status; /* NONE while it works; never RESET */
	char *reason;
	struct effects effects;	     /* what it asked for, by key */
	struct json_object *report;  /* as journaled: what was claimed */
	struct json_object *seen;    /* what the parent saw (X5) */
	struct json_object *result;  /* body of the result frame */
	struct json_object *changes; /* answer of status: commits, files */
	char *diff_stat;
	char *merged_tip;    /* commit of the branch after import, or NULL */
	bool half_removed;   /* its worktree, when its run was cut off */
	bool collect_failed; /* its work could not be brought home whole: kept says why */
	bool kept_for_room; /* a step of bringing it home found no room, and a resumption makes it again */
	char *kept;	    /* why the worktree is kept, or NULL */

	struct agent_resets resets;
	char *no_reset; /* why no further one may follow; NULL */
	bool succeed;	/* this generation ended with an accepted handoff: another one follows */

	int64_t rounds, tool_calls, failed_calls;
	int64_t rounds_before; /* of earlier generations */
	int64_t compactions;   /* that made a summary, or facts in its place */
	int64_t worked_ms,
		began_ms; /* of its processes that are gone; monotonic, of the present one */
	int64_t last_progress_ms; /* monotonic */
	enum activity activity;	  /* as it said last */
	struct agent_call calls[8];
	size_t n_calls;
	struct budget_usage usage;
	struct run_budget
		budget; /* of it and of those that it starts; above: its spawner's or the run's */
	int64_t used, window; /* tokens of the last request; the model's window */
	struct event *ev_deadline;
	bool paused;   /* by a person; those that it starts with it */
	int stop_step; /* 0: not asked to stop */
	bool asked_report;
};

#define AGENT_HELLO_MS 30000 /* from the spawn to hello */

struct agent_pool {
	struct agent_record **list;
	size_t count, cap;
	size_t live;  /* PREPARING to COLLECTING */
	size_t limit; /* --agents */
	bool pumping;
};

/* Queues an agent; NULL with err if its role is unusable. Owned by the run. */
struct agent_record *agent_queue(struct run *run, const struct agent_spec *spec, struct err *err);
/* Starts queued agents while slots are free; not more at once than the machine can load (agents.c). */
void agents_pump(struct run *run);
/* A process for this generation; its worktree is made, opened again, or there. For agent_resume.c. */
void agent_launch(struct agent_record *agent);
/* COLLECTING -> PREPARING, with an accepted handoff. */
void agent_next(struct agent_record *agent);
/* The record of its end. */
void agent_journal_ended(const struct agent_record *agent);
/* A person's wish on its window (docs/control.md). False: it does not work now. */
bool agent_ask_compact(struct agent_record *agent, const char *wish, size_t n);
/* A person's wish for a Context Reset. False: it does not work now. */
bool agent_ask_reset(struct agent_record *agent, const char *why);
/* Words for its model, of a person or of the agent that started it. False: it cannot hear now. */
bool agent_say(struct agent_record *agent, const char *from, const char *text);
/* DONE: whoever wanted it hears of it, the driver or the agent that started it. */
void agent_over(struct agent_record *agent);
/* control stop, later TERM, later KILL; frees nothing by itself. */
void agent_stop(struct agent_record *agent, const char *reason);
/* Ends an agent that cannot work (no worktree, setup failed): status failed with this reason. */
void agent_fail(struct agent_record *agent, const char *reason);
/* A last request to report, then a stop after grace. */
void agent_ask_report(struct agent_record *agent, const char *reason);
void agents_stop_all(struct run *run, const char *reason);
void agents_kill_all(struct run *run);
/* Watchdogs (X6): once a tick. */
void agents_watch(struct run *run);
/* Its result came: the process has a while to end. */
void agent_expect_end(struct agent_record *agent);
/* It said hello: the deadline for that is over. */
void agent_expect_work(struct agent_record *agent);
/* The next step of its ending comes after `ms`, unless something happens (agent_stop.c). */
void agent_arm(struct agent_record *agent, int64_t ms);
/* What the end of this agent means for a run that needed its work. */
enum exit_status agent_exit_status(const struct agent_record *agent);
void agents_release(struct agent_pool *pool);

#endif
