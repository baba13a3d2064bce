/*
 * repeat.h - notices that the same call keeps giving the same result (X13, trap 154).
 */
#ifndef BATON_AGENT_REPEAT_H
#define BATON_AGENT_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPEAT_TELL 3 /* times until the model is told */
#define REPEAT_STOP 5 /* times until the attempt ends */
#define REPEAT_KEEP 32

struct repeats {
	uint64_t seen[REPEAT_KEEP]; /* fingerprints of the newest calls, as a ring */
	size_t n;		    /* calls so far */
};

/* Books a call with its arguments and result; returns how often it was seen among the newest calls,
 * this one included. `changed` says that a file tool changed something: a call that is seen for the
 * first time and did so starts the count afresh, because looking again after a change is no
 * repetition. */
int repeat_count(struct repeats *repeats, const char *tool, const char *arguments,
		 size_t n_arguments, const char *result, size_t n_result, bool changed);

#endif
