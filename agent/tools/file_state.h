/*
 * file_state.h - what the model has seen of each file, so that nothing is written over unseen
 * changes.
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
};

struct file_states {
	struct file_state *items;
	size_t count, cap;
};

#define FILE_HASH_START UINT64_C(14695981039346656037)
/* FNV-1a over a file that comes in pieces; any division gives the same value. */
uint64_t file_hash_add(uint64_t hash, const void *bytes, size_t n);

void file_states_release(struct file_states *states);
/* hash is taken as valid if hashed is set. */
void file_states_set(struct file_states *states, const struct place *place, const struct stat *st,
		     bool hashed, uint64_t hash);
const struct file_state *file_states_find(const struct file_states *states,
					  const struct place *place);
/* True if the file is still what `state` says; bytes (NULL if not at hand) decide over the times.
 */
bool file_state_holds(const struct file_state *state, const struct stat *st, const void *bytes,
		      size_t n);

#endif
