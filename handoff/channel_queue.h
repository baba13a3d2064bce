/*
 * channel_queue.h - what a channel has not written yet: ordinary frames in order, and an urgent
 * lane.
 *
 * Internal to channel.c. A cancel must not wait behind the bodies of other calls, so frames of
 * FRAME_URGENT types overtake. They do so only between units (a frame, or all parts of a document),
 * never inside one, and never before the unit that came first into an empty queue. Among themselves
 * urgent frames keep their order: a cancel cannot overtake its own request.
 */
#ifndef BATON_HANDOFF_CHANNEL_QUEUE_H
#define BATON_HANDOFF_CHANNEL_QUEUE_H

#include "base/buf.h"

struct channel_queue {
	struct buf bytes; /* ordinary units, one after the other */
	size_t start;	  /* of them, bytes that are written */
	size_t head;	  /* bytes left of the unit that must be finished first */
	struct buf sizes; /* size_t each: the units behind head */
	size_t sizes_start;
	struct buf urgent;
	size_t urgent_start;
};

void channel_queue_clear(struct channel_queue *q); /* gives large memory back */
void channel_queue_release(struct channel_queue *q);
size_t channel_queue_size(const struct channel_queue *q);

/* A unit is added in pieces between begin and end; an urgent one needs neither. */
size_t channel_queue_begin(const struct channel_queue *q);
void channel_queue_add(struct channel_queue *q, const void *bytes, size_t n, bool urgent);
/* begun: what begin returned; first: the queue was empty then. */
void channel_queue_end(struct channel_queue *q, size_t begun, bool first);

/* The bytes that go out next (0: nothing), and how many of them did. */
size_t channel_queue_next(const struct channel_queue *q, const char **ret);
void channel_queue_wrote(struct channel_queue *q, size_t n);

#endif
