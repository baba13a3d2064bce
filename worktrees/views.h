/*
 * views.h - the register of trees that baton made beside worktrees: views of reviewers, checkouts of gates.
 */
#ifndef BATON_WORKTREES_VIEWS_H
#define BATON_WORKTREES_VIEWS_H

#include "base/err.h"

struct repo;

/* Enters a folder that was just made, by path and identity. */
int view_enter(const struct repo *repo, const char *path, struct err *err);
/* Takes one away that is in the register. ERR_DENIED: it is not; ERR_CHANGED: another folder stands there. */
int view_remove(const struct repo *repo, const char *path, struct err *err);
/* What an attempt that was cut off left at this path. */
void view_drop_old(const struct repo *repo, const char *path);

#endif
