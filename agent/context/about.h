/*
 * about.h - what a tool call was about, and what may become of its result later.
 *
 * The rungs that work on old rounds (snip, clear, collapse, decay) ask the same things of a call: what it
 * looked at, whether anything outside may have changed by it, whether its result can be had again. One
 * table answers, so that a new tool is one row and no rung can think of it in its own way. A tool that
 * is not in the table can do anything and is never touched.
 */
#ifndef BATON_AGENT_CONTEXT_ABOUT_H
#define BATON_AGENT_CONTEXT_ABOUT_H

#include <stdbool.h>

#include "agent/message.h"
#include "handoff/knobs.h"

enum about_kind {
	ABOUT_OTHER,  /* subagents, tasks, notes, reports: cannot be had again */
	ABOUT_READ,   /* a file or folder; target is its path */
	ABOUT_SEARCH, /* by pattern, address or words */
	ABOUT_CHANGE, /* edit, write; target is the path */
	ABOUT_RUN,    /* a command */
};

enum about_kind about_kind(const char *tool);
/* The member of a call's input that says what it is about: the path, the pattern, the command. NULL if
 * the tool is unknown or the input is cut or lacks it. Caller frees. */
char *about_target(const struct block *call);
/* The command of a shell call looks and changes nothing: a list of programs, without redirection. What is
 * not on the list has effects. */
bool about_only_looks(const char *command);

/* T7: the line that may stand in the place of this result; NULL if it must stay. It says when the call
 * had effects, so that nobody does it again. MCP tools' results stay unless knob clear_mcp is set. */
const char *about_placeholder(const struct block *result, const struct context_knobs *knobs);
/* The same by the tool's name. */
bool about_may_clear(const char *tool, const struct context_knobs *knobs);
/* A result whose text is such a line. */
bool about_is_cleared(const struct block *result);

#define CLEARED "[Old tool result content cleared]"
#define CLEARED_EFFECT                                                                             \
	CLEARED " What this call did stands; look at the file or the tree, do not do it again."

#endif
