/*
 * counts.h - how often each part of the context engine did something, for one agent.
 *
 * Plain numbers; the result of an agent and the simulator read them.
 */
#ifndef BATON_AGENT_CONTEXT_COUNTS_H
#define BATON_AGENT_CONTEXT_COUNTS_H

#include <stdint.h>

#define CONTEXT_COUNTS(COUNT)                                                                      \
	COUNT(requests)	     /* of the agent's own */                                              \
	COUNT(compact_calls) /* calls that ask for a summary */                                    \
	COUNT(full)	     /* compactions by a summary of all that is older than the tail */     \
	COUNT(up_to)	     /* with a tail that reaches back to where the present work began */   \
	COUNT(from)	     /* behind an earlier summary that stays */                            \
	COUNT(by_notes)	     /* without a summary call (H4) */                                     \
	COUNT(by_rule)	     /* no summary could be had: facts */                                  \
	COUNT(reactive)	     /* because the provider said so */                                    \
	COUNT(shrunk)	     /* the summary call itself was too long (H7) */                       \
	COUNT(manual)	     /* asked for by a person */                                           \
	COUNT(undone)                                                                              \
	COUNT(early)	     /* below the threshold, because of the prices */                      \
	COUNT(futile)	     /* left the window above the threshold, or freed too little */        \
	COUNT(refused_check) /* summaries that did not pass the check */                           \
	COUNT(notes_calls)   /* passes of the notes */                                             \
	COUNT(notes_failed)                                                                        \
	COUNT(notes_skipped)   /* by price */                                                      \
	COUNT(notes_empty)     /* fall-through: there are none */                                  \
	COUNT(notes_lost)      /* fall-through: what they cover is not in the view any more */     \
	COUNT(notes_too_large) /* fall-through: with them it would not fit */                      \
	COUNT(reset_wanted)

struct context_counts {
#define COUNT_FIELD(name) int64_t name;
	CONTEXT_COUNTS(COUNT_FIELD)
#undef COUNT_FIELD
};

#endif
