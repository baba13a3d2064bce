/*
 * cache.h - what the provider has of a prompt already (H17, wire.md 1.7).
 *
 * Explicit: an entry for each marker of a request; a later request finds one by looking back 20 blocks from each of its
 * own markers. Automatic: whatever the request before had in the same place.
 */
#ifndef SIMULATOR_CACHE_H
#define SIMULATOR_CACHE_H

#include "reading.h"

#define CACHE_LIFE_US (INT64_C(5) * 60 * 1000000)

struct cache_entry {
	uint64_t chain; /* of all up to a message's end */
	int64_t at_us;	/* last use */
};

struct cache {
	struct cache_entry *list;
	size_t n, cap;
};

struct cache_hit {
	size_t messages; /* of the request, from the first on */
	int64_t tokens;
};

/* What of this request was there, and what of it stays. */
struct cache_hit cache_take(struct cache *cache, const struct reading *r, int64_t now_us);
/* The same for calls of all kinds, as a provider sees them: an automatic cache finds the longest prefix that any
 * earlier request had. */
struct cache_hit cache_take_any(struct cache *cache, const struct reading *r, int64_t now_us);
void cache_release(struct cache *cache);

#endif
