/*
 * spare.h - an agent's process that is started before anybody knows what it will do.
 *
 * Loading a program takes longer than making a run's folder, so the first agent's process starts
 * beside gateway and baton-git, before the repository is known. All that an agent is comes in its
 * start document, so the process can wait for it. A spare that nobody takes ends with the services.
 */
#ifndef BATON_ORCHESTRATOR_SPARE_H
#define BATON_ORCHESTRATOR_SPARE_H

#include <stdbool.h>

#include "base/err.h"
#include "orchestrator/child.h"

struct run;

/* Starts the agent program, with the environment that agents get: the spare or an agent's own. */
int spare_spawn(struct run *run, const char *name, const struct child_handler *handler, void *arg,
		struct child **ret, struct err *err);

/* A failure is no error: the first agent is then started like any other. */
void spare_start(struct run *run);

/* Hands the spare over; NULL if there is none. ret_said_hello: it did so before. */
struct child *spare_take(struct run *run, const char *name, const struct child_handler *handler,
			 void *arg, bool *ret_said_hello);

void spare_stop(struct run *run);

#endif
