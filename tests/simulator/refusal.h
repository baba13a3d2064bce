/*
 * refusal.h - for what a strict provider answers 400 although the body is well-formed: calls and results that do not
 * pair, roles out of order, signatures that are bound to another prefix (wire.md 1.5, 1.6, 2.1).
 */
#ifndef SIMULATOR_REFUSAL_H
#define SIMULATOR_REFUSAL_H

#include "reading.h"

struct refusal {
	const char *rule; /* which of our rules it shows broken: "I2", "W11" */
	char text[300];	  /* as the provider would say it */
};

struct refusal_rules {
	bool bound;	/* thinking is bound to what stands before it */
	bool reasoning; /* assistant messages with calls must bring their reasoning */
};

/* Messages before `from` passed with the same prefix. -1: refused. */
int refusal_check(const struct reading *r, size_t from, const struct refusal_rules *rules,
		  struct refusal *ret);

#endif
