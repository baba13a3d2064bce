/*
 * calibration.h - what runs learned of the tokenizers of models, kept for the next run (W6).
 *
 * One file, $XDG_STATE_HOME/baton/calibration.json (docs/configuration.md): per model and kind of
 * text a rate and how many tokens taught it; and per model and role how long answers are (W3). It is read when the first agent starts, and merged and
 * replaced when the run ends. It only makes first estimates better: without it, or with a damaged
 * one, a run does all the same.
 */
#ifndef BATON_ORCHESTRATOR_CALIBRATION_H
#define BATON_ORCHESTRATOR_CALIBRATION_H

#include <stdbool.h>

#include "base/json.h"
#include "base/model_table.h"

struct calibration { /* all zero at first */
	bool loaded;
	struct json_object *known;   /* the file's models, as it stood at the start; may be NULL */
	struct json_object *learned; /* the same form: what agents of this run sent */
	struct json_object *lengths; /* the file's, as it stood at the start; may be NULL */
	struct json_object *seen;    /* the same form: answers of this run */
};

void calibration_release(struct calibration *calibration);

/* What is known of a model, for a start document: a new reference, or NULL. Reads the file the
 * first time; a damaged or foreign one is told on stderr and passed over. */
struct json_object *calibration_recall(struct calibration *calibration, const struct model *model);

/* Rates of a result document, by an agent that may be in anybody's hands: entries without sense are
 * passed over. */
void calibration_learn(struct calibration *calibration, const struct model *model,
		       struct json_object *rates);

/* W3, `compact_buffer: auto`. An answer of this role took so many tokens. */
void calibration_response(struct calibration *calibration, const struct model *model,
			  const char *role, int64_t tokens);
/* The 99th percentile of such answers and 20 %, in tokens; 0 as long as fewer than 200 are known. */
int64_t calibration_buffer(struct calibration *calibration, const struct model *model,
			   const char *role);

/* Merges what was learned into the file as it stands now. A failure is told on stderr. */
void calibration_save(struct calibration *calibration);

#endif
