/*
 * document_rig.h - handoff documents for tests: random ones, and whether two are the same.
 */
#ifndef BATON_TESTS_HANDOFF_DOCUMENT_RIG_H
#define BATON_TESTS_HANDOFF_DOCUMENT_RIG_H

#include <stdint.h>

#include "handoff/document.h"

/* A document of any parts, members and texts; the same one for the same seed. Caller frees. */
struct handoff *random_document(uint32_t seed);

/* NULL if both hold the same, else where they differ (a static text). */
const char *document_difference(const struct handoff *a, const struct handoff *b);

#endif
