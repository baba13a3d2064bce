/*
 * compact_wait.h - what came of a wish that was told to an agent: read off the run's journal as it grows.
 *
 * The journal and not the control socket, because the parent keeps no list of who asked what: an agent follows a wish
 * before its next request, which may be minutes later, and the run may end before that.
 */
#ifndef BATON_ORCHESTRATOR_COMPACT_WAIT_H
#define BATON_ORCHESTRATOR_COMPACT_WAIT_H

#include "base/err.h"
#include "base/json.h"
#include "orchestrator/view/tail.h"

struct compact_wait {
	const char *dir, *agent; /* borrowed */
	struct tail journal;
	int watch;		 /* inotify */
	struct json_object *end; /* the record that ended the wait */
};

/* Before the wish is told: what was written earlier is no answer to it. */
int compact_wait_begin(struct compact_wait *w, const char *dir, const char *agent, struct err *err);
void compact_wait_end(struct compact_wait *w);

/* Waits at most so long. 0 and *ret (w's): the data of agent.compact_wish or agent.compact_review. ERR_CLOSED: agent or run
 * ended before; ERR_TIMEOUT. */
int compact_wait_for(struct compact_wait *w, int64_t most_ms, struct json_object **ret,
		     struct err *err);

#endif
