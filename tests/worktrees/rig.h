/*
 * rig.h - a real repository in a temporary folder and a real baton-git beside it.
 *
 * Used by the tests of worktrees/ and by its benchmark. Every rig has a HOME, a state folder and a
 * repository of its own; git runs with that HOME only. Shell scripts are how a test plays the user
 * and the agent.
 */
#ifndef BATON_TESTS_WORKTREES_RIG_H
#define BATON_TESTS_WORKTREES_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "handoff/channel.h"
#include "worktrees/client.h"

struct rig {
	char *dir;  /* temporary folder of everything */
	char *repo; /* the user's checkout */
	struct channel *channel;
	struct git_client *client;
	pid_t pid;
	const char *git; /* the program that baton-git starts; NULL: /usr/bin/git */
	bool ready;
};

/* Makes folders, HOME and an empty repository with this init line ("git init -q repo"). */
void rig_make(struct rig *rig, const char *init);
/* Starts baton-git (program in $BATON_GIT) and waits until it is ready. */
void rig_start(struct rig *rig, const char *repository);
void rig_stop(struct rig *rig); /* ends it and waits; asserts that it ends well */
void rig_kill(struct rig *rig); /* SIGKILL, as a crash */
void rig_free(struct rig *rig); /* removes the folder */

/* Runs a shell script in a folder below rig->dir; asserts success and returns its output without
 * the last newline (caller frees). */
char *rig_sh(struct rig *rig, const char *folder, const char *script);
int rig_sh_status(struct rig *rig, const char *folder, const char *script);
/* Its status as of waitpid, and its output appended; nothing is asserted. */
int rig_sh_output(struct rig *rig, const char *folder, const char *script, struct buf *out);

/* One operation, waited for. NULL and err on failure; the answer is the caller's. body is put. */
struct json_object *rig_call(struct rig *rig, const char *op, struct json_object *body,
			     struct err *err);
/* The same, asserting success. */
struct json_object *rig_ok(struct rig *rig, const char *op, struct json_object *body);
/* Turns the loop once; false after the deadline. */
bool rig_turn(struct rig *rig, int64_t deadline);

/* The entry of an agent as documents.md has it. */
struct json_object *rig_entry(struct rig *rig, const char *run, const char *agent,
			      const char *base);
char *rig_worktree(struct rig *rig, const char *run, const char *agent);
/* Creates it from HEAD and returns the answer. */
struct json_object *rig_create(struct rig *rig, const char *run, const char *agent);

#endif
