/*
 * trace_calls.h - which system calls are traced, and what their registers mean. Private to the tracer.
 */
#ifndef BATON_TESTS_FAULTS_TRACE_CALLS_H
#define BATON_TESTS_FAULTS_TRACE_CALLS_H

#include <limits.h>
#include <sys/user.h>

#include "tests/faults/trace.h"

/* What an event borrows its strings from. */
struct trace_strings {
	char path[PATH_MAX], path2[PATH_MAX];
};

/* In the child, before exec: stops at the calls of the table from now on, in all that descend from it. */
int trace_filter_install(void);

/* Fills the event of a call at its entry (all but process and ordinal). False: it is none of ours (a write into a pipe, a
 * new thread). */
bool trace_decode(pid_t tid, const struct user_regs_struct *regs, struct trace_event *ret,
		  struct trace_strings *strings);

/* A call by which a process hides from debuggers, and so from us: it is answered without being done. */
bool trace_hides(const struct user_regs_struct *regs);

/* At the exit of a write: where it began. */
uint64_t trace_write_offset(const struct trace_event *e);

#endif
