/*
 * procs.h - which processes below this agent belong to which job.
 */
#ifndef BATON_AGENT_TOOLS_PROCS_H
#define BATON_AGENT_TOOLS_PROCS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

struct job;

/* Our direct children that belong to running jobs of the list: leaders, members of their sessions,
 * and those that carry their BATON_JOB. Caller frees. */
size_t procs_of_running_jobs(const struct job *jobs, pid_t **ret);

/* Appends the names of our direct children that are not in keep ("sleep, node"); returns their
 * number. */
size_t procs_name_others(const pid_t *keep, size_t n_keep, struct buf *out);

#endif
