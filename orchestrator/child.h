/*
 * child.h - the registry of the parent's processes: start, frames, stop, reap, in one place.
 *
 * States and legal moves:
 *
 *   RUNNING ----stop----> STOPPING ----grace over----> KILLED
 *      |                     |                            |
 *      +------- exit --------+----------- exit -----------+----> GONE (on_exit, then freed)
 *
 * STOPPING has sent TERM to the process group and runs a timer; KILLED has sent KILL to the group.
 * A child is reaped by waitid(WNOWAIT), KILL to its group, then waitid, so that no group member can
 * outlive its leader unseen. Bad bytes on a child's channel are that child's recorded failure: it
 * is killed, on_exit tells the reason, the parent goes on. An unknown pid is reaped and logged: it
 * is a stray of a dead agent.
 */
#ifndef BATON_ORCHESTRATOR_CHILD_H
#define BATON_ORCHESTRATOR_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/spawn.h"
#include "handoff/channel.h"

struct event_base;

enum child_kind { CHILD_AGENT, CHILD_GATEWAY, CHILD_GIT, CHILD_VIEW, CHILD_REHEARSAL, CHILD_JOB };
const char *child_kind_name(enum child_kind kind);

enum child_state { CHILD_RUNNING, CHILD_STOPPING, CHILD_KILLED, CHILD_GONE };

struct child;
struct children;

struct child_handler {
	/* A frame came; last ones also when the child is GONE, but always before on_closed.
	 * Non-zero with err: protocol failure. May be NULL for children without a channel. */
	int (*on_frame)(struct child *child, const struct frame *frame, struct err *err);
	/* The channel is over and about to be freed: forget it. May be NULL. */
	void (*on_closed)(struct child *child);
	/* The child is gone and reaped; the struct is freed after this returns. `failure` is the
	 * recorded protocol failure or NULL; wait_status as waitpid gives it. */
	void (*on_exit)(struct child *child, int wait_status, const char *failure);
};

struct child {
	enum child_kind kind;
	enum child_state state;
	char name[32]; /* "a1", "gateway" */
	pid_t pid;
	void *arg;		 /* the owner's */
	struct channel *channel; /* NULL: none, or closed */
	/* Internal to child.c. */
	const struct child_handler *handler;
	struct children *set;
	struct child *next;
	int pidfd;
	char *failure;
	struct event *ev_in, *ev_out, *ev_kill;
	int64_t kill_after_ms;
	bool writing;	   /* ev_out is armed */
	bool write_broken; /* the peer reads no more */
};

struct children *children_new(struct event_base *base);
void children_free(struct children *set); /* kills what is left */

struct child_spec {
	enum child_kind kind;
	const char *name;
	const struct child_handler *handler;
	void *arg;
	bool channel;		  /* make a socketpair; the child gets its end as descriptor 3 */
	enum frame_sender sender; /* who speaks on it */
	const char *hello;	  /* role of the hello that must come first; NULL: not checked */
	struct spawn_opts opts;	  /* path, argv, envp, cwd, fds */
};
/* *ret is owned by the set until on_exit. */
int children_spawn(struct children *set, const struct child_spec *spec, struct child **ret,
		   struct err *err);

/* Another owner from the next frame on. */
void child_hand_over(struct child *child, const char *name, const struct child_handler *handler,
		     void *arg);

/* TERM to the group now, KILL after grace_ms. Idempotent; a shorter grace wins. */
void child_stop(struct child *child, int64_t grace_ms);
/* The child ends by itself (its input is over): no TERM, but KILL after grace_ms. */
void child_expect_end(struct child *child, int64_t grace_ms);
/* Records a failure (first one wins) and stops the child at once. */
void child_fail(struct child *child, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

size_t children_count(const struct children *set, int kind); /* kind -1: all */
/* Has one of this kind exited by itself with a status other than 0? */
bool children_failed(const struct children *set, enum child_kind kind);
void children_stop_all(struct children *set, int kind, int64_t grace_ms);
/* To be called once per turn of the loop, after events: writes what channels hold. */
void children_flush(struct children *set);
/* Kills and reaps processes that are descendants of ours but of no living child: strays of dead
 * agents. Returns true when none is left. */
bool children_sweep(struct children *set);

/* "exited with status 3", "killed by signal 9 (SIGKILL)". Returns buf. */
const char *child_describe_exit(int wait_status, char *buf, size_t size);

#endif
