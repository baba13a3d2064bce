/*
 * outcome_table.c - see outcome_table.h. Runs in the parent, at the end; the numbers are its own books, no agent's word.
 */
#include "orchestrator/outcome_table.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "orchestrator/review/markdown.h"
#include "orchestrator/run.h"

/* All of them are sums, so a role or a stage is the sum of its agents. In the table money and time stand in between. */
static const char *const columns[] = {"rounds", "fresh",       "cached",
				      "output", "compactions", "resets"};
#define BEFORE_MONEY 4

static struct json_object *row_of(const struct agent_record *agent)
{
	struct json_object *row = json_object_new_object();
	const struct budget_usage *u = &agent->usage;

	json_set_str(row, "agent", agent->name);
	json_set_str(row, "role", agent->role->name);
	json_set_str(row, "stage", agent->stage);
	json_set_str(row, "started_by", agent->family.spawner ? agent->family.spawner->name : NULL);
	json_set_i64(row, "rounds", agent->rounds);
	json_set_i64(row, "fresh", u->fresh + u->cache_write);
	json_set_i64(row, "cached", u->cache_read);
	json_set_i64(row, "output", u->output);
	if (agent->model->price.known)
		json_set_double(row, "cost", u->cost);
	json_set_i64(row, "wall_ms", agent->worked_ms);
	json_set_i64(row, "compactions", agent->compactions);
	json_set_i64(row, "resets", (int64_t)agent->resets.n);
	return row;
}

/* The sum of one name; made when it is met first, so sums stand in the order of their first agents. */
static struct json_object *sum_for(struct json_object *sums, const char *key, const char *name)
{
	for (size_t i = 0; i < json_len(sums); i++) {
		struct json_object *sum = json_at(sums, i);
		if (strcmp(json_str(sum, key, ""), name) == 0)
			return sum;
	}
	struct json_object *sum = json_object_new_object();
	json_set_str(sum, key, name);
	json_object_array_add(sums, sum);
	return sum;
}

static void add_i64(struct json_object *to, struct json_object *from, const char *name)
{
	json_set_i64(to, name, json_i64(to, name, 0) + json_i64(from, name, 0));
}

static void add_row(struct json_object *sums, const char *key, struct json_object *row)
{
	const char *name = json_str(row, key, NULL);

	if (!name)
		return;
	struct json_object *sum = sum_for(sums, key, name);
	json_set_i64(sum, "agents", json_i64(sum, "agents", 0) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		add_i64(sum, row, columns[i]);
	add_i64(sum, row, "wall_ms");
	if (json_has(row, "cost"))
		json_set_double(sum, "cost",
				json_double(sum, "cost", 0) + json_double(row, "cost", 0));
}

struct json_object *outcome_table(const struct run *run)
{
	struct json_object *table = json_object_new_object();
	struct json_object *agents = json_object_new_array();
	struct json_object *roles = json_object_new_array();
	struct json_object *stages = json_object_new_array();

	for (size_t i = 0; i < run->agents.count; i++) {
		struct json_object *row = row_of(run->agents.list[i]);
		json_object_array_add(agents, row);
		add_row(roles, "role", row);
		add_row(stages, "stage", row);
	}
	json_set(table, "agents", agents);
	json_set(table, "roles", roles);
	json_set(table, "stages", stages);
	return table;
}

/* ---- Markdown ---- */

/* What is not known is left out: without any price there is no column for it. */
static bool has_cost(struct json_object *agents)
{
	for (size_t i = 0; i < json_len(agents); i++)
		if (json_has(json_at(agents, i), "cost"))
			return true;
	return false;
}

static void add_numbers(struct buf *out, struct json_object *row, bool priced)
{
	char took[32];

	for (size_t i = 0; i < BEFORE_MONEY; i++)
		buf_addf(out, " %lld |", (long long)json_i64(row, columns[i], 0));
	if (json_has(row, "cost"))
		buf_addf(out, " %.4f |", json_double(row, "cost", 0));
	else if (priced)
		buf_adds(out, " - |");
	buf_addf(out, " %s |", clock_human(json_i64(row, "wall_ms", 0), took, sizeof(took)));
	for (size_t i = BEFORE_MONEY; i < ARRAY_SIZE(columns); i++)
		buf_addf(out, " %lld |", (long long)json_i64(row, columns[i], 0));
	buf_addc(out, '\n');
}

static void add_sums(struct buf *out, struct json_object *sums, const char *key, size_t at_least,
		     bool priced)
{
	for (size_t i = 0; json_len(sums) >= at_least && i < json_len(sums); i++) {
		struct json_object *sum = json_at(sums, i);
		buf_addf(out, "| %s ", key);
		markdown_word(out, json_str(sum, key, ""));
		buf_addf(out, " (%lld) |", (long long)json_i64(sum, "agents", 0));
		add_numbers(out, sum, priced);
	}
}

void outcome_table_markdown(struct buf *out, struct json_object *table, size_t rows)
{
	struct json_object *agents = json_arr(table, "agents");
	size_t n = json_len(agents);
	bool priced = has_cost(agents);

	if (n == 0)
		return;
	buf_adds(out, "| |");
	for (size_t i = 0; i < BEFORE_MONEY; i++)
		buf_addf(out, " %s |", columns[i]);
	buf_adds(out, priced ? " USD | time |" : " time |");
	for (size_t i = BEFORE_MONEY; i < ARRAY_SIZE(columns); i++)
		buf_addf(out, " %s |", columns[i]);
	buf_adds(out, priced ? "\n| --- | --: |" : "\n| --- |");
	for (size_t i = 0; i < ARRAY_SIZE(columns) + 1; i++)
		buf_adds(out, " --: |");
	buf_addc(out, '\n');
	for (size_t i = 0; i < MIN(n, rows); i++) {
		struct json_object *row = json_at(agents, i);
		buf_addf(out, "| %s ", json_str(row, "agent", ""));
		markdown_word(out, json_str(row, "role", ""));
		buf_adds(out, " |");
		add_numbers(out, row, priced);
	}
	add_sums(out, json_arr(table, "roles"), "role", n > 1 ? 1 : SIZE_MAX, priced);
	add_sums(out, json_arr(table, "stages"), "stage", 1, priced);
	if (n > rows)
		buf_addf(out, "\n%zu further agents stand in report.json.\n", n - rows);
	buf_addc(out, '\n');
}
