/*
 * edits.h - what a provider that clears old results by itself leaves out of a prompt (wire.md 1.9).
 */
#ifndef SIMULATOR_EDITS_H
#define SIMULATOR_EDITS_H

#include "reading.h"

struct edits_done {
	int64_t tokens, uses;
};

/* Of a request that asks for it; nothing below its trigger, or if less than clear_at_least would go. */
struct edits_done edits_apply(const struct reading *r);

#endif
