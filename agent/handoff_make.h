/*
 * handoff_make.h - a handoff document from records (R2, R3): what the agent itself can say without a model.
 *
 *   part            from
 *   goal, words, constraints   the ledger of the user's words
 *   finished        commands that pass, ticked items of the plan (the parent adds commits)
 *   point           the last changed file and the last command
 *   ruled_out, decisions, risks   the model's working memory, and what it said of decisions
 *   failures        commands that failed and were not seen to pass since
 *   first_action    the failure, the open item, the announced step or the changed file that is newest
 *   tasks           the plan, pending lines of the working memory, the step that was announced
 *   files, names, jobs, logs   calls and results
 *   and of all that    what the document before said and nothing since has overtaken (handoff_carry.h)
 *
 * It is enough to go on; what nobody could say stands under `missing`. handoff_ask.h adds a model's judgement.
 */
#ifndef BATON_AGENT_HANDOFF_MAKE_H
#define BATON_AGENT_HANDOFF_MAKE_H

#include "handoff/document.h"

struct agent;

/* Caller frees. */
struct handoff *handoff_make(struct agent *a, enum handoff_reason reason, const char *why);

#endif
