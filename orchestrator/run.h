/*
 * run.h - one run: its folders, services, agents, budget, journal and loop; the parent's whole
 * state.
 *
 * A command makes a run, gives it a driver (what to do when the repository is known, when an agent
 * is done) and calls run_main, which returns the exit status. Drivers never wait: they queue agents
 * and git operations and are called back.
 *
 * States of a run and legal moves:
 *
 *   OPENING -> WORKING -> CLOSING -> CLOSED
 *
 * OPENING: services start, the repository is looked at, the folder and the journal are made.
 * WORKING: the driver's agents run. CLOSING: report and last records are written, services are
 * stopped. A stop (signal, budget, broken journal) asks every agent to end and goes on to CLOSING
 * when the last one is collected.
 */
#ifndef BATON_ORCHESTRATOR_RUN_H
#define BATON_ORCHESTRATOR_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/model_table.h"
#include "handoff/call.h"
#include "orchestrator/agents.h"
#include "orchestrator/calibration.h"
#include "orchestrator/pause.h"
#include "orchestrator/project_memory.h"
#include "orchestrator/run_budget.h"
#include "orchestrator/child.h"
#include "orchestrator/command.h"
#include "orchestrator/journal.h"
#include "orchestrator/settings.h"
#include "orchestrator/stage_budget.h"
#include "worktrees/box/box.h"
#include "worktrees/client.h"

struct event;
struct event_base;
struct replay;
struct run;

enum run_state { RUN_OPENING, RUN_WORKING, RUN_CLOSING, RUN_CLOSED };

struct run_driver {
	const char *command; /* "run" */
	bool branches;	     /* agents get branches: their names must be free */
	/* The repository is known and the journal is open: queue the first work. -1 ends the run as
	 * failed. */
	int (*start)(struct run *run, void *arg, struct err *err);
	/* An agent is DONE (collected). Queue more, or call run_finish. Also called while stopping;
	 * then nothing may be queued. */
	void (*agent_done)(struct run *run, struct agent_record *agent, void *arg);
	/* The run is over: fills the report's body; outcome.h puts it beside the rest. */
	void (*report)(struct run *run, void *arg);
	/* The report is on disk: writes what the user asked for elsewhere; failures by
	 * run_output_failed. May be NULL. */
	void (*deliver)(struct run *run, void *arg);
};

struct run {
	enum run_state state;
	struct settings *settings;
	const struct run_driver *driver;
	void *driver_arg;
	const char *task; /* the user's words; for review what is reviewed */

	char id[32];			  /* "261130-k7x2" */
	struct json_object *repository;	  /* answer of discover */
	struct json_object *instructions; /* M1, each with its origin */
	char *common_dir, *toplevel;
	char *dir;	     /* <common>/baton/runs/<id> */
	char *worktrees_dir; /* $XDG_STATE_HOME/baton/worktrees/<repo>-<hash>/<id> */
	int lock_fd;
	struct replay *replay; /* of a run that goes on: what its journal says; owned; NULL */
	int64_t before_ms;     /* that earlier parents worked */

	struct event_base *base;
	struct children *children;
	struct journal *journal; /* NULL before the folder exists */
	struct event *ev_int, *ev_term, *ev_hup, *ev_time, *ev_tick;
	int poke_fd; /* the view is told that the journal grew; -1 */
	struct child *view;
	int64_t started_ms; /* monotonic */
	int64_t started_wall_ms;

	char *provider, *model_name;
	struct model *model;
	struct json_object *provider_json; /* for the gateway's start */
	char *rehearsal;		   /* scenario path or NULL */
	struct child *rehearsal_child;
	int rehearsal_out;
	struct event *ev_rehearsal;
	struct buf rehearsal_line;

	struct child *gateway;
	bool gateway_ready;
	int key_fd;		   /* sealed memfd; -1 */
	int64_t gateway_deaths[5]; /* monotonic ms of the last ones */
	size_t n_gateway_deaths;
	struct call_relay *relay;

	struct child *git;
	struct git_client *git_client;

	struct child *spare; /* an agent's process without an agent yet, see spare.h */
	bool spare_said_hello;
	struct agent_pool agents;
	struct run_budget budget;
	struct stage_budgets stages;
	struct run_pause pause;
	struct calibration calibration; /* of tokenizers: not touched by rehearsals */
	struct project_memory memory;
	struct event *ev_budget;
	struct control *control; /* NULL: nobody can be heard */

	bool golden_told;	  /* that no golden-set result is on record (H16) */
	uint64_t hooks_told;	  /* a bit for each setting whose failure the user has heard of */
	enum box_level box_level; /* what confines the agents' shells */
	pid_t warden_pid;	  /* 0: none */
	int64_t interrupted_ms;
	int interrupts; /* SIGINT, SIGTERM, SIGHUP so far */
	bool stopping;
	bool failure_told; /* the reason was printed, before there was a journal */
	bool finish_wanted;
	int pending;	   /* operations of the driver that closing waits for */
	bool sweep_wanted; /* strays of a dead agent are still there */
	enum exit_status exit_status;
	char *stop_reason; /* "interrupted", "budget: ..." or NULL */
	char *way_on;	   /* the command line that goes on with it, where it needs options */
	struct json_object *report; /* what the driver says of the outcome */
};

/* Can it go on after this end (`baton resume`)? */
bool run_is_resumable(const struct run *run);
/* It goes on from there: id, task and books are taken, `replay` and the locked `lock_fd` are the run's. To be
 * called before run_launch. */
void run_take_up(struct run *run, const char *id, struct replay *replay, int lock_fd);

/* Makes the run and starts services; settings stay the caller's. */
struct run *run_new(struct settings *settings, const struct run_driver *driver, void *arg);
int run_main(struct run *run); /* the loop; the exit status */
void run_free(struct run *run);

/* Ends the run when all agents are collected. The first call decides status and reason. */
void run_finish(struct run *run, enum exit_status status, const char *reason);
/* Asks every agent to end now (control stop), then finishes. */
void run_stop(struct run *run, enum exit_status status, const char *reason);
/* Before the journal exists a failure is printed; afterwards it is a record too. */
void run_fail(struct run *run, const struct err *err);

/* A report or record could not be written: told, and the run has failed, whatever it was before. */
void run_output_failed(struct run *run, const struct err *err);

/* A path below the run's folder; caller frees. */
char *run_path(const struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For the journal: NAN, which it leaves out, where the model has no known prices. */
double run_cost(const struct run *run, double cost);
const char *run_status_name(const struct run *run); /* succeeded, failed, stopped, budget */

#endif
