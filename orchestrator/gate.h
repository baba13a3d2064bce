/*
 * gate.h - a gate: a command that must succeed, run in a box in a given tree.
 *
 * Whoever has work judged by a command (the merge queue, the stages of a pipeline, a contract) asks here. Its output is
 * a file of the run's folder, gates/NAME/N.log, and a result holds its end; the exit code outranks what any agent says
 * of the work (X5).
 */
#ifndef BATON_ORCHESTRATOR_GATE_H
#define BATON_ORCHESTRATOR_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct gate;
struct run;

/* Borrowed for the call. */
struct gate_spec {
	const char *
		name; /* names files: "merge", a stage; gates of one name share a folder for caches */
	const char *command; /* for bash -c, in `tree` */
	const char *tree;    /* absolute */
	const char
		*git_dir; /* the repository behind the tree, with the tree's rights; NULL: none */
	const char *network; /* "none", "loopback", "open"; NULL: the run's */
	int64_t timeout_ms;  /* 0: GATE_TIMEOUT_MS */
	bool write; /* the tree may be written: a checkout of its own, or its owner does not work */
};
#define GATE_TIMEOUT_MS (INT64_C(30) * 60 * 1000)

struct gate_result {
	int exit_code; /* -1 where there is none */
	bool timed_out;
	bool signalled; /* it died of a signal */
	bool cancelled; /* by gate_cancel or the run's end: this says nothing of the work */
	int64_t ms;
	const char *tail; /* the end of its output, printable; never NULL */
	const char *path; /* of all its output */
};
bool gate_passed(const struct gate_result *result);
/* "exited with status 2", "reached its time limit". Returns buf. */
const char *gate_describe(const struct gate_result *result, char *buf, size_t size);

/* The command is gone. The result is borrowed for the call, the gate freed after it. May start further gates. */
typedef void (*gate_done_fn)(void *arg, const struct gate_result *result);

/* done is called once, later; the run is not closed before. NULL with err: it could not be started. */
struct gate *gate_start(struct run *run, const struct gate_spec *spec, gate_done_fn done, void *arg,
			struct err *err);
/* TERM now, KILL soon; done is still called, with `cancelled`: the tree is in use until then. */
void gate_cancel(struct gate *gate);

#endif
