/*
 * effects.h - what agents ask the parent to do, each exactly once (design.md, Processes).
 *
 * An effect is known by (agent, generation, call id). The first frame with a key is carried out; the
 * same key again is answered as before and does nothing, whether the agent repeats itself or a
 * successor asks anew after a crash. The answer goes out after the next commit of the journal, so
 * whoever records the effect before effect_answer has it on disk before the agent knows.
 *
 * A key stands for one kind of frame: a checkpoint under the key of a report is a protocol failure.
 * The number of effects of one agent is bounded, since its keys are kept for its whole life.
 */
#ifndef BATON_ORCHESTRATOR_EFFECTS_H
#define BATON_ORCHESTRATOR_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "handoff/frame.h"

struct agent_record;
struct effect;

struct effects {
	struct effect *first;
	int64_t generation; /* that `count` is of */
	size_t count;	    /* begun in it */
	size_t open;	    /* begun and not yet answered */
};

/* 1: a new key, *ret (owned by the agent) is to be carried out and answered once; 0: a known one,
 * which gets its answer again; -1: not of this generation, of another kind, or too many. */
int effect_begin(struct agent_record *agent, const struct frame *frame, struct effect **ret,
		 struct err *err);
/* `body` is the JSON of the acknowledgement; copied. */
void effect_answer(struct effect *effect, bool ok, const char *body);
/* One that was answered in an earlier life of this parent, by the journal: it gets that answer again. */
void effect_restore(struct agent_record *agent, enum frame_type type, int64_t generation,
		    const char *call, bool ok, const char *body);
const char *effect_call(const struct effect *effect);
struct agent_record *effect_agent(const struct effect *effect);
/* When no commit of the journal can follow any more: deferred answers point to these. */
void effects_release(struct effects *effects);

#endif
