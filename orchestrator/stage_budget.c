/*
 * stage_budget.c - see stage_budget.h. Runs in the parent.
 */
#include "orchestrator/stage_budget.h"

#include <string.h>

#include "base/memory.h"
#include "orchestrator/replay.h"
#include "orchestrator/run.h"

/* The run's own books have it already (run_take_up). */
static void recall(struct run *run, struct run_budget *stage)
{
	const struct replay *past = run->replay;

	for (size_t i = 0; past && i < past->n_agents; i++) {
		const struct replay_agent *a = past->agents[i];
		if (a->stage && strcmp(a->stage, stage->name) == 0)
			run_budget_add(stage, &run->budget, &a->usage);
	}
}

struct run_budget *stage_budget(struct run *run, const char *stage)
{
	struct stage_budgets *all = &run->stages;

	for (size_t i = 0; i < all->n; i++) {
		if (strcmp(all->list[i]->name, stage) == 0)
			return all->list[i];
	}
	MEM_GROW(all->list, all->cap, all->n + 1);
	struct run_budget *made = mem_alloc(sizeof(*made));
	run_budget_init(made, -1, 0);
	made->name = mem_strdup(stage);
	made->above = &run->budget;
	recall(run, made);
	all->list[all->n++] = made;
	return made;
}

void stage_budget_limit(struct run *run, const char *stage, double max_cost, int64_t max_tokens)
{
	struct run_budget *b = stage_budget(run, stage);

	b->max_cost = max_cost;
	b->max_tokens = max_tokens;
}

void stage_budgets_release(struct stage_budgets *stages)
{
	for (size_t i = 0; i < stages->n; i++) {
		free(stages->list[i]->name);
		free(stages->list[i]);
	}
	free(stages->list);
	*stages = (struct stage_budgets){0};
}
