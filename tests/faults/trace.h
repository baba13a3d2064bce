/*
 * trace.h - watches what a command and all its processes do to disk and channels, and stops it there.
 *
 * baton is one static program, so nothing can be put before its calls by LD_PRELOAD; the seam is the system call
 * itself. The tracer runs the command below it (ptrace, with a seccomp filter that stops at the calls of trace_calls.c
 * alone, so that all others cost nothing) and tells observers of each one. An observer's answer lets the call happen,
 * makes it fail, or kills.
 *
 * A point is (process, operation, ordinal): process is a role and not a number, so that a point means the same in
 * another run of the same job. Where processes race, ordinals differ between two runs; whoever asks for a point has to
 * look whether it was reached.
 */
#ifndef BATON_TESTS_FAULTS_TRACE_H
#define BATON_TESTS_FAULTS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum trace_op {
	TRACE_WRITE,  /* of a regular file */
	TRACE_FSYNC,  /* fsync, fdatasync, syncfs */
	TRACE_RENAME, /* path to path2 */
	TRACE_LINK,   /* path2 is made; path is what it links to (of a symbolic link its text) */
	TRACE_UNLINK, /* also of folders */
	TRACE_CREATE, /* an open that may make the file (O_CREAT) */
	TRACE_MKDIR,
	TRACE_TRUNCATE, /* also fallocate */
	TRACE_FORK,	/* of a process; threads are none */
	TRACE_FRAME, /* something is sent through a socket: path is the frame's type, "-" for other bytes */
	TRACE_OPS
};
const char *trace_op_name(enum trace_op op);
bool trace_op_named(const char *name, enum trace_op *ret);

/* A traced call, while its process stands still. Strings are borrowed until the observer returns. */
struct trace_event {
	pid_t pid; /* of the process, also where a thread of it calls */
	const char *
		process; /* warden, parent, a1.1 (agent and generation), agent (not told yet which), git, gateway,
				rehearsal, view, tool (what agents and jobs start), other */
	const char *call; /* "fdatasync" */
	enum trace_op op;
	unsigned
		ordinal; /* the n-th of this operation in this process, from 1; the same at entry and exit */
	bool entry;
	long result;	  /* at exit: what the call returns, -errno for a failure */
	int fd;		  /* -1: none */
	int flags;	  /* of an open */
	const char *path; /* absolute; NULL: unknown. Of a descriptor the path that it has now. */
	const char *path2;
	uint64_t offset,
		length; /* write: where it begins (known at exit only) and how much is asked for; truncate: length */
};

enum trace_order {
	TRACE_GO = 0,
	TRACE_KILL = 1,	    /* SIGKILL to this process; at entry the call does not happen */
	TRACE_KILL_ALL = 2, /* SIGKILL to all at once, as if the machine were gone */
	TRACE_TEAR = 3,	    /* of a write, at entry: half of it happens, then TRACE_KILL */
};

struct trace_observer {
	void *arg;
	/* Returns a trace_order, or -errno at an entry: the call fails with it and does nothing. The first observer that
	 * does not say TRACE_GO is followed; all are told. After TRACE_KILL_ALL nobody is told of anything. */
	int (*event)(void *arg, const struct trace_event *e);
	bool exits; /* wants exits too; entries only cost half */
	bool tools; /* wants what tools do, too: they are no points, and paths in a box with own mounts are not ours */
};

struct trace_end {
	int status;	/* exit status of the command; 128 + signal */
	bool timed_out; /* limit_s was over: everything was killed */
	unsigned
		left; /* processes that outlived the command by more than 5 seconds, named on stderr and killed */
};

/* Runs the command (argv[0] is searched in PATH) and waits until none of its processes is left. -1: it could not be
 * started or traced; ERR_UNSUPPORTED: this machine cannot. limit_s 0: none. */
int trace_run(char *const argv[], unsigned limit_s, const struct trace_observer *observers,
	      size_t n, struct trace_end *ret, struct err *err);

#endif
