/*
 * instructions.h - project and user instructions at the start (M1).
 *
 * AGENTS.md (else CLAUDE.md) at the root of the base commit, and the user's own
 * ($XDG_CONFIG_HOME/baton/AGENTS.md, else ~/.claude/CLAUDE.md). They add up; each is shown with its
 * origin; none overrides another. At most 64 KiB each: what is longer keeps head and tail with a
 * note.
 */
#ifndef BATON_ORCHESTRATOR_INSTRUCTIONS_H
#define BATON_ORCHESTRATOR_INSTRUCTIONS_H

#include "base/err.h"

struct run;

/* Fills run->instructions from the repository's answer and the user's files. */
int instructions_load(struct run *run, struct err *err);

#endif
