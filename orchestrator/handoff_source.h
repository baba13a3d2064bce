/*
 * handoff_source.h - for commands: the handoff document that the user named, and the records that it can be held against.
 */
#ifndef BATON_ORCHESTRATOR_HANDOFF_SOURCE_H
#define BATON_ORCHESTRATOR_HANDOFF_SOURCE_H

#include "base/err.h"
#include "orchestrator/git_session.h"
#include "orchestrator/handoff_truth.h"
#include "orchestrator/runs.h"
#include "orchestrator/settings.h"

struct handoff_source {
	struct handoff *handoff;
	char *path;  /* that it was read from */
	bool json;   /* its form */
	char *other; /* of a run: the same document in the other form, beside it; else NULL */
};

/* `name` is a file, or RUN/AGENT[/GENERATION] (no generation: the newest that left a handoff). ERR_NOT_FOUND. */
int handoff_source_open(const struct settings *s, const char *name, struct handoff_source *ret,
			struct err *err);
void handoff_source_release(struct handoff_source *source);

/* What is known of it here: words and last calls, where its run lies in this repository, and git's answer.
 * `*ret_git` (may be NULL: there is no repository) is open for further questions, and `*ret_commit` is where its work
 * stands, NULL if that is not known; the caller closes and frees. What cannot be read is not known. */
struct handoff_records *handoff_source_records(const struct settings *s,
					       const struct handoff *handoff,
					       struct git_session **ret_git, char **ret_commit);

#endif
