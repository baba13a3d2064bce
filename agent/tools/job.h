/*
 * job.h - one command that runs: a foreground call of shell or a background job.
 *
 * States: running -> ended. A job ends when its leader exits, never when its output closes (trap
 * 96); the processes that the leader left behind are then killed, with those of no other running
 * job. Only this module starts, waits for, kills and reaps commands. All waits go through
 * wait_poll.
 */
#ifndef BATON_AGENT_TOOLS_JOB_H
#define BATON_AGENT_TOOLS_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/tools/context.h"

struct job {
	struct job *next;
	char id[16];	 /* "j3"; "" in the foreground */
	unsigned number; /* its BATON_JOB: by it even what left its session is known */
	char *command;	 /* one printable line of it, for people */
	char *output;	 /* "results:shell-3.txt"; NULL: in memory, the disk is full */
	int out_fd;	 /* the file, opened by us, shared by stdout and stderr */
	pid_t pid;	 /* leader of its session and process group */
	int pidfd;
	int64_t started_ms, ended_ms;
	int64_t check_ms;      /* pause between two looks at the output's size */
	off_t last_size, told; /* told: how much of the output poll has shown */
	bool running, announced;
	bool over_size, killed, timed_out;
	int exit_code;	 /* 128 + signal; -1 while it runs */
	int signal;	 /* 0: none */
	struct buf left; /* names of the processes that were still there at its end */
	size_t n_left;
};

struct job_start {
	const char *const *argv;
	const char *const *envp;
	const char *command;
	int cwd_fd;
	bool background;
};

/* Starts it in a session of its own, stdin from /dev/null, output to a new file in results:. The
 * job belongs to the context; drop a foreground one with job_drop. */
int job_start(struct tool_context *ctx, const struct job_start *start, struct job **ret,
	      struct err *err);
/* Waits for its end. -1: ERR_TIMEOUT at the deadline; ERR_CANCELLED and ERR_CLOSED from wait_poll.
 */
int job_wait(struct tool_context *ctx, struct job *job, int64_t deadline_ms, struct err *err);
/* TERM to the group, 1 s, KILL (trap 98). Cut short if the agent is cancelled meanwhile. */
void job_stop(struct tool_context *ctx, struct job *job);
/* For a cancelled call: at most 50 ms between TERM (git then removes its lock files) and KILL. */
void job_kill_now(struct tool_context *ctx, struct job *job);
/* Looks, without waiting, which jobs ended. */
void jobs_collect(struct tool_context *ctx);
void job_drop(struct tool_context *ctx, struct job *job);
struct job *job_find(struct tool_context *ctx, const char *id);
void jobs_end_all(struct tool_context *ctx); /* for tool_context_free */

/* Where its output is, in words. */
const char *job_where(const struct job *job);

/* "exit code 1", "ended by signal 9 (Killed)", "running" and how long. */
void job_describe(const struct job *job, struct buf *out);

#endif
