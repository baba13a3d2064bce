/*
 * compact_model.h - which model summarises for an agent (H16): its own, unless the user or its role names
 * another one.
 */
#ifndef BATON_ORCHESTRATOR_COMPACT_MODEL_H
#define BATON_ORCHESTRATOR_COMPACT_MODEL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

struct agent_record;
struct model;
struct role;
struct run;

/* *ret stays NULL where it is the agent's own; else the caller frees it. ERR_USAGE as of run_compact_model. */
int compact_model_choose(const struct run *run, const struct role *role, const struct model *own,
			 struct model **ret, struct err *err);

/* Once a run: a warning if no result of the golden set is on record for the pair. */
void compact_model_warn(struct agent_record *agent);

/* Is a passed result for (agent's model, summarising model) in a table as data/golden_results.json has it?
 * Names are "provider/name". */
bool compact_model_on_record(struct json_object *pairs, const char *own, const char *other);

#endif
