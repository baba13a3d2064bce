/*
 * warden.h - the small process that outlives the parent only to clean up (I9).
 */
#ifndef BATON_ORCHESTRATOR_WARDEN_H
#define BATON_ORCHESTRATOR_WARDEN_H

/* Forks the parent, which runs body(arg) and ends with the status that it returns. The caller
 * becomes the warden: a subreaper that forwards stop signals, and when the parent is gone, by any
 * way, kills every process that is left of the run. Returns (in the warden) the parent's exit
 * status, 128 + n if it was killed by a signal, 1 if it could not be forked. */
int warden_run(int (*body)(void *arg), void *arg);

/* body begins with all signals blocked, so that one that comes before its handlers are set is neither
 * lost nor deadly: to be called as soon as they are. */
void warden_unblock_signals(void);

#endif
