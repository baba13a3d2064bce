/*
 * snapshot.h - what was done in a stretch of rounds, as one text made by rule (H3).
 *
 * Without a model: files with what was last done to them, commands with how they ended and the errors of
 * those that still fail, what was tried in vain, what the answers decided (quoted), results that nobody can get
 * again. It is made from the conversation, so it can be made anew over a longer stretch: two collapses give
 * one snapshot and not a snapshot of a snapshot. The goal is not in it: the user's words stand beside it
 * as they are.
 */
#ifndef BATON_AGENT_CONTEXT_SNAPSHOT_H
#define BATON_AGENT_CONTEXT_SNAPSHOT_H

#include "agent/conversation.h"
#include "base/buf.h"

/* Appends the snapshot of the rounds `first` to `last`, at most about `budget` bytes: each section has a
 * share, and in each the newest things stay. */
void snapshot_write(const struct conversation *conversation, int64_t first, int64_t last,
		    size_t budget, struct buf *out);

/* Is this block a snapshot? Then *ret_first and *ret_last are its rounds. */
bool snapshot_is(const struct block *block, int64_t *ret_first, int64_t *ret_last);

#endif
