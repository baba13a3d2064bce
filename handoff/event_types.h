/*
 * event_types.h - the catalogues of what an agent tells of its work: events, states, ends.
 *
 * Each word is written once, here. The agent names a row when it speaks, the parent finds the row of what it
 * hears; docs/documents.md and docs/journal.md are checked against these tables. A word that is in no row (of a newer
 * agent) is passed over by the parent.
 *
 * AGENT_EVENTS: EVENT(NAME, "wire name"), header `name` of an event frame and behind "agent." the type of its record
 * (orchestrator/record_types.h has a row for each).
 */
#define AGENT_EVENTS(EVENT)                                                                        \
	EVENT(ROUND, "round")                                                                      \
	EVENT(TOOL, "tool")                                                                        \
	EVENT(STATE, "state")                                                                      \
	EVENT(TEXT, "text")                                                                        \
	EVENT(WARNING, "warning")                                                                  \
	EVENT(RETRY, "retry")                                                                      \
	EVENT(JOB, "job")                                                                          \
	EVENT(COMPACT, "compact")                                                                  \
	EVENT(BUDGET, "budget")                                                                    \
	EVENT(REMINDER, "reminder")                                                                \
	EVENT(ALARM, "alarm")                                                                      \
	EVENT(CACHE_BREAK, "cache_break")                                                          \
	EVENT(COMPACT_RETURN, "compact_return")                                                    \
	EVENT(COMPACT_REVIEW, "compact_review")                                                    \
	EVENT(INSTRUCTIONS, "instructions")                                                        \
	EVENT(CHILD, "child")

/*
 * ACTIVITIES: ACTIVITY(NAME, "state", watch), member `state` of the event "state": what an agent does at the moment,
 * and which limit the parent's watchdog holds it to (X6). WATCH_MODEL: --model-idle; WATCH_TOOL: --tool-idle;
 * WATCH_NONE: it waits for others, which have limits of their own.
 */
#define ACTIVITIES(ACTIVITY)                                                                       \
	ACTIVITY(WAITING, "waiting", WATCH_NONE)                                                   \
	ACTIVITY(MODEL, "model", WATCH_MODEL)                                                      \
	ACTIVITY(TOOL, "tool", WATCH_TOOL)                                                         \
	ACTIVITY(HOOK, "hook", WATCH_MODEL)                                                        \
	ACTIVITY(COMPACTING, "compacting", WATCH_MODEL)                                            \
	ACTIVITY(REPORTING, "reporting", WATCH_MODEL)                                              \
	ACTIVITY(CHILDREN, "children", WATCH_MODEL)
