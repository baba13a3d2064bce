/*
 * agent_resume.h - agents of a run that goes on: what the journal knows of them, and what becomes of each (R6).
 *
 *     in the journal                               here
 *     never spawned                                starts like any other
 *     reset accepted, no successor yet             its next generation starts
 *     process gone in a way that will not change   brought home, unless it is home already: then only looked at
 *     reported, its process' end not on record     the same, as done
 *     stopped, lost, out of budget or network,
 *     or no end at all                             the same generation goes on: "resume" if its transcript holds an
 *                                                  answer of the model, else afresh
 *
 * Its key finds it again (agents.h); name, number, base and books are taken from the journal.
 */
#ifndef BATON_ORCHESTRATOR_AGENT_RESUME_H
#define BATON_ORCHESTRATOR_AGENT_RESUME_H

#include <stdbool.h>

struct agent_record;

/* Its name and number, and all that the journal says under its key, into a record that is being queued. */
void agent_recall(struct agent_record *agent);
/* PREPARING, with a place in the journal: goes the way that the table says. */
void agent_resume(struct agent_record *agent);
/* Does this reason of an end name what the machine ran out of (disk, descriptors, processes)? NULL allowed. */
bool agent_ended_for_room(const char *reason);
/* As agent_make_worktree, of one that is or was there already. */
void agent_reopen_worktree(struct agent_record *agent);

#endif
