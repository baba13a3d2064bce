/*
 * run_open.h - from settings to a run that has a repository, a folder, a lock and a journal.
 */
#ifndef BATON_ORCHESTRATOR_RUN_OPEN_H
#define BATON_ORCHESTRATOR_RUN_OPEN_H

#include "base/err.h"

struct run;

/* Chooses the model and reads the key; before any process is started. Leaves no key in the
 * environment. */
int run_open_model(struct run *run, struct err *err);
/* The model that a role names, "provider/name": of the run's provider (one gateway, one key), else
 * the error says so. A rehearsal plays all models: *ret is NULL then. Caller frees. */
struct model;
int run_role_model(const struct run *run, const char *full_name, struct model **ret,
		   struct err *err);
/* The same for the model that summarises (H16). --window is the agents' and does not bind it, unless nothing
 * else says how large it is. A rehearsal plays those of its own provider as models of their own. */
int run_compact_model(const struct run *run, const char *full_name, struct model **ret,
		      struct err *err);
/* Starts the chain discover -> folder, lock, journal -> driver->start. Failures end the run. */
void run_open_repository(struct run *run);

#endif
