/*
 * journal.h - run.jsonl: the one record of a run, written by the parent alone (I10).
 *
 * Records are buffered and committed once per turn of the loop, in one write; one fdatasync follows
 * if one of them is durable by its row in record_types.h. What may only happen after a record is
 * safe is deferred: journal_defer runs it right after the next commit. Reading is record.h's.
 */
#ifndef BATON_ORCHESTRATOR_JOURNAL_H
#define BATON_ORCHESTRATOR_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "orchestrator/record.h"

struct file_syncs;
struct journal;

/* Beside the file a reserve is kept, as room for the end of a run whose disk gets full: journal_commit gives it up
 * when it has to. */
int journal_open(const char *path, struct journal **ret, struct err *err);
void journal_close(struct journal *j); /* commits what is left, removes the reserve; NULL allowed */
/* The disk was full, and records go into what the reserve left: the run is to end now. Why, with the path; NULL: no. */
const char *journal_low(const struct journal *j);

/* A record of plain fields: fmt is a list of "name:kind" with kinds s (const char *, NULL left
 * out), i (int64_t), d (double, NAN left out: not known), b (int), j (struct json_object *, borrowed, NULL left out), e.g.
 * journal_add(j, RECORD_AGENT_ENDED, "agent:s status:s rounds:i", "a1", "done", (int64_t)3). Only fields of
 * its row, which tests/docs checks. */
void journal_add(struct journal *j, enum record_type type, const char *fmt, ...);
/* What is pending is synced with its commit, though no row asks for it. */
void journal_sync(struct journal *j);

/* Folders on the way to the journal: synced by the next durable commit, before what it defers. */
struct file_syncs *journal_syncs(struct journal *j);

typedef void (*journal_deferred_fn)(void *arg);
void journal_defer(struct journal *j, journal_deferred_fn fn, void *arg);

/* Writes and syncs what is pending, then runs the deferred calls (which may add records: they go
 * into the next commit). -1: the journal is broken (disk full, I/O error); nothing more can be
 * promised. */
int journal_commit(struct journal *j, struct err *err);
/* The last record is about to be added: the room that was kept for it is given back, so that a process that dies right after
 * it leaves none behind. */
void journal_last(struct journal *j);
bool journal_pending(const struct journal *j);

#endif
