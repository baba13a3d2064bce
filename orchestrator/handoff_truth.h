/*
 * handoff_truth.h - what the records answer about a handoff document (R4): the `struct handoff_truth` of document_check.h,
 * the same for the parent in a run and for `baton handoff check`.
 *
 * Files of the agent (words.jsonl, the end of transcript.jsonl) are read here. Git is asked by the caller, who has his own
 * way to baton-git (event loop or git_session), with one operation, `facts` (docs/documents.md); what was not asked or
 * not found is unknown.
 */
#ifndef BATON_ORCHESTRATOR_HANDOFF_TRUTH_H
#define BATON_ORCHESTRATOR_HANDOFF_TRUTH_H

#include "base/err.h"
#include "base/json.h"
#include "handoff/document_check.h"

struct handoff_records;

struct handoff_records *handoff_records_new(void);
void handoff_records_free(struct handoff_records *records); /* NULL allowed */

/* The body of `facts` for this document: its commits, files and names. The caller adds where to look:
 *   the members of an entry (past_agent_entry), for the history of an agent's own repository, or
 *   "tips": [revisions] of the user's repository, the document's head, checkpoint and branch;
 *   "tree": the commit whose files count (the checkpoint), or "worktree": true, the user's checkout as it is.
 * Caller puts it. */
struct json_object *handoff_facts_question(const struct handoff *handoff);

/* The answer of `facts`; kept. The parent may make up or change one: {"commits": {id: "on"|"off"|"none"},
 * "files": {path: blob id, "" where there is no such file}, "names": {text: bool}}. */
void handoff_records_git(struct handoff_records *records, struct json_object *answer);

/* What the user said: one call for each words.jsonl. ERR_NOT_FOUND. */
int handoff_records_words(struct handoff_records *records, const char *path, struct err *err);

/* The last 20 calls of a transcript.jsonl, with what came of them. ERR_NOT_FOUND. */
int handoff_records_calls(struct handoff_records *records, const char *path, struct err *err);

/* A command of the document was run: what it ended with, and `why` if it did not end by itself (NULL; "reached its time
 * limit"). */
void handoff_records_ran(struct handoff_records *records, const char *command, int exit_code,
			 const char *why);

/* Borrows the records. */
struct handoff_truth handoff_records_truth(struct handoff_records *records);

#endif
