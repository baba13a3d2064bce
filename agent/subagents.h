/*
 * subagents.h - the agents that this one started: what is known of each, and what its model is told (A4, A5, X7).
 *
 * The parent owns them; here stands what it said: of those that were there before this process in the start document,
 * of all others in frames `child`. Each end comes to the model once, as the result of the call that waits for it or
 * behind the results of a round. A report takes no more of the window than its share of what is free: the rest of it
 * is a file.
 */
#ifndef BATON_AGENT_SUBAGENTS_H
#define BATON_AGENT_SUBAGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tools/subagent.h"
#include "base/json.h"

struct agent;
struct message;

struct subagent {
	char *name;		 /* "a2"; "" if it was refused */
	char *call;		 /* the call that started it */
	char *refusal;		 /* why it was not; NULL */
	struct json_object *doc; /* docs/documents.md, "child"; NULL: nothing was heard yet */
	bool done, told;
};

struct subagents {
	struct agent *agent;
	struct subagent *list;
	size_t n, cap;
	bool held;    /* a report was sent back because of those that work */
	size_t batch; /* calls of the present answer that start one: they share the room */
};

/* What the start document says of them. */
void subagents_init(struct agent *a);
void subagents_release(struct subagents *s);

/* For the tool (agent/tools/subagent.h). */
extern const struct subagent_ops subagent_ops;

/* Is there something that the model should know before its report is taken? Once for each: words that came, agents
 * that still work and that the report would end. */
bool subagents_hold_report(struct agent *a, struct buf *why);
/* Row of news.c: ends that nobody waited for, and what somebody said. */
void subagents_news(struct agent *a, struct message *m);
/* For the head of what follows a compaction, and for an opening: who works, and who reported what. */
void subagents_add_state(struct agent *a, struct message *head);

#endif
