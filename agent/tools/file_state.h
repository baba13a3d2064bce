/*
 * file_state.h - what the model has seen of each file, so that nothing is written over unseen
 * changes, and in which order it looked at them, so that the newest can be shown again (H13).
 *
 * read, write and edit record a file as it was; write and edit compare before they replace (trap
 * 108). A file counts as changed if its bytes did: a mere touch, or a rewrite with the same
 * content, is none. Where the bytes were not hashed (very large files) size, inode and time decide.
 */
#ifndef BATON_AGENT_TOOLS_FILE_STATE_H
#define BATON_AGENT_TOOLS_FILE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/tools/roots.h"

struct file_state {
	enum root_id root;
	char *path; /* the real one below the root */
	dev_t dev;
	ino_t ino;
	off_t size;
	int64_t mtime_ns;
	uint64_t hash;
	bool hashed;
	bool known;	 /* the fields above are set: a file may have been looked at without that */
	uint64_t access; /* order of the last call that read or changed it; larger is newer */
	int64_t first, lines; /* what was shown of it last; lines 0: nothing by number */
};

struct file_states {
	struct file_state *items;
	size_t count, cap;
	uint64_t clock; /* accesses so far */
};

#define FILE_HASH_START UINT64_C(14695981039346656037)
/* FNV-1a over a file that comes in pieces; any division gives the same value. */
uint64_t file_hash_add(uint64_t hash, const void *bytes, size_t n);

void file_states_release(struct file_states *states);
/* hash is taken as valid if hashed is set. */
void file_states_set(struct file_states *states, const struct place *place, const struct stat *st,
		     bool hashed, uint64_t hash);
/* NULL unless its bytes were recorded. */
const struct file_state *file_states_find(const struct file_states *states,
					  const struct place *place);
/* A call of the model read or changed the file: it is the newest from now on. Borrowed until the next
 * call; first and lines are the caller's to set. */
struct file_state *file_states_touch(struct file_states *states, const struct place *place);
/* True if the file is still what `state` says; bytes (NULL if not at hand) decide over the times.
 */
bool file_state_holds(const struct file_state *state, const struct stat *st, const void *bytes,
		      size_t n);

#endif
