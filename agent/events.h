/*
 * events.h - what an agent tells its parent while it works (docs/documents.md, "event").
 *
 * Mere news: nothing waits for them and nothing depends on them. Texts pass as data; whoever shows
 * them makes them printable.
 */
#ifndef BATON_AGENT_EVENTS_H
#define BATON_AGENT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/context/prefix.h"
#include "agent/instructions.h"
#include "agent/ledger.h"
#include "agent/model/client.h"
#include "agent/tools/tool.h"
#include "handoff/channel.h"
#include "handoff/event.h"

struct event_round_facts {
	int64_t round;
	size_t request_bytes;
	int64_t estimate;
	const struct model_usage *usage;
	enum stop_reason stop;
	int64_t used;
	const struct window_budget *budget;
	const struct ledger *ledger; /* right after the answer */
	int64_t ttft_ms, duration_ms;
};
void event_round(struct channel *ch, const struct event_round_facts *facts);

struct event_compact_facts { /* H15 */
	const char *trigger;
	const char *kind;	     /* NULL: not of a compaction by a summary or notes */
	int64_t before, after;	     /* tokens, by the ledger */
	size_t messages;	     /* that gave way */
	int64_t input, output;	     /* of the calls */
	const char *source;	     /* H15's trigger_source; NULL: a rung */
	double call_cost, next_cost; /* USD; < 0: prices are not known */
	bool by_rule;		     /* no summary could be had: facts stand in its place */
	const char *reason;	     /* why not */
	int64_t duration_ms;
	int64_t cache_lost; /* tokens that the provider's cache must take again */
};
/* A compaction waits for a person: where its summary stands, and how long. */
void event_review(struct channel *ch, const char *path, int64_t ms);
void event_compact(struct channel *ch, const struct event_compact_facts *facts);

struct event_return_facts { /* H15, settled */
	const char *trigger;
	int64_t saved, rounds;
	double gained, spent; /* USD; spent < 0: prices are not known */
};
void event_compact_return(struct channel *ch, const struct event_return_facts *facts);

struct event_budget_facts { /* W5 */
	const struct window_budget *budget;
	int64_t system, tools, working_space;
};
void event_budget(struct channel *ch, const struct event_budget_facts *facts);
void event_reminder(struct channel *ch, int64_t used, int64_t threshold,
		    int64_t effective); /* H22 */
/* The end of an agent that this one started has come to its model (A5). */
void event_child(struct channel *ch, const char *child);
/* Something that somebody has to look at (H15). kind: "breaker". */
void event_alarm(struct channel *ch, const char *kind, const char *message);

struct event_cache_facts { /* H17 */
	const struct prefix_break *broken;
	int64_t round; /* of the message that changed */
};
void event_cache_break(struct channel *ch, const struct event_cache_facts *facts);

struct event_tool_facts {
	int64_t round;
	const char *call, *tool, *summary;
	bool ok, effects;
	int exit_code; /* -1: none */
	int64_t duration_ms;
};
void event_tool(struct channel *ch, const struct event_tool_facts *facts);

void event_state(struct channel *ch, enum activity activity, const char *detail);
/* The first 200 characters of what the model said; nothing if it said nothing. */
void event_text(struct channel *ch, const struct message *answer);
void event_warning(struct channel *ch, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void event_retry(struct channel *ch, int attempt, const char *reason, int64_t until_wall_ms);
void event_instructions(struct channel *ch, const struct instructions_load *load);
void event_job_ended(struct channel *ch, const struct job_end *end);

#endif
