/*
 * jsonl.h - journal lines: append-only JSON Lines files with stated durability (I5, I10).
 *
 * One writer per file. A batch of records goes out in one write; a short write is truncated back
 * and reported; a failed fsync is never repeated on that file: the writer is broken afterwards and
 * every further append fails with the same error. Opening for append first isolates a torn last
 * line by ending it with a newline (trap 140). Reading isolates bad lines, counts them, and goes
 * on (trap 138).
 */
#ifndef BATON_BASE_JSONL_H
#define BATON_BASE_JSONL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct file_syncs;
struct jsonl_writer; /* buffers records of one batch */

/* Creates (mode 0600) or opens for append. A new file's folder is fsynced by the first durable
 * flush: a file without records that a power cut takes away has lost nothing. */
int jsonl_open(const char *path, struct jsonl_writer **ret, struct err *err);
void jsonl_close(struct jsonl_writer *w); /* flushes without sync; NULL allowed */

/* Starts a record: writes {"t":"...Z","type":"TYPE" into the batch buffer and returns it, so that
 * the caller appends `,"key":value` members; jsonl_end adds "}\n". Nothing reaches the file yet. */
struct buf *jsonl_begin(struct jsonl_writer *w, const char *type);
void jsonl_end(struct jsonl_writer *w);
/* The same from a tree (its members follow t and type). */
void jsonl_add(struct jsonl_writer *w, const char *type, struct json_object *members);

/* Folders on the way to this file that the caller made: the next durable flush syncs them too.
 * Borrowed until the writer is closed. */
struct file_syncs *jsonl_syncs(struct jsonl_writer *w);

/* Writes the batch in one write(2). With durable, one fdatasync follows, and the syncs of the
 * folders that have waited. */
int jsonl_flush(struct jsonl_writer *w, bool durable, struct err *err);
int64_t jsonl_offset(const struct jsonl_writer *w); /* bytes on disk, in whole records */
bool jsonl_pending(const struct jsonl_writer *w);   /* records are buffered */

struct jsonl_stats {
	int64_t records;
	int64_t bad_lines;
	int64_t first_bad_line; /* 1-based, 0 if none */
};

/* Calls on_record for each whole valid line from byte offset `from`. A last line without newline
 * is bad. Lines above max_line bytes are bad. Return non-zero from the callback to stop; that value
 * is returned. `offset` is the byte offset of the line. */
typedef int (*jsonl_record_fn)(struct json_object *record, int64_t offset, void *arg);
int jsonl_read(const char *path, int64_t from, size_t max_line, jsonl_record_fn on_record,
	       void *arg, struct jsonl_stats *ret_stats, struct err *err);

/* The same for the lines of which `want` says so, by their bytes: searching a long file, most lines need
 * no parsing. What is not wanted is counted nowhere. */
typedef bool (*jsonl_want_fn)(const char *line, size_t n, void *arg);
int jsonl_search(const char *path, size_t max_line, jsonl_want_fn want, jsonl_record_fn on_record,
		 void *arg, struct jsonl_stats *ret_stats, struct err *err);

#endif
