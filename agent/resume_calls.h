/*
 * resume_calls.h - the calls of a last answer that a crash left without results: what is known of each (R6).
 */
#ifndef BATON_AGENT_RESUME_CALLS_H
#define BATON_AGENT_RESUME_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct agent;
struct block;
struct resume_calls;

/* open: there is such an answer; cut_ms: wall time of the last record. */
struct resume_calls *resume_calls_new(bool open, int64_t cut_ms);
void resume_calls_free(struct resume_calls *calls); /* NULL allowed */
bool resume_calls_open(const struct resume_calls *calls);
int64_t resume_calls_cut(const struct resume_calls *calls);

/* A `tool_ended` record; borrowed. */
void resume_calls_note(struct resume_calls *calls, struct json_object *record);

/* May it run again? What only looks, and what the parent knows by its key. */
bool resume_may_run(const struct agent *a, const struct block *call);
/* Appends what the model is to know of one that may not. In the order of the calls. */
void resume_tell(struct agent *a, const struct block *call, struct buf *out);

#endif
