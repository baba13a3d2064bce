/*
 * outcome_table.h - what each agent, role and stage of a run took: rounds, tokens, money, time, compactions, resets.
 */
#ifndef BATON_ORCHESTRATOR_OUTCOME_TABLE_H
#define BATON_ORCHESTRATOR_OUTCOME_TABLE_H

#include "base/buf.h"
#include "base/json.h"

struct run;

/* {"agents": [...], "roles": [...], "stages": [...]}, docs/budgets.md; caller puts it. */
struct json_object *outcome_table(const struct run *run);
/* The same as a table in Markdown, of at most `rows` agents; nothing for a run without agents. */
void outcome_table_markdown(struct buf *out, struct json_object *table, size_t rows);

#endif
