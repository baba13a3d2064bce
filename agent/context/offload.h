/*
 * offload.h - the lowest rung: results are shortened and written to files as they arrive (T1, T2,
 * T4, T5, T10), and cut to what the window still holds (W7).
 */
#ifndef BATON_AGENT_CONTEXT_OFFLOAD_H
#define BATON_AGENT_CONTEXT_OFFLOAD_H

#include "agent/context/arrival.h"
#include "agent/context/budget.h"
#include "agent/ledger.h"
#include "agent/start.h"

struct offload {
	char *results_dir; /* the folder behind `results:` */
	int64_t next_file;
	const struct context_knobs *knobs;  /* T1 */
	const struct window_budget *budget; /* T2, T10 */
};

/* Makes the results folder (0700). Settings and budget are borrowed, and looked at anew each time. */
int offload_init(struct offload *offload, const struct agent_settings *settings,
		 const struct window_budget *budget, struct err *err);
void offload_release(struct offload *offload);

/* Decides on all results that answer one assistant message; sets text (and file) of each. `room` is
 * what they may take in all, in tokens. A file that cannot be written is named in the preview and
 * does not fail the call. Returns the tokens that were kept out of the window, by the estimate. */
int64_t offload_admit(struct offload *offload, const struct ledger *ledger, struct arrival *list,
		      size_t n, int64_t room);

#endif
