/*
 * call.c - the names of the call protocol: classes of failure and purposes, one table each.
 *
 * The names travel in `end` and `request` frames and stand in journals and reports, so they are an
 * interface: a new class gets a new name, an old name keeps its meaning.
 */
#include "handoff/call.h"

#include "base/memory.h"

static const char *const class_names[] = {
	[CALL_CLASS_NONE] = "none",
	[CALL_OVERFLOW] = "overflow",
	[CALL_RATE_LIMIT] = "rate_limit",
	[CALL_OVERLOAD] = "overload",
	[CALL_AUTH] = "auth",
	[CALL_QUOTA] = "quota",
	[CALL_REFUSED] = "refused",
	[CALL_BAD_REQUEST] = "bad_request",
	[CALL_NETWORK] = "network",
	[CALL_BUDGET] = "budget",
	[CALL_GATEWAY] = "gateway",
};

static const char *const purpose_names[] = {
	[CALL_MAIN] = "main",
	[CALL_BACKGROUND] = "background",
	[CALL_COMPACT] = "compact",
};

const char *call_class_name(enum call_class class)
{
	return (size_t) class < ARRAY_SIZE(class_names) ? class_names[class] : "none";
}

enum call_class call_class_parse(const char *name)
{
	for (size_t i = 1; name && i < ARRAY_SIZE(class_names); i++)
		if (strcmp(class_names[i], name) == 0)
			return (enum call_class)i;
	return CALL_CLASS_NONE;
}

bool call_class_unreachable(enum call_class class)
{
	switch (class) {
	case CALL_NETWORK:
	case CALL_AUTH:
	case CALL_QUOTA:
	case CALL_OVERLOAD:
	case CALL_RATE_LIMIT: return true;
	default: return false;
	}
}

const char *call_purpose_name(enum call_purpose purpose)
{
	return (size_t)purpose < ARRAY_SIZE(purpose_names) ? purpose_names[purpose] : "main";
}
