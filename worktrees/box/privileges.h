/*
 * privileges.h - giving up what only root may do (internal to box/).
 */
#ifndef BATON_WORKTREES_BOX_PRIVILEGES_H
#define BATON_WORKTREES_BOX_PRIVILEGES_H

#include "base/err.h"

/* No new privileges by exec, and of root's capabilities only those that builds use on files. */
int privileges_drop(struct err *err);

#endif
