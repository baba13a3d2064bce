/*
 * tools.h - the agent's tools, with results from the generator.
 */
#ifndef SIMULATOR_TOOLS_H
#define SIMULATOR_TOOLS_H

#include "agent/tools/tool.h"
#include "plan.h"

/* Those of a session of this plan. */
const struct tool *sim_tools(const struct session_plan *plan, size_t *ret_count);

#endif
