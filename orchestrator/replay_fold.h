/*
 * replay_fold.h - what the two parts of the fold share (replay.c: the run; replay_agents.c: its agents and their calls).
 */
#ifndef BATON_ORCHESTRATOR_REPLAY_FOLD_H
#define BATON_ORCHESTRATOR_REPLAY_FOLD_H

#include "orchestrator/record.h"
#include "orchestrator/replay.h"

struct seen;

struct fold {
	struct replay *out;
	struct seen *seen;
	int64_t from_ms;       /* wall time at which the parent of the present part began */
	int64_t before_ms;     /* replay.last_ms before the record in hand */
	int64_t part_ended_ms; /* wall time of the last record of the part before this one; 0: none */
};

/* A text or value that a record has; one that it lacks changes nothing. */
void replay_set(char **to, const char *text);
void replay_keep(struct json_object **to, struct json_object *value); /* NULL takes it away */

extern const struct record_fold replay_agents;
/* The journal is over: what its processes had asked for counts, and none of them works any more. */
void replay_agents_end(struct replay *out);
void replay_agent_free(struct replay_agent *agent);

#endif
