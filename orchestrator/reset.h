/*
 * reset.h - Context Resets of one agent: its generations that ended with a handoff document (R1, R5).
 */
#ifndef BATON_ORCHESTRATOR_RESET_H
#define BATON_ORCHESTRATOR_RESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One accepted reset, as the record `agent.reset` has it. */
struct agent_reset {
	int64_t generation; /* that ended */
	char *reason, *why, *handoff, *checkpoint, *first_action;
	char *head, *tree; /* commit of the branch then, and its tree */
	bool facts_only, progress;
	int64_t chain; /* resets in a row without progress, this one included */
};

struct agent_resets {
	struct agent_reset *list;
	size_t n, cap;
};

/* An empty one at the end, for the caller to fill in; strings are owned by the list. */
struct agent_reset *resets_add(struct agent_resets *resets);
void resets_copy(struct agent_resets *to, const struct agent_resets *from);
void resets_release(struct agent_resets *resets);

#endif
