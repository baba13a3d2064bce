/*
 * news.h - what baton has to say to the model besides results, as a table: each row adds blocks behind the
 * tool results of a round (W11: news goes into a new message, never into an old one).
 */
#ifndef BATON_AGENT_NEWS_H
#define BATON_AGENT_NEWS_H

#include "agent/state.h"

struct news {
	const char *name;
	void (*add)(struct agent *a, struct message *m); /* blocks or none */
};

/* Runs the table on a message of results that is about to be appended. */
void news_add(struct agent *a, struct message *m);

#endif
