/*
 * hooks.h - the agent's side of hooks (M6): when they are asked, and what becomes of what they say.
 *
 * The agent runs no hook: it asks the parent by a `hook` frame and waits for the answer as it waits for everything,
 * so a stop or a dead parent end the wait. Nothing is asked that no hook of this run wants: the start document
 * lists events and matchers.
 *
 * What a hook printed is data. It stands in messages as blocks of ORIGIN_HOOK, between marks that name it,
 * and neither the ledger of the user's words nor that of constraints ever sees it (X2).
 *
 * Return values as in state.h: 0, 1 where said, -1 stopped or alone.
 */
#ifndef BATON_AGENT_HOOKS_H
#define BATON_AGENT_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct agent;
struct attach_input;
struct block;
struct json_object;
struct message;
struct tool_result;

struct agent_hooks {
	struct buf session; /* what SessionStart last added, as it stands in the window */
	int64_t asked;	    /* numbers the keys */
	int64_t vetoed_at;  /* tokens used when PreCompact last said no; 0: it did not */
};
void hooks_release_texts(struct agent_hooks *hooks);

/* At the start: InstructionsLoaded, then SessionStart, whose text goes to the opening's end. */
int hooks_at_start(struct agent *a, struct message *opening, struct err *err);

/* InstructionsLoaded for one file that came later: reason "compact", "nested" or "rule". */
int hooks_instructions_loaded(struct agent *a, const char *reason, const char *origin,
			      const char *path, struct err *err);

/* 1: denied, and *out says so to the model. */
int hooks_before_tool(struct agent *a, const struct block *call, struct json_object *input,
		      struct buf *out, struct err *err);
int hooks_after_tool(struct agent *a, const struct block *call, struct json_object *input,
		     const struct tool_result *result, int64_t duration_ms, struct err *err);

/* Before a compaction: trigger "auto", "manual" or "reactive"; focus is the user's, "" if none. *out gets what
 * the hooks want to be kept, to stand in the compaction's request. 1 and why: they say no, and there is room to
 * heed it (X1: an automatic one is refused only below the point where the agent would have to end). */
int hooks_before_compact(struct agent *a, const char *trigger, const char *focus, struct buf *out,
			 struct err *why, struct err *err);
/* After it: PostCompact, whose text comes as a new message. */
struct hooks_compacted {
	const char *trigger;
	int64_t before, after; /* tokens */
	bool by_rule;
	const char *summary;
};
int hooks_after_compact(struct agent *a, const struct hooks_compacted *facts, struct err *err);

/* The row of attach.h: SessionStart once more, with source "compact". */
int hooks_attach(struct agent *a, const struct attach_input *in, struct message *head,
		 struct err *err);

#endif
