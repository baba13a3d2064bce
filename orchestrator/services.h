/*
 * services.h - the run's service processes: view, gateway, baton-git, rehearsal server.
 *
 * Each is started at once, before anything is known of the repository, so that their own start-up
 * overlaps. The gateway is restarted when it dies (5 deaths in 60 s end the run); a dead baton-git
 * ends the run with all work kept; a dead view is only logged.
 */
#ifndef BATON_ORCHESTRATOR_SERVICES_H
#define BATON_ORCHESTRATOR_SERVICES_H

#include "base/err.h"

struct run;

int services_start_gateway(struct run *run, struct err *err);
/* baton-git alone, as early as can be: everything else of a start waits for its first answer. */
int services_start_git(struct run *run, struct err *err);
/* The others, and the first agent's process. */
int services_start(struct run *run, struct err *err);
/* The journal file exists now: start the view that folds it. */
int services_start_view(struct run *run, struct err *err);
/* Tells the view that the journal grew. */
void services_poke_view(struct run *run);
/* Asks all services to end; the view by the end of its poke pipe, so that it shows the last record.
 */
void services_stop(struct run *run);

#endif
