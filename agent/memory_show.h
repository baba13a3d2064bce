/*
 * memory_show.h - when the model sees its working memory and its plan (H18, H13, trap 18).
 *
 *   changed            behind the results of the round in which it changed, once, as it is then
 *   after a compaction at the head of what follows, unless the messages that stay show it already
 *   after other rungs  at the end, if the copy that was shown last went with what they removed
 *
 * Older copies stay until an epoch ends (W11). Each copy says its state's number, the highest counts. The
 * blocks are ORIGIN_MEMORY: nothing in them ever counts as words of the user (X2).
 */
#ifndef BATON_AGENT_MEMORY_SHOW_H
#define BATON_AGENT_MEMORY_SHOW_H

#include "agent/attach.h"

/* Opens the memory of an agent that is being made; limits by its knobs and window. */
int memory_make(struct agent *a, struct err *err);

/* A row of news.c, also for the opening. */
void memory_add_news(struct agent *a, struct message *m);
/* After rungs that may have rewritten the view: a copy that went with what was removed comes as a new message
 * at the end. */
void memory_show_again(struct agent *a);
/* Rows of attach.c. */
int memory_attach(struct agent *a, const struct attach_input *in, struct message *head,
		  struct err *err);
/* What earlier runs in this repository noted (M2): data, and marked as such. */
void memory_add_earlier(struct agent *a, struct message *m);
int memory_attach_earlier(struct agent *a, const struct attach_input *in, struct message *head,
			  struct err *err);
int memory_attach_recall(struct agent *a, const struct attach_input *in, struct message *head,
			 struct err *err);

#endif
