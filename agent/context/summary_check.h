/*
 * summary_check.h - what a summary claims against what is known (R4): files that it names.
 *
 * Sections and form are summary.c's, the user's words are words_check.c's. A file that is neither on disk nor
 * was spoken of in the conversation is invented, and a summary that invents files is not used.
 */
#ifndef BATON_AGENT_CONTEXT_SUMMARY_CHECK_H
#define BATON_AGENT_CONTEXT_SUMMARY_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/message.h"
#include "base/err.h"

struct summary_check {
	struct message *const *list; /* the conversation that it stands for */
	size_t n;
	bool (*exists)(const char *name, void *arg); /* on disk now */
	void *arg;
};

/* 0, or ERR_INVALID with the first names that nobody knows. */
int summary_check_files(const char *summary, size_t n, const struct summary_check *check,
			struct err *err);

/* Calls fn for each word of the text that looks like the path of a file: with a folder before it and an
 * extension behind. Stops when fn returns false. For rehydration too. */
void summary_each_file(const char *text, size_t n,
		       bool (*fn)(const char *name, size_t len, void *arg), void *arg);

#endif
