/*
 * syscall_filter.h - the system calls that a box refuses (internal to box/).
 */
#ifndef BATON_WORKTREES_BOX_SYSCALL_FILTER_H
#define BATON_WORKTREES_BOX_SYSCALL_FILTER_H

#include <stdbool.h>

#include "base/err.h"
#include "worktrees/box/box.h"

/* Installs the filter for the calling thread, for good. With guard_truncate, truncation that
 * Landlock below ABI 3 does not see is refused too. */
int syscall_filter_apply(enum box_network network, bool guard_truncate, struct err *err);

#endif
