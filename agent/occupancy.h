/*
 * occupancy.h - what is told of how full the window is: to the user (W2, W5, H15, H17, H22) and, if the role
 * asks for it, to the model (W13). It only tells; what follows from a threshold is room.h's and round.h's.
 */
#ifndef BATON_AGENT_OCCUPANCY_H
#define BATON_AGENT_OCCUPANCY_H

#include "agent/model/client.h"

struct agent;
struct message;

struct occupancy { /* all zero at first */
	bool reminded, warned, repeated;
	int64_t noted_epoch; /* of the view: whose marks `noted` counts */
	int noted;	     /* marks that are passed or told */
};

/* All thresholds and the working space (W5): at the start, and when the window turns out to be another. */
void occupancy_start(struct agent *a);
/* Before a request of `used` tokens: reminder, warning, repeated warning, each once until much less is
 * used again. */
void occupancy_look(struct agent *a, int64_t used);
/* The request is rendered and leaves; its answer came (H17). */
void occupancy_sent(struct agent *a);
void occupancy_answered(struct agent *a, const struct model_usage *usage);
/* A row of news.h (W13): a mark that was passed in this epoch. */
void occupancy_add_note(struct agent *a, struct message *m);

#endif
