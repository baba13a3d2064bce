/*
 * rehydrate.h - the files that an agent worked with, read again after a compaction (H13).
 *
 * A summary says what was in a file; the next edit needs the file. The newest ones by last access come
 * back as they are on disk at that moment, so that what was changed since the last read by a command, a
 * formatter or somebody else is seen before it is edited. What the newest messages, which stay, show
 * already does not come twice.
 */
#ifndef BATON_AGENT_CONTEXT_REHYDRATE_H
#define BATON_AGENT_CONTEXT_REHYDRATE_H

#include "handoff/knobs.h"
#include "agent/context/view.h"
#include "agent/ledger.h"
#include "agent/tools/files.h"

struct rehydrate {
	struct tool_context *files;
	const struct view *view;
	size_t from, tail; /* what stands before `from` and from `tail` on stays */
	const struct ledger *ledger;
	const struct context_knobs *knobs;
	const char *summary; /* files that it names come first */
	size_t summary_len;
	int64_t room; /* tokens for all of it */
};

/* Adds a block for each file, the more important first, and one that names those that are gone or could
 * not be shown. Files named in `summary`, in the blocks of `head` (task, plan) or in the newest failed
 * command come first. Each takes rehydrate_file tokens at most, by the ledger's estimate of its block,
 * all together `room`. -1: the agent is to stop. */
int rehydrate_files(const struct rehydrate *in, struct message *head, struct err *err);

/* By name alone: logs, lock files, generated and minified files, instructions. */
bool rehydrate_leaves_out(const char *path);

#endif
