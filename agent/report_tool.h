/*
 * report_tool.h - the report: the one tool that ends the work (A4, X5).
 */
#ifndef BATON_AGENT_REPORT_TOOL_H
#define BATON_AGENT_REPORT_TOOL_H

#include "agent/context/arrival.h"
#include "agent/state.h"

#define REPORT_WRONG_MAX 2 /* a wrong shape goes back to the model so often */

/* The model called report: checks it and delivers it. 1: delivered, or refused for the last time
 * and made by rule; the outcome is set. 0: of a wrong shape, the error is in arrival->result. */
int report_take(struct agent *a, struct arrival *arrival, struct err *err);

/* A report from the records and the model's last text (may be NULL), because of `why`; delivers it.
 * The outcome is the caller's business. */
int report_by_rule(struct agent *a, const char *why, const char *text, struct err *err);

#endif
