/*
 * samples.h - texts to converse with: what tools give, what models write, what users say.
 *
 * Of each kind there is one large text, made once from a fixed seed; a sample is a part of it. So a megabyte costs a
 * copy. What users say is made of sentences of known sense, each with a number of its own, so that the watcher can
 * look for it.
 */
#ifndef SIMULATOR_SAMPLES_H
#define SIMULATOR_SAMPLES_H

#include "base/buf.h"
#include "random.h"

enum sample_kind {
	SAMPLE_PROSE,
	SAMPLE_C,
	SAMPLE_PYTHON,
	SAMPLE_JSON,
	SAMPLE_LOG,
	SAMPLE_CHINESE,
	SAMPLE_BASE64,
	SAMPLE_MINIFIED,
	SAMPLE_KINDS,
};

void samples_make(void); /* once, before any worker starts */

/* Appends about n bytes, whole characters. */
void sample_add(struct buf *out, struct random *r, enum sample_kind kind, size_t n);
/* The same of any bytes: as a tool finds them in a file. */
void sample_add_raw(struct buf *out, struct random *r, enum sample_kind kind, size_t n);

/* One sentence that lays something down, in the user's mouth. `number` makes it unlike all others. */
void sample_constraint(struct buf *out, struct random *r, int64_t number);
/* A sentence that says that somebody laid down what nobody did. */
void sample_lie(struct buf *out, struct random *r, int64_t number);

#endif
