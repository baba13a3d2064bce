/*
 * arguments.h - the argument text of a tool call: when it is whole, and its form for a request.
 *
 * What runs a shell command is decided here (traps 37, 39, 43): raw control characters inside
 * strings are a habit of models and are accepted; anything unfinished is refused, never completed.
 */
#ifndef BATON_AGENT_MODEL_ARGUMENTS_H
#define BATON_AGENT_MODEL_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the arguments as strict JSON text of one object: blank and "null" give {}; text that is
 * strict already is copied as it is, so that it goes back as it came; else it is written anew.
 * Returns false, with nothing appended, if the text is no whole object. */
bool arguments_normalise(struct buf *out, const char *text, size_t n);

/* Follows the text of a value as it comes in pieces, to tell when an object is complete. */
struct arguments_scan {
	int depth;
	bool in_string, escaped;
	bool complete; /* an object was closed on the outermost level */
};
void arguments_scan(struct arguments_scan *scan, const char *piece, size_t n);

#endif
