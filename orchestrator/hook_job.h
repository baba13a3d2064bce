/*
 * hook_job.h - one hook command as a job of the parent: started, read, limited, reaped.
 */
#ifndef BATON_ORCHESTRATOR_HOOK_JOB_H
#define BATON_ORCHESTRATOR_HOOK_JOB_H

#include <stddef.h>

#include "base/err.h"
#include "handoff/hook.h"
#include "orchestrator/settings.h"

struct agent_record;
struct hook_job;

struct hook_job_end {
	struct hook_result result; /* borrowed for the call */
	int64_t duration_ms, out_bytes;
};
/* The command is gone and its output is read. The job is freed after this returns. */
typedef void (*hook_job_done_fn)(const struct hook_job_end *end, void *arg);

/* Starts the command with `input` on its stdin; done is called once, later. -1: it could not be started. The job frees
 * itself; *ret is valid until done. `hook` is borrowed until then. */
int hook_job_start(struct agent_record *agent, const struct hook_setting *hook, const char *input,
		   size_t n, hook_job_done_fn done, void *arg, struct hook_job **ret,
		   struct err *err);
/* TERM now, KILL soon; done is still called. */
void hook_job_stop(struct hook_job *job);
/* Forgets a job whose process will not be reaped any more, because the loop is over. NULL allowed. */
void hook_job_free(struct hook_job *job);

#endif
