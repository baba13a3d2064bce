/*
 * trace_role.h - what a process is in a run, and how often it did what. Private to the tracer.
 *
 * A role is found by the program that a process runs, and an agent's number by the first path below its own folder. Its
 * counters belong to the name: a gateway that is started again goes on counting.
 */
#ifndef BATON_TESTS_FAULTS_TRACE_ROLE_H
#define BATON_TESTS_FAULTS_TRACE_ROLE_H

#include "tests/faults/trace.h"

struct trace_role {
	char *name;
	bool tool; /* what agents and jobs start: no points */
	unsigned counts[TRACE_OPS];
};

struct trace_roles {
	struct trace_role **list; /* they stay where they are */
	size_t n, cap;
};

struct trace_role *trace_role_named(struct trace_roles *roles, const char *name);
void trace_roles_release(struct trace_roles *roles);

/* Of the command itself, of a new process by its parent's role, and after an exec. */
struct trace_role *trace_role_first(struct trace_roles *roles);
struct trace_role *trace_role_forked(struct trace_roles *roles, struct trace_role *parent);
struct trace_role *trace_role_executed(struct trace_roles *roles, struct trace_role *before,
				       pid_t pid);
/* An agent that has not been told who it is shows it by the files that it makes; any other role stays. */
struct trace_role *trace_role_touched(struct trace_roles *roles, struct trace_role *role,
				      const char *path);

#endif
