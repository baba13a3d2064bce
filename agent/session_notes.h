/*
 * session_notes.h - when the notes of a session are brought up to date, and what they are good for (H4).
 *
 * A pass is a call in the background; the main loop only looks, at round boundaries, whether it is over.
 * It pays only where a compaction can use it: what comes after it stays in the window as it is, so a pass
 * long before the threshold would have to be repeated. So passes begin when what is left until then can
 * stay, and go on while what was added since could not (W11's prices: a pass costs what a summary costs).
 */
#ifndef BATON_AGENT_SESSION_NOTES_H
#define BATON_AGENT_SESSION_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/context/notes.h"
#include "base/err.h"

struct agent;
struct side_call;
struct model_client;

struct session_notes {
	struct notes notes;
	size_t covered; /* messages of the conversation that they cover; 0: none */
	struct side_call *call;
	size_t call_covers;
	int64_t call_round;
	struct model_client
		*client;    /* of calls that do not stand on the conversation; made when needed */
	int64_t calls_then; /* tool calls at the last pass */
	int64_t grown;	    /* tokens appended since the last pass, ... */
	size_t counted;	    /* ... up to this message */
	int failures;	    /* in a row */
	int64_t rest_until; /* round: after failures */
};

/* Reads notes.md of this generation if there is one; what it covers is not known then. */
void session_notes_init(struct agent *a);
void session_notes_release(struct agent *a);

/* Before a round: takes a pass that is over, opens one that is due. `threshold`: of the next compaction. */
void session_notes_tick(struct agent *a, int64_t threshold);

/* A pass is under way: worth waiting for, as long as there is room. */
bool session_notes_pending(const struct agent *a);

enum notes_use { NOTES_USABLE, NOTES_NONE, NOTES_LOST };
/* Can they stand for everything before some place of the view? *ret_tail is the first message there that
 * they do not cover. NOTES_LOST: something of it was put away by other means since. */
enum notes_use session_notes_use(const struct agent *a, size_t *ret_tail);

#endif
