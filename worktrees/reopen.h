/*
 * reopen.h - what making a worktree whole again consists of. Private to op_reopen; see reopen.c and mend.c.
 */
#ifndef BATON_WORKTREES_REOPEN_H
#define BATON_WORKTREES_REOPEN_H

#include "base/err.h"
#include "base/json.h"
#include "worktrees/work.h"

/* A line for the agent. */
void reopen_note(struct json_object *notes, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Its HEAD, branch and index lead to objects that are there, and baton's own indexes are gone. */
int reopen_mend_git(struct work *work, struct json_object *notes, struct err *err);

#endif
