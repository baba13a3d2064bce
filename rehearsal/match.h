/*
 * match.h - which rule answers a request.
 *
 * Rules are tried in order. The first one with an answer (or with a fault that is an answer) is
 * taken; rules with a fault alone that shapes the answer (cut, stall, slow ...) are laid over it.
 * What cannot be told from the request itself is counted here: how often a rule was used, in all,
 * in a conversation, or for the very same request.
 */
#ifndef BATON_REHEARSAL_MATCH_H
#define BATON_REHEARSAL_MATCH_H

#include "rehearsal/scenario.h"
#include "rehearsal/template.h"

struct match_counts; /* uses per rule and scope */

struct match_counts *match_counts_new(void);
void match_counts_free(struct match_counts *counts); /* NULL allowed */

struct decision {
	const struct rule *rule;    /* NULL: none matched */
	const struct rule *overlay; /* a rule whose fault shapes the answer; NULL: none */
};

/* Fills the scope's captures with those of the rule that answers. Uses are counted. */
struct decision match_rules(struct scenario *scenario, struct match_counts *counts,
			    struct request *r, struct scope *scope);
/* The name behind a "role:" line of the system prompt; borrowed. False if there is none. */
bool request_role(const struct request *r, const char **ret, size_t *ret_len);

#endif
