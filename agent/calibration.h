/*
 * calibration.h - the estimator's rates as JSON, for the next agent of the same model (W6).
 *
 * An agent reads and writes no file for this: the start document carries what earlier runs learned,
 * the result carries back what this one did, and the parent keeps the file
 * (orchestrator/calibration.h). The form, in both directions:
 *
 *     {"digits": {"rate": 1.42, "tokens": 51234}, ...}
 *
 * by names of text kinds; `tokens` is how many tokens taught the rate.
 */
#ifndef BATON_AGENT_CALIBRATION_H
#define BATON_AGENT_CALIBRATION_H

#include "agent/estimate.h"
#include "base/buf.h"
#include "base/json.h"

/* Kinds that this version does not know, and entries without sense, are passed over: returns how
 * many. NULL: nothing was learned yet. */
int calibration_read(struct estimator *estimator, struct json_object *rates);

/* Appends the rates of the kinds that this estimator has learned something of; {} if none. */
void calibration_write(const struct estimator *estimator, struct buf *out);

#endif
