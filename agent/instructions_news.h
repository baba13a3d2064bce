/*
 * instructions_news.h - instructions as parts of the agent's loop: rows of news.c and compact.c, and the events
 * that tell the parent which files were loaded and why.
 */
#ifndef BATON_AGENT_INSTRUCTIONS_NEWS_H
#define BATON_AGENT_INSTRUCTIONS_NEWS_H

#include "agent/state.h"

/* Behind the results of a round: what its files call for (M1). */
void instructions_news(struct agent *a, struct message *m);
/* At the start of the head that follows a compaction (H14); see instructions_add_head. */
void instructions_head(struct agent *a, struct message *head, bool opening_stays);
/* An event and the hooks (M6) for each load that nobody was told of. */
void instructions_tell(struct agent *a);

#endif
