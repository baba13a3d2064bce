/*
 * replay.h - a run's journal, folded into what the parent has to know to go on (I10, R6).
 *
 * The journal alone says what a run was: its settings, its agents under their keys, what each of them asked for and
 * was answered, what it spent. run.json stands in for `run.started` where that line is damaged. Lines that are no
 * records are counted and passed over; a record that stands there twice, byte for byte, counts once.
 *
 * Read-only and pure but for reading the file. Used by `baton resume` before the run (may it go on?) and by the
 * run itself (run.h), which owns it.
 */
#ifndef BATON_ORCHESTRATOR_REPLAY_H
#define BATON_ORCHESTRATOR_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "handoff/frame.h"
#include "handoff/outcome.h"
#include "orchestrator/reset.h"
#include "orchestrator/run_budget.h"

/* An effect that was carried out, and what was answered (effects.h). */
struct replay_effect {
	enum frame_type type;
	int64_t generation;
	char *call;
	bool ok;
	char *body;
};

/* A reservation without a settlement: what it may have cost counts as spent. */
struct replay_call {
	int64_t req, tokens;
	double cost;
};

struct replay_agent {
	char *name, *key, *role, *branch, *worktree, *base, *task;
	int number; /* of its name; 0: no name of ours */
	int64_t generation;
	pid_t pid; /* of its last process; 0: its end is on record */
	bool spawned, worktree_made;
	bool ended, done; /* since its last spawn: its process is gone; its work is collected */
	bool incomplete;  /* collecting failed in a step */
	bool reset;	  /* its generation has ended with a handoff, and none follows yet */
	enum outcome_status status; /* NONE: it works, or worked when the journal ends */
	char *reason, *class, *kept, *tip, *checkpoint;
	struct json_object *report; /* as journaled; NULL */
	char *report_call;
	struct json_object *memory; /* what it noted for later runs; NULL */
	int64_t rounds, rounds_before, tool_calls, failed_calls, compactions;
	int64_t worked_ms; /* of its processes */
	int64_t from_ms; /* wall time at which the one began whose end is not on record; 0: none */
	char *stage;	 /* NULL: none */
	struct budget_usage usage;
	struct replay_effect *effects;
	size_t n_effects, cap_effects;
	struct replay_call *calls;
	size_t n_calls, cap_calls;
	struct agent_resets resets;
	struct json_object *asked; /* the record agent.asked, of one that an agent started; NULL */
	bool told;		   /* its end came to the one that started it, ... */
	bool unwanted;		   /* ... who had asked it to stop */
};

struct replay {
	bool started; /* run.started is there */
	struct json_object
		*request; /* run.started or run.json: command, task, model, arguments ... */
	struct json_object *settings; /* settings_record of the last start or resumption */
	char *toplevel;		      /* where the repository is now; the caller's to set */
	char *base;		      /* commit that `run` began from; NULL: not chosen yet */
	struct json_object *sharded;  /* record of `review`; NULL */
	bool finished, resumable;
	char *status, *reason;
	int64_t exit_status, resumes;
	pid_t pid;	    /* of the last parent */
	int64_t elapsed_ms; /* that parents worked */
	int64_t last_ms;    /* wall time of the last record */
	int64_t started_ms; /* wall time of the first */
	int64_t size;	    /* bytes of the journal that was read */
	struct budget_usage used;
	int64_t unsettled; /* calls that count by their reservation */
	int64_t bad_lines, first_bad_line, duplicates;
	struct replay_agent **agents;
	size_t n_agents, cap_agents;
};

/* Reads DIR/run.jsonl and DIR/run.json. ERR_NOT_FOUND: neither tells what the run was. Caller frees. */
int replay_read(const char *dir, struct replay **ret, struct err *err);
void replay_free(struct replay *replay); /* NULL allowed */

/* NULL: the journal knows no such agent. */
struct replay_agent *replay_by_key(const struct replay *replay, const char *key);
bool replay_number_taken(const struct replay *replay, int number);
/* May a run with this end go on? NULL: yes; else why not, and what to do instead. Caller frees. */
char *replay_refusal(const struct replay *replay, const char *run);

#endif
