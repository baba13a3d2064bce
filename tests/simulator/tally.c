/*
 * tally.c - adds and prints the counts.
 */
#include "tally.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "faults.h"

#define LEAST 500 /* of 10,000 sessions */

static const struct {
	const char *name;
	int64_t least;
} rows[] = {
#define TALLY_ROW(name, text, least) {text, least},
	TALLIES(TALLY_ROW)
#undef TALLY_ROW
};

/* What the agents count, and the least of it. A count that is new there is printed without being named here. */
static const struct {
	const char *name;
	size_t offset;
} context_rows[] = {
#define CONTEXT_ROW(name) {#name, offsetof(struct context_counts, name)},
	CONTEXT_COUNTS(CONTEXT_ROW)
#undef CONTEXT_ROW
};

static const char *const must_happen[] = {
	"full",	  "up_to",	   "from",	  "by_notes",	 "by_rule",    "reactive",
	"shrunk", "refused_check", "notes_calls", "notes_empty", "notes_lost", "notes_too_large",
};

static int64_t context_count(const struct context_counts *counts, size_t row)
{
	return *(const int64_t *)((const char *)counts + context_rows[row].offset);
}

void tallies_add_context(struct tallies *into, const struct context_counts *counts)
{
#define CONTEXT_ADD(name) into->context.name += counts->name;
	CONTEXT_COUNTS(CONTEXT_ADD)
#undef CONTEXT_ADD
}

static bool must(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(must_happen); i++)
		if (!strcmp(must_happen[i], name))
			return true;
	return false;
}

void tallies_add(struct tallies *into, const struct tallies *from)
{
	for (size_t i = 0; i < TALLY_COUNT; i++)
		into->count[i] += from->count[i];
	for (size_t i = 0; i < ARRAY_SIZE(into->faults); i++)
		into->faults[i] += from->faults[i];
	tallies_add_context(into, &from->context);
	for (size_t i = 0; i < TALLY_ROUNDS_MAX; i++)
		into->sessions_of[i] += from->sessions_of[i];
}

static int64_t median_rounds(const struct tallies *t)
{
	int64_t sum = 0, half = t->count[TALLY_SESSIONS] / 2;

	for (size_t i = 0; i < TALLY_ROUNDS_MAX; i++) {
		sum += t->sessions_of[i];
		if (sum > half)
			return (int64_t)i;
	}
	return 0;
}

static int check_shape(const struct tallies *t, int64_t median)
{
	int missing = 0;

	if (median < 100) {
		printf("too few: the median session has %lld rounds, 100 are wanted\n",
		       (long long)median);
		missing++;
	}
	if (t->count[TALLY_SESSIONS_OF_3] * 10 < t->count[TALLY_SESSIONS]) {
		printf("too few: %lld of %lld sessions have 3 compactions\n",
		       (long long)t->count[TALLY_SESSIONS_OF_3],
		       (long long)t->count[TALLY_SESSIONS]);
		missing++;
	}
	return missing;
}

static int check_count(const struct tallies *t, const char *name, int64_t count, int64_t least)
{
	least = least * t->count[TALLY_SESSIONS] / 10000;
	if (count >= least)
		return 0;
	printf("too few: %s happened %lld times, %lld are wanted\n", name, (long long)count,
	       (long long)least);
	return 1;
}

static int check_minimum(const struct tallies *t, int64_t median)
{
	int missing = check_shape(t, median);

	for (size_t i = 0; i < TALLY_COUNT; i++)
		missing += check_count(t, rows[i].name, t->count[i], rows[i].least);
	for (size_t i = 0; i < ARRAY_SIZE(context_rows); i++)
		if (must(context_rows[i].name))
			missing += check_count(t, context_rows[i].name,
					       context_count(&t->context, i), LEAST);
	return missing > 0;
}

int tallies_print(const struct tallies *t, int minimum)
{
	int64_t median = median_rounds(t);

	for (size_t i = 0; i < TALLY_COUNT; i++)
		printf("%10lld  %s\n", (long long)t->count[i], rows[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(context_rows); i++)
		printf("%10lld  context: %s\n", (long long)context_count(&t->context, i),
		       context_rows[i].name);
	for (size_t i = 0; i < FAULT_COUNT; i++)
		printf("%10lld  fault: %s\n", (long long)t->faults[i], fault_name((enum fault)i));
	printf("%10lld  median rounds of a session\n", (long long)median);
	return minimum ? check_minimum(t, median) : 0;
}
