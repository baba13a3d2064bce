/*
 * calls.h - runs the tool calls of one answer and appends the message that answers them.
 */
#ifndef BATON_AGENT_CALLS_H
#define BATON_AGENT_CALLS_H

#include "agent/state.h"

/* answer is in the conversation and on record already (I5); cut: its last block is a call that the
 * output limit cut (trap 37). Every call gets exactly one result, also when the work is stopped in
 * the middle: then -1 is returned after the results are in the conversation, or none of them where a process that goes on
 * from here can run all of the calls again. 1: the work has ended
 * (reported, or a loop: X13). */
int calls_run(struct agent *a, const struct message *answer, bool cut, struct err *err);

/* R6: the same of an answer whose results a crash took (resume_calls.h): what only looks runs again, of the rest the
 * model is told what is known. `note` is said behind the results. */
int calls_finish(struct agent *a, const struct message *answer, const char *note, struct err *err);

#endif
