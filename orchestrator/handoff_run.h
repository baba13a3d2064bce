/*
 * handoff_run.h - `baton handoff check --run`: the commands of a document are run, in a box, in a clean copy of its files.
 */
#ifndef BATON_ORCHESTRATOR_HANDOFF_RUN_H
#define BATON_ORCHESTRATOR_HANDOFF_RUN_H

#include "base/err.h"
#include "orchestrator/git_session.h"
#include "orchestrator/handoff_truth.h"

/* Runs each command that the document gives with an exit code, once, with the files of `commit`, for at most limit_ms; what
 * came of them is noted in `records`. -1: none could be run. */
int handoff_run(const struct handoff *handoff, struct git_session *git, const char *commit,
		int64_t limit_ms, struct handoff_records *records, struct err *err);

#endif
