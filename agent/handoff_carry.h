/*
 * handoff_carry.h - what a generation hands on of the document that it began from (R1).
 *
 * Its own history begins with that document, so nothing that stands there would be found again. Taken over is what this
 * generation's records do not overtake: a command that was run again counts as it ended now, a file as it was touched
 * now (but what was changed once stays changed), an announced step until another one is announced or its command ran.
 * Old ones come first; of each part no more than a document has room for, and the oldest go, with a line in `missing`.
 */
#ifndef BATON_AGENT_HANDOFF_CARRY_H
#define BATON_AGENT_HANDOFF_CARRY_H

#include "agent/context/facts.h"
#include "handoff/document.h"

#define HANDOFF_NEXT_ID "next" /* of the task that is the announced step */

/* `h` holds what this generation knows by itself. */
void handoff_carry(struct handoff *h, const struct handoff *before, const struct facts *facts);

/* Did a command that stands in this text run behind that round? */
bool handoff_was_done(const struct facts *facts, const char *text, int64_t round);

#endif
