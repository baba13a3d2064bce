/*
 * cache.c - entries by the hash of a prefix. A marker within a message counts from its own block when it looks
 * back, and writes nothing: only ends of messages are found again.
 */
#include "cache.h"

#include "base/memory.h"

#define LOOK_BACK    20
#define ENTRIES_MOST 4096

static uint64_t chain_at(const struct reading *r, size_t message)
{
	return hash_mix(r->list[message].before, r->list[message].hash);
}

static struct cache_entry *find(struct cache *cache, uint64_t chain, int64_t now_us)
{
	for (size_t i = cache->n; i-- > 0;)
		if (cache->list[i].chain == chain && now_us - cache->list[i].at_us < CACHE_LIFE_US)
			return &cache->list[i];
	return NULL;
}

static void keep(struct cache *cache, uint64_t chain, int64_t now_us)
{
	struct cache_entry *entry = find(cache, chain, now_us);

	if (!entry && cache->n == ENTRIES_MOST)
		cache->n = 0;
	if (!entry) {
		MEM_GROW(cache->list, cache->cap, cache->n + 1);
		entry = &cache->list[cache->n++];
	}
	*entry = (struct cache_entry){.chain = chain, .at_us = now_us};
}

/* Messages that one marker finds. */
static size_t look_back(struct cache *cache, const struct reading *r, const struct seen_mark *mark,
			int64_t now_us)
{
	size_t passed = mark->block + 1;

	for (size_t i = mark->message + 1; i-- > 0;) {
		const struct seen_message *m = &r->list[i];
		/* The marker's own message ends at the marker or behind it. */
		bool own = i == mark->message;
		struct cache_entry *entry;

		if (!own || mark->block + 1 >= m->n_blocks) {
			entry = find(cache, chain_at(r, i), now_us);
			if (entry) {
				entry->at_us = now_us;
				return i + 1;
			}
		}
		passed += own ? 0 : m->n_blocks;
		if (passed > LOOK_BACK)
			break;
	}
	return 0;
}

static void count_tokens(struct cache_hit *hit, const struct reading *r)
{
	for (size_t i = 0; i < hit->messages; i++)
		hit->tokens += r->list[i].weight;
	if (hit->messages)
		hit->tokens = (hit->tokens + r->head_weight) / READING_WEIGHT_UNIT;
}

struct cache_hit cache_take_any(struct cache *cache, const struct reading *r, int64_t now_us)
{
	struct cache_hit hit = {.messages = 0};

	if (r->api != MODEL_API_OPENAI)
		return cache_take(cache, r, now_us);
	for (size_t i = r->n; i-- > 0 && !hit.messages;)
		if (find(cache, chain_at(r, i), now_us))
			hit.messages = i + 1;
	for (size_t i = 0; i < r->n; i++)
		keep(cache, chain_at(r, i), now_us);
	count_tokens(&hit, r);
	return hit;
}

struct cache_hit cache_take(struct cache *cache, const struct reading *r, int64_t now_us)
{
	struct cache_hit hit = {.messages = 0};

	if (r->api == MODEL_API_OPENAI)
		hit.messages = r->kept;
	for (size_t i = 0; i < r->n_marks; i++)
		hit.messages = MAX(hit.messages, look_back(cache, r, &r->mark_list[i], now_us));
	for (size_t i = 0; i < r->n_marks; i++) {
		const struct seen_mark *mark = &r->mark_list[i];

		if (mark->block + 1 >= r->list[mark->message].n_blocks)
			keep(cache, chain_at(r, mark->message), now_us);
	}
	count_tokens(&hit, r);
	return hit;
}

void cache_release(struct cache *cache)
{
	free(cache->list);
	*cache = (struct cache){.list = NULL};
}
