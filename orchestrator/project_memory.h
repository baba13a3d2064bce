/*
 * project_memory.h - what runs keep for later runs in the same repository (M2, H21).
 *
 * One file, <common>/baton/memory/MEMORY.md (docs/memory.md), shared by all worktrees, a person's to edit. It
 * is read when a run opens; agents are given its first lines as data of earlier runs. What their models put
 * into the memory fields `preferences` and `lessons` comes with their result and is merged when the run
 * ends. The parent alone writes there: no agent's box reaches that folder.
 */
#ifndef BATON_ORCHESTRATOR_PROJECT_MEMORY_H
#define BATON_ORCHESTRATOR_PROJECT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct project_memory {		     /* all zero at first */
	char *folder;		     /* NULL: no memory is kept in this run */
	char *text;		     /* the file's entries as they stood at the start; NULL: none */
	struct json_object *learned; /* [{"kind", "text"}], of this run's agents */
};

struct project_memory_saved {
	int64_t added, known, refused, expired, total; /* entries */
	struct json_object *lines;		       /* what was added; the caller's */
};

/* A file that cannot be read is told on stderr and passed over. */
void project_memory_open(struct project_memory *m, const char *common_dir);
void project_memory_release(struct project_memory *m);

/* For a start document. Caller frees; NULL: nothing. */
char *project_memory_text(const struct project_memory *m);

/* The `memory` of a result document, by an agent that may be in anybody's hands. */
void project_memory_learn(struct project_memory *m, struct json_object *fields);

/* Merges what was learned into the file as it stands now. False: there was nothing to do, or it failed,
 * which is told on stderr. */
bool project_memory_save(struct project_memory *m, struct project_memory_saved *ret);

#endif
