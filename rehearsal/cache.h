/*
 * cache.h - prefixes cached as the providers cache them (wire.md 1.7, 2.4, H17).
 *
 * Anthropic: an entry is written at each marker; from each marker 20 blocks back are looked up; a
 * hit renews the entry; lifetime 5 minutes or 1 hour by the clock; prefixes below the minimum are
 * not cached. OpenAI: automatic, found at message ends, counted in steps of 128 tokens from 1,024
 * on. (The real one compares tokens, ours whole messages: what differs inside a message shares
 * nothing of it.)
 */
#ifndef BATON_REHEARSAL_CACHE_H
#define BATON_REHEARSAL_CACHE_H

#include <stdint.h>

#include "rehearsal/request.h"

struct prefix_cache;

struct cache_usage {
	int64_t read, write, fresh; /* disjoint: their sum is the input */
	int64_t write_1h;	    /* part of write */
};

struct prefix_cache *prefix_cache_new(void);
void prefix_cache_free(struct prefix_cache *cache); /* NULL allowed */
/* Looks up and writes, as when the answer begins. min_prefix 0: the default of 1,024 tokens. */
struct cache_usage prefix_cache_use(struct prefix_cache *cache, const struct request *r,
				    int64_t min_prefix, int64_t now_ms);

#endif
