/*
 * file_state.c - the list of files seen.
 *
 * A linear list: an agent sees some hundreds of files, and a look-up happens once per tool call.
 * The key is the path, not the inode: an atomic replace gives every new version a new inode.
 */
#include "agent/tools/file_state.h"

#include "base/memory.h"

uint64_t file_hash_add(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * UINT64_C(1099511628211);
	return hash;
}

void file_states_release(struct file_states *states)
{
	for (size_t i = 0; i < states->count; i++)
		free(states->items[i].path);
	free(states->items);
	*states = (struct file_states){0};
}

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static struct file_state *find(const struct file_states *states, const struct place *place)
{
	for (size_t i = 0; i < states->count; i++)
		if (states->items[i].root == place->root &&
		    strcmp(states->items[i].path, place->path) == 0)
			return &states->items[i];
	return NULL;
}

static struct file_state *find_or_add(struct file_states *states, const struct place *place)
{
	struct file_state *state = find(states, place);

	if (state)
		return state;
	MEM_GROW(states->items, states->cap, states->count + 1);
	state = &states->items[states->count++];
	*state = (struct file_state){
		.root = place->root, .path = mem_strdup(place->path), .first = 1};
	return state;
}

const struct file_state *file_states_find(const struct file_states *states,
					  const struct place *place)
{
	const struct file_state *state = find(states, place);

	return state && state->known ? state : NULL;
}

struct file_state *file_states_touch(struct file_states *states, const struct place *place)
{
	struct file_state *state = find_or_add(states, place);

	state->access = ++states->clock;
	return state;
}

void file_states_set(struct file_states *states, const struct place *place, const struct stat *st,
		     bool hashed, uint64_t hash)
{
	struct file_state *state = find_or_add(states, place);

	state->known = true;
	state->dev = st->st_dev;
	state->ino = st->st_ino;
	state->size = st->st_size;
	state->mtime_ns = mtime_ns(st);
	state->hash = hash;
	state->hashed = hashed;
}

bool file_state_holds(const struct file_state *state, const struct stat *st, const void *bytes,
		      size_t n)
{
	if (state->size != st->st_size)
		return false;
	if (state->hashed && bytes)
		return file_hash_add(FILE_HASH_START, bytes, n) == state->hash;
	return state->dev == st->st_dev && state->ino == st->st_ino &&
	       state->mtime_ns == mtime_ns(st);
}
