/*
 * compactions.h - what an agent's compactions kept, from the files that it left (X4, docs/control.md).
 */
#ifndef BATON_ORCHESTRATOR_COMPACTIONS_H
#define BATON_ORCHESTRATOR_COMPACTIONS_H

#include "base/err.h"
#include "orchestrator/runs.h"

/* Prints what the newest one replaced and what stands there now, as a unified diff. ERR_NOT_FOUND if there
 * was none. */
int compactions_show(const struct past_run *run, const struct past_agent *agent, struct err *err);

#endif
