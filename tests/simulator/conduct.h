/*
 * conduct.h - what the model says, and what goes wrong while it does.
 */
#ifndef SIMULATOR_CONDUCT_H
#define SIMULATOR_CONDUCT_H

#include "session.h"

/* Decides the steps of a call whose request was read. */
void conduct_answer(struct session *s, struct server_call *c, const struct reading *r,
		    const char *body, size_t n);
/* The words for a call of a compaction and for one of the notes (summaries.c); speech is begun, the end is the
 * caller's: returns the stop reason. */
const char *conduct_summary(struct session *s, struct server_call *c, enum fault fault);
const char *conduct_notes(struct session *s, struct server_call *c, enum fault fault);

#endif
