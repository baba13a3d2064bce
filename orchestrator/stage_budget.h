/*
 * stage_budget.h - the books of a pipeline's stages (X8): what all agents of one stage spend together, and its limits.
 *
 * A stage is a name that the driver gives its agents (struct agent_spec); those that they start belong to it too. Its
 * budget stands between theirs and the run's. Of a run that goes on it begins with what agents of that name spent.
 */
#ifndef BATON_ORCHESTRATOR_STAGE_BUDGET_H
#define BATON_ORCHESTRATOR_STAGE_BUDGET_H

#include "orchestrator/run_budget.h"

struct run;

struct stage_budgets {
	struct run_budget **list; /* each with its name; they stay where they are */
	size_t n, cap;
};

/* Made when it is asked for first, without limits; lives as long as the run. */
struct run_budget *stage_budget(struct run *run, const char *stage);
/* max_cost < 0, max_tokens 0: none. */
void stage_budget_limit(struct run *run, const char *stage, double max_cost, int64_t max_tokens);
void stage_budgets_release(struct stage_budgets *stages);

#endif
