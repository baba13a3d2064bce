/*
 * pairs.h - two agents in one process (H11: no state is shared between agents).
 */
#ifndef SIMULATOR_PAIRS_H
#define SIMULATOR_PAIRS_H

#include "session.h"

/* Runs the session of these options and the one of the next seed, each alone, then both together, a round each in
 * turn. 1 if one of them says anything else than alone. */
int pair_run(const struct session_options *options, struct tallies *tallies, struct finding *ret);

#endif
