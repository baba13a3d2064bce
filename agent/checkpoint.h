/*
 * checkpoint.h - when an agent asks the parent to store the state of its worktree (I7, design.md).
 *
 * Commits are the model's business and may be an hour apart; a checkpoint bounds what is lost if
 * the worktree goes (a cleaner of temporary files, rm -rf by a tool) or everything is killed. It is
 * asked for at most every `checkpoint_ms`, only when a tool changed something since the last one,
 * and only while a request is under way: no tool of ours runs then, so the tree holds still, and
 * nobody waits for the answer.
 */
#ifndef BATON_AGENT_CHECKPOINT_H
#define BATON_AGENT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct agent;

struct checkpoints {
	int64_t asked_ms; /* monotonic: the last one, or the start */
	int64_t count;	  /* asked for so far; numbers the keys */
	bool changed;	  /* a tool had effects since the last one */
	bool open;	  /* its answer has not come */
	bool warned;
};

void checkpoint_init(struct agent *a);
/* A tool with effects ran. */
void checkpoint_changed(struct agent *a);
/* A request has just been started. */
void checkpoint_maybe(struct agent *a);

#endif
