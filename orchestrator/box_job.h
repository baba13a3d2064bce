/*
 * box_job.h - one command of the user's as a job of the parent: bash in a box, output to a file, a time limit.
 *
 * The one way to run what is not an agent's and not a hook (those answer by pipes, hook_job.h): the setup of a
 * worktree, gates. Its output is a file and no pipe: nobody has to read while it runs, and it may be as long as it
 * likes without filling anybody's memory.
 */
#ifndef BATON_ORCHESTRATOR_BOX_JOB_H
#define BATON_ORCHESTRATOR_BOX_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "handoff/box_command.h"

struct box_job;
struct run;

/* Borrowed for the call. */
struct box_job_spec {
	const char *name; /* in the log: "setup" */
	const char *command;
	const struct box_command
		*box;	 /* `program` is filled in here; the command works in box->worktree */
	const char *log; /* file of its output, made anew */
	int64_t timeout_ms;
};

struct box_job_end {
	int wait_status;
	bool timed_out;
	bool stopped; /* by box_job_stop, or because the run ends */
	int64_t ms;
};
/* Its process is gone; the job is freed after this returns. */
typedef void (*box_job_done_fn)(const struct box_job_end *end, void *arg);

/* done is called once, later. NULL with err: it could not be started. The job frees itself and is valid until done. A
 * run that has a box starts nothing without one. */
struct box_job *box_job_start(struct run *run, const struct box_job_spec *spec,
			      box_job_done_fn done, void *arg, struct err *err);
/* TERM now, KILL soon; done is still called. */
void box_job_stop(struct box_job *job);

/* Appends the last `max` bytes of an output at most, printable, from the start of a line where there is one. */
void box_job_tail(struct buf *out, const char *log, size_t max);

#endif
