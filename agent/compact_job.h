/*
 * compact_job.h - one compaction, as compact.c (decides), compact_call.c (asks for a summary) and
 * compact_view.c (builds what follows) share it.
 *
 *   view:   head | k1 .. | r1 r2 ... | tail        [from, tail) is replaced
 *
 *   kind     from               what stands there afterwards
 *   full     0                  one new head: opening, words, summary, attachments
 *   up to    0                  the same; the tail reaches back to where the present work began
 *   from     behind summaries   a further summary behind those that stay: their prefix stays cached
 *   notes    0                  as full, the notes in the summary's place, no call
 *   rule     0                  as full, facts in the summary's place
 */
#ifndef BATON_AGENT_COMPACT_JOB_H
#define BATON_AGENT_COMPACT_JOB_H

#include "agent/compact.h"

enum compact_kind { KIND_FULL, KIND_UP_TO, KIND_FROM, KIND_NOTES, KIND_RULE };

struct compact_job {
	struct agent *a;
	const struct compact_request *request;
	enum compact_kind kind;
	size_t from, tail;
	int64_t before, replaced; /* tokens of the view, of [from, tail) */
	int64_t began;
	struct buf focus; /* the request's, and what hooks name (M6) */
	struct buf summary;
	char why[300]; /* of the last failure */
	int64_t call_input, call_output;
	struct model_usage spent; /* of all calls */
};

/* compact_call.c: 0: job->summary holds one that passed; 1: none, job->why; -1: stopped or alone. */
int compact_ask(struct compact_job *job, struct err *err);

/* compact_view.c: the new view, the boundary record (H12), the event. 0 or -1. */
int compact_replace(struct compact_job *job, struct err *err);
/* Facts in the summary's place (X1): without a model. */
void compact_facts(struct compact_job *job);

/* compact_apart.c: the same of another model, which gets the stretch as text (H16). */
int compact_ask_apart(struct compact_job *job, struct err *err);

/* What an answer gave: 0 with job->summary, 1 with job->why. Books its usage and releases it. */
int compact_take(struct compact_job *job, struct stream_answer *answer);

int64_t compact_estimate(const struct view *view, size_t from, size_t to);

#endif
