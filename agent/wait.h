/*
 * wait.h - the one place where an agent waits.
 *
 * An agent is straight-line code. All waiting goes through wait_poll, which at every wait watches
 * the channel (cancel, stop, budget, parent death), open model calls, SIGTERM and SIGCHLD (a
 * signalfd), the caller's own descriptors and its deadline.
 */
#ifndef BATON_AGENT_WAIT_H
#define BATON_AGENT_WAIT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct waiter;

/* Waits until one of fds (may be NULL) is ready, some child changed state, or deadline_ms
 * (monotonic; INT64_MAX: none). Returns the number of ready fds (revents set; 0 when only a child
 * changed state or a frame was handled: look again at your condition), or -1: ERR_TIMEOUT at the
 * deadline; ERR_CANCELLED when the agent is to stop (the caller cleans up and returns it);
 * ERR_CLOSED when the parent is gone. */
int wait_poll(struct waiter *w, struct pollfd *fds, size_t n, int64_t deadline_ms, struct err *err);

#endif
