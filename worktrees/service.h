/*
 * service.h - baton-git's loop: frames in, operations run here or in workers, answers out.
 */
#ifndef BATON_WORKTREES_SERVICE_H
#define BATON_WORKTREES_SERVICE_H

#include "base/err.h"

/* Serves on this descriptor (owned) until the parent closes it. -1 if the protocol was broken. */
int service_run(int fd, struct err *err);

#endif
