/*
 * event.h - names of an agent's events and states (event_types.h), for the agent and its parent.
 */
#ifndef BATON_HANDOFF_EVENT_H
#define BATON_HANDOFF_EVENT_H

#include "handoff/event_types.h"

enum agent_event {
#define EVENT_ENUM(name, wire) EVENT_##name,
	AGENT_EVENTS(EVENT_ENUM)
#undef EVENT_ENUM
		EVENT_TYPES, /* their number; of a name: none of them */
};

enum activity {
	ACTIVITY_NONE, /* it has not said anything yet, or a word that we do not know */
#define ACTIVITY_ENUM(name, wire, watch) ACTIVITY_##name,
	ACTIVITIES(ACTIVITY_ENUM)
#undef ACTIVITY_ENUM
};

enum watch { WATCH_NONE, WATCH_MODEL, WATCH_TOOL };

const char *agent_event_name(enum agent_event event);
enum agent_event agent_event_find(const char *name); /* EVENT_TYPES: unknown */
const char *activity_name(enum activity activity);   /* "" for NONE */
enum activity activity_find(const char *name);	     /* ACTIVITY_NONE: unknown */
enum watch activity_watch(enum activity activity);   /* WATCH_MODEL for NONE */

#endif
