/*
 * plan.h - what one session is: all that is decided before it begins, drawn from its seed.
 */
#ifndef SIMULATOR_PLAN_H
#define SIMULATOR_PLAN_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/model_table.h"
#include "faults.h"
#include "random.h"
#include "samples.h"

#define MODEL_APART "model-2" /* plan.apart */

enum form { FORM_CI, FORM_NIGHTLY };

struct session_plan {
	uint64_t seed;
	enum model_api api;
	const char *dialect;
	int64_t window;	     /* as the agent is told */
	int64_t true_window; /* of the server */
	int64_t max_output, wanted_output;
	enum fault overflow; /* how the server says that a prompt is too long */
	bool thinks;
	bool bound; /* signatures are bound to the prefix (wire.md 1.6) */
	bool priced, parallel, images, demands_reasoning;
	int64_t rounds;			/* after so many the model reports */
	int64_t max_rounds;		/* the role's limit */
	int64_t text_size, result_size; /* medians, bytes */
	double result_spread;
	unsigned fault_percent;				/* of the table's rates */
	unsigned interject, interrupt, shrink, by_hand; /* per 10,000 rounds */
	unsigned bad_summaries;				/* per cent of the table's rates */
	bool stubborn;	      /* the provider counts far more than the agent believes */
	int64_t instructions; /* bytes */
	bool compact_off;
	bool decay, clear_idle, budget_notes; /* knobs that are off by themselves */
	int64_t proactive_pct;
	int64_t files;	  /* names that the tools work on: few are read again and again */
	bool real;	  /* the tools work on files (world.h) */
	unsigned repeats; /* per 10,000 calls: an old one again */
	bool edits,
		refuses_edits; /* the provider clears old results by itself; its server knows nothing of that */
	unsigned switches; /* per 10,000 rounds: cut off, and on with another model */
	int lives;	   /* before this one */
	/* Another model summarises (H16), in this form and with this window. */
	bool apart;
	enum model_api apart_api;
	int64_t apart_window;
	/* Of a session whose price is measured (cost.c); zero in others. */
	bool fixed; /* what the model and the tools say in a round does not depend on the ladder */
	const char *context; /* members of the start document's `context` */
	struct model_price price;
};

void plan_make(struct session_plan *plan, uint64_t seed, enum form form);
/* Another model from here on. */
void plan_switch(struct session_plan *plan, struct random *r);
/* The start document (docs/documents.md) for a generation in `folder`. `task` is the user's first word. */
void plan_document(const struct session_plan *plan, const char *folder, const char *task,
		   const char *instructions, struct buf *out);

#endif
