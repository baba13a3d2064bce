/*
 * sample_texts.h - texts of many kinds made from templates and a seed, the same on every machine.
 *
 * For tests that need text whose token counts by real tokenizers are on record
 * (tests/golden/token_counts.json): a change of the templates asks for a new record, see
 * test_estimate_golden.c.
 */
#ifndef BATON_TESTS_SAMPLE_TEXTS_H
#define BATON_TESTS_SAMPLE_TEXTS_H

#include <stddef.h>

#include "base/buf.h"

enum { SAMPLE_PIECES = 9 }; /* of one conversation */

size_t sample_kinds(void);
const char *sample_kind(size_t kind);

/* Appends piece number `piece` of the conversation about that kind: 1 to 5 KB. */
void sample_text(size_t kind, size_t piece, struct buf *out);

#endif
