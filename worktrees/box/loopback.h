/*
 * loopback.h - a network of one's own that has nothing but 127.0.0.1 (internal to box/).
 */
#ifndef BATON_WORKTREES_BOX_LOOPBACK_H
#define BATON_WORKTREES_BOX_LOOPBACK_H

#include "base/err.h"

/* Moves the process into a new user, network and IPC namespace with its own ids kept and `lo` up.
 */
int loopback_enter(struct err *err);

#endif
