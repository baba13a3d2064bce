/*
 * compact_review.h - what a person sees of a compaction, and may say to it before it is used (X4).
 */
#ifndef BATON_AGENT_COMPACT_REVIEW_H
#define BATON_AGENT_COMPACT_REVIEW_H

#include "agent/compact_job.h"

/* Waits for a word on job->summary, at most knob compact_review_ms. 0: use it, perhaps edited; 1: rejected;
 * -1: stopped or alone. 0 at once where no review is wanted. */
int compact_review(struct compact_job *job, struct err *err);

/* A word on a summary that waits: accept, reject, or a text in its place. */
bool compact_is_word(struct json_object *wish);

/* Leaves compactions/N.before.md and N.after.md: the stretch that was replaced, and `with`. What cannot be
 * written is a warning. */
void compact_keep_texts(struct compact_job *job, const struct message *with);

#endif
