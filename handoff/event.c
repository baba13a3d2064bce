/*
 * event.c - the tables of event_types.h, by number and by name. Used by agents and by the parent.
 */
#include "handoff/event.h"

#include <string.h>

#include "base/memory.h"

static const char *const event_names[] = {
#define EVENT_ROW(name, wire) [EVENT_##name] = wire,
	AGENT_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};

static const struct {
	const char *name;
	enum watch watch;
} activities[] = {[ACTIVITY_NONE] = {"", WATCH_MODEL},
#define ACTIVITY_ROW(name, wire, watch) [ACTIVITY_##name] = {wire, watch},
		  ACTIVITIES(ACTIVITY_ROW)
#undef ACTIVITY_ROW
};

const char *agent_event_name(enum agent_event event)
{
	return event_names[event];
}

enum agent_event agent_event_find(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(event_names) && strcmp(event_names[i], name) != 0)
		i++;
	return (enum agent_event)i;
}

const char *activity_name(enum activity activity)
{
	return activities[activity].name;
}

enum activity activity_find(const char *name)
{
	for (size_t i = 1; i < ARRAY_SIZE(activities); i++) {
		if (strcmp(activities[i].name, name) == 0)
			return (enum activity)i;
	}
	return ACTIVITY_NONE;
}

enum watch activity_watch(enum activity activity)
{
	return activities[activity].watch;
}
