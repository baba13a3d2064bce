/*
 * tools.h - the agent's tools, with results from the generator.
 */
#ifndef SIMULATOR_TOOLS_H
#define SIMULATOR_TOOLS_H

#include "agent/tools/tool.h"

const struct tool *sim_tools(size_t *ret_count);

#endif
