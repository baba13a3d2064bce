/*
 * memory_index.h - MEMORY.md: what runs noted for later runs in this repository (M2, H21), as text.
 *
 * One line an entry, newest first:
 *   - 2026-11-30 preference: tabs in Makefiles
 *   - 2026-11-30 until 2026-12-14 lesson: skip test_net for now, its server is down
 * Every other line is a person's and is kept as it is. Nothing here opens a file.
 */
#ifndef BATON_ORCHESTRATOR_MEMORY_INDEX_H
#define BATON_ORCHESTRATOR_MEMORY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MEMORY_INDEX_LINES 200 /* M2: what is loaded at the start */
#define MEMORY_INDEX_BYTES 25000

struct memory_entry {
	char *line;	/* as it stands in the file */
	size_t text;	/* offset in it of what was noted; 0: a person's line */
	char until[11]; /* "2026-12-14"; "": for good */
};

struct memory_index {
	struct memory_entry *list; /* in the file's order */
	size_t n, cap;
};

enum memory_verdict {
	MEMORY_ADDED,
	MEMORY_KNOWN,	 /* near enough to one that is there: the newer wording stands, if ours */
	MEMORY_SECRET,	 /* looks like a key or a password */
	MEMORY_VOLATILE, /* names a commit: git knows its history better */
	MEMORY_UNFIT,	 /* empty, or too long for a line */
};

/* `today` is "2026-11-30". Entries whose time is over are left out; returns how many. */
size_t memory_index_read(struct memory_index *index, const char *text, size_t n, const char *today);
void memory_index_release(struct memory_index *index);

/* Puts an entry at the top. `kind` is "preference" or "lesson". What calls itself temporary expires after
 * two weeks, or at the date that it names ("until 2026-12-31"). */
enum memory_verdict memory_index_add(struct memory_index *index, const char *kind, const char *text,
				     size_t n, const char *today);

/* All of it, for the file. The oldest entries of ours go where there are more than fit. */
void memory_index_write(struct memory_index *index, struct buf *out);
/* The first lines that fit `max` bytes and MEMORY_INDEX_LINES, for agents. */
void memory_index_show(const struct memory_index *index, size_t max, struct buf *out);

#endif
