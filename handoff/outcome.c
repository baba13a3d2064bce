/*
 * outcome.c - the words of outcome.h. Used by agents and by the parent.
 */
#include "handoff/outcome.h"

#include <string.h>

#include "base/memory.h"

static const char *const names[] = {
	[OUTCOME_DONE] = "done",   [OUTCOME_FAILED] = "failed", [OUTCOME_STOPPED] = "stopped",
	[OUTCOME_LIMIT] = "limit", [OUTCOME_LOST] = "lost",	[OUTCOME_RESET] = "reset",
};

const char *outcome_name(enum outcome_status status)
{
	return names[status];
}

enum outcome_status outcome_find(const char *name)
{
	for (size_t i = OUTCOME_NONE + 1; name && i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) == 0)
			return (enum outcome_status)i;
	}
	return OUTCOME_NONE;
}
