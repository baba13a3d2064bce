/*
 * handoff_take.h - a generation begins from a handoff document and an empty history (R1).
 */
#ifndef BATON_AGENT_HANDOFF_TAKE_H
#define BATON_AGENT_HANDOFF_TAKE_H

#include "agent/message.h"
#include "base/err.h"

struct agent;

/* Reads settings->handoff_file into a->handoff, and the user's words of earlier generations (or, of a document that
 * a person wrote, those in it) into the ledger. Without a handoff nothing happens. ERR_IO, ERR_INVALID. */
int handoff_load(struct agent *a, struct err *err);

/* The opening of such a generation: the parts of any opening, the user's words by code in the place of the task, and
 * the document. Takes over `opening`, as conversation_opening made it. */
struct message *handoff_opening(struct agent *a, struct message *opening);

#endif
