/*
 * mutants.h - what is broken on purpose, one row an invariant, to show that the watcher sees it.
 *
 * A mutant corrupts what the product made before the server sees it, or turns a part of the agent against its own
 * rule. Each names the rule that the watcher must name in its finding.
 */
#ifndef SIMULATOR_MUTANTS_H
#define SIMULATOR_MUTANTS_H

#include "session.h"

struct mutant {
	const char *name, *rule;
	void (*plan)(struct session_plan *plan); /* the session that brings it out */
	void (*body)(struct session *s, const struct server_call *c, struct buf *body);
	void (*round)(struct session *s); /* after each round */
	void (*call)(struct session *s, const struct server_call *c);
	void (*pair)(struct session *s, struct session *other); /* both are under way */
	void (*transcript)(struct session *s, const char *path);
};

const struct mutant *mutant_table(size_t *ret_count);
const struct mutant *mutant_find(const char *name);

#endif
