/*
 * layers.h - what an agent remembers, in four layers, and how something gets from one into the next (H21).
 *
 *   layer     holds                                             lives                  leaves by
 *   latest    the newest rounds and open calls, as they are     until a compaction     layers_descend
 *   summary   summaries, notes and snapshots of what was latest until the next one     layers_descend
 *   core      goal, instructions, the user's words, decisions,  the generation, and    layers_end
 *             state, the model's own memory                     by a handoff the next
 *   lasting   MEMORY.md of the repository                       across runs            a person's hand, an expiry
 *
 * A layer is a property of a block in its message, not a list of its own: the view stays the only list there is.
 * What descends is distilled by what the layer below is made of: rounds into a summary (which compact_call.c got),
 * rounds and summaries into facts, words and memory by rule, since a summary is no source for them.
 */
#ifndef BATON_AGENT_LAYERS_H
#define BATON_AGENT_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/message.h"
#include "base/buf.h"
#include "base/err.h"

struct agent;
struct compact_job;

enum layer { LAYER_LATEST, LAYER_SUMMARY, LAYER_CORE, LAYER_LASTING };

/* Of a block of this message. In one that layers_descend or a collapse has made (message_is_summary) nothing is of the
 * latest. Never LAYER_LASTING: what the window shows of that is a copy, and core. */
enum layer layer_of(const struct message *m, const struct block *b);

/* view[from, tail) of the job leaves the latest layer (and summaries in it theirs): *ret is the one message that stands for
 * it, with the summary and all of the core that has to stand there. Caller owns it. */
int layers_descend(const struct compact_job *job, struct message **ret, struct err *err);

/* X2: what the user said is put by code into the head of what follows a compaction, or a successor's opening: constraints
 * whole and word for word. */
void layers_add_words(struct agent *a, struct message *head);

/* The agent ends: appends {"preferences": [...], "lessons": [...]}, what of the core the lasting layer may have. Of
 * work that was done that is what the model noted for later, and its decisions and rejected approaches that name a
 * reason; else only the former: nobody knows that they were good. */
void layers_end(const struct agent *a, struct buf *out);

#endif
