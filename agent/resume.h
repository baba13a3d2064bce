/*
 * resume.h - a generation that was cut off goes on (R6, X12): from its transcript and the files beside it.
 *
 * What is made again, and from what:
 *
 *   conversation     message records; a call whose result is not on record is answered here (below)
 *   view, epoch      context_edit records (context/edit_record.h)
 *   user's words     words.jsonl, and messages that it does not hold
 *   ledger           counted anew; calibration comes with the start document
 *   record           calls, failures and last exit codes, from calls and results
 *   facts            from the conversation, as always
 *   notes, memory, plan, offloaded results    their files
 *   compactions of this generation, earlier resumes, time since the last record    their records
 *
 * What begins anew, because nothing wrong follows from it: the breaker, repetition counts, natural breaks, the undo of the
 * last compaction, which nested instructions are in view (they come again with a matching read), the known prefix.
 *
 * Calls without a result: those that only look, and `report`, run again (the parent knows the report's key). Of
 * every other one the model is told that its outcome is unknown, with what can be seen: that it ended and how, its
 * output so far, whether the file holds what was to be written.
 */
#ifndef BATON_AGENT_RESUME_H
#define BATON_AGENT_RESUME_H

#include "base/err.h"

struct agent;

/* At the end of agent_make, before anything is recorded. A transcript without a message is no error: then the
 * generation starts as a new one (settings->resume is false afterwards). ERR_IO. */
int resume_load(struct agent *a, struct err *err);

/* In the place of an opening: answers open calls, and says what happened. As work_begin. */
int resume_begin(struct agent *a, struct err *err);

#endif
