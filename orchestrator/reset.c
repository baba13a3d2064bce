/*
 * reset.c - see reset.h. Runs in the parent.
 */
#include "orchestrator/reset.h"

#include <stdlib.h>

#include "base/memory.h"

struct agent_reset *resets_add(struct agent_resets *resets)
{
	MEM_GROW(resets->list, resets->cap, resets->n + 1);
	struct agent_reset *reset = &resets->list[resets->n++];

	*reset = (struct agent_reset){.generation = 0};
	return reset;
}

void resets_copy(struct agent_resets *to, const struct agent_resets *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct agent_reset *copy = resets_add(to);

		*copy = from->list[i];
		copy->reason = mem_strdup(copy->reason);
		copy->why = mem_strdup(copy->why);
		copy->handoff = mem_strdup(copy->handoff);
		copy->checkpoint = mem_strdup(copy->checkpoint);
		copy->first_action = mem_strdup(copy->first_action);
		copy->head = mem_strdup(copy->head);
		copy->tree = mem_strdup(copy->tree);
	}
}

void resets_release(struct agent_resets *resets)
{
	for (size_t i = 0; i < resets->n; i++) {
		struct agent_reset *r = &resets->list[i];
		char *own[] = {r->reason,	r->why,	 r->handoff, r->checkpoint,
			       r->first_action, r->head, r->tree};
		for (size_t k = 0; k < ARRAY_SIZE(own); k++)
			free(own[k]);
	}
	free(resets->list);
	*resets = (struct agent_resets){.n = 0};
}
