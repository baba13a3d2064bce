/*
 * cache.c - an open-addressed table of prefix fingerprints with their end of life.
 *
 * The table grows; before it does, entries that are over are dropped, so a server that runs for
 * days holds about what was sent in the last hour.
 */
#include "rehearsal/cache.h"

#include "rehearsal/hash.h"

#define LOOK_BACK   20
#define STEP	    128
#define MIN_PREFIX  1024
#define MINUTE_MS   60000
#define LIFE_OPENAI 5

struct entry {
	uint64_t key; /* 0: empty */
	int64_t until;
};

struct prefix_cache {
	struct entry *entries;
	size_t size, used;
};

struct prefix_cache *prefix_cache_new(void)
{
	struct prefix_cache *cache = mem_alloc(sizeof(*cache));

	cache->size = 4096;
	cache->entries = mem_alloc(cache->size * sizeof(*cache->entries));
	return cache;
}

void prefix_cache_free(struct prefix_cache *cache)
{
	if (!cache)
		return;
	free(cache->entries);
	free(cache);
}

/* The entry of the key or the empty one where it would stand; the table is never full. */
static struct entry *entry_at(struct entry *entries, size_t size, uint64_t key)
{
	size_t i = (size_t)key & (size - 1);

	while (entries[i].key && entries[i].key != key)
		i = (i + 1) & (size - 1);
	return &entries[i];
}

/* Dead entries go first; the table doubles only if a quarter of it is alive. */
static void make_room(struct prefix_cache *cache, int64_t now_ms)
{
	size_t alive = 0, size = cache->size;
	struct entry *fresh;

	for (size_t i = 0; i < cache->size; i++)
		alive += cache->entries[i].key && cache->entries[i].until > now_ms;
	if (4 * alive > size)
		size *= 2;
	fresh = mem_alloc(size * sizeof(*fresh));
	for (size_t i = 0; i < cache->size; i++)
		if (cache->entries[i].key && cache->entries[i].until > now_ms)
			*entry_at(fresh, size, cache->entries[i].key) = cache->entries[i];
	free(cache->entries);
	cache->entries = fresh;
	cache->size = size;
	cache->used = alive;
}

static void entry_write(struct prefix_cache *cache, uint64_t key, int64_t until, int64_t now_ms)
{
	struct entry *entry;

	if (2 * (cache->used + 1) > cache->size)
		make_room(cache, now_ms);
	entry = entry_at(cache->entries, cache->size, key);
	if (!entry->key) {
		entry->key = key;
		cache->used++;
	}
	entry->until = MAX(entry->until, until);
}

static struct entry *entry_alive(struct prefix_cache *cache, uint64_t key, int64_t now_ms)
{
	struct entry *entry = entry_at(cache->entries, cache->size, key);

	return entry->key && entry->until > now_ms ? entry : NULL;
}

/* The key of a prefix: the model always, and from the messages on what else invalidates them. */
static uint64_t unit_key(const struct request *r, const struct unit *unit)
{
	uint64_t key = hash_cstr(unit->chain, r->model);

	return (unit->in_messages ? hash_mix(key, r->params) : key) | 1;
}

/* The longest cached prefix that the marker at `marker` can see: its index + 1, or 0. */
static size_t look_back(struct prefix_cache *cache, const struct request *r, size_t marker,
			int64_t now)
{
	size_t last = marker >= LOOK_BACK ? marker - LOOK_BACK : 0;

	for (size_t i = marker + 1; i > last; i--) {
		struct entry *entry = entry_alive(cache, unit_key(r, &r->units[i - 1]), now);

		if (!entry)
			continue;
		entry->until = MAX(entry->until, now + 5 * MINUTE_MS);
		return i;
	}
	return 0;
}

/* The longest hit of all markers is read; from there on each marker writes what lies between. What
 * follows the last marker is fresh. */
static struct cache_usage use_anthropic(struct prefix_cache *cache, const struct request *r,
					int64_t min_prefix, int64_t now)
{
	struct cache_usage usage = {.fresh = r->input_tokens};
	size_t hit = 0;
	int64_t at;

	for (size_t i = r->n_units; i > 0; i--)
		if (r->units[i - 1].ttl_min)
			hit = MAX(hit, look_back(cache, r, i - 1, now));
	at = hit ? r->units[hit - 1].tokens : 0;
	usage.read = at;
	for (size_t i = 0; i < r->n_units; i++) {
		const struct unit *unit = &r->units[i];

		if (!unit->ttl_min || unit->tokens < min_prefix)
			continue;
		entry_write(cache, unit_key(r, unit), now + unit->ttl_min * MINUTE_MS, now);
		if (unit->tokens <= at)
			continue;
		usage.write += unit->tokens - at;
		if (unit->ttl_min == 60)
			usage.write_1h += unit->tokens - at;
		at = unit->tokens;
	}
	usage.fresh = r->input_tokens - usage.read - usage.write;
	return usage;
}

/* Message ends from the back: the first one that is known is the longest. All are renewed. */
static struct cache_usage use_openai(struct prefix_cache *cache, const struct request *r,
				     int64_t min_prefix, int64_t now)
{
	struct cache_usage usage = {.fresh = r->input_tokens};
	bool found = false;

	for (size_t i = r->n_units; i > 0; i--) {
		const struct unit *unit = &r->units[i - 1];
		uint64_t key = unit_key(r, unit);

		if (!unit->message_end || unit->tokens < min_prefix)
			continue;
		if (!found && entry_alive(cache, key, now)) {
			usage.read = unit->tokens - unit->tokens % STEP;
			found = true;
		}
		entry_write(cache, key, now + LIFE_OPENAI * MINUTE_MS, now);
	}
	usage.fresh -= usage.read;
	return usage;
}

struct cache_usage prefix_cache_use(struct prefix_cache *cache, const struct request *r,
				    int64_t min_prefix, int64_t now_ms)
{
	int64_t min = min_prefix ? min_prefix : MIN_PREFIX;

	return r->protocol == PROTOCOL_ANTHROPIC ? use_anthropic(cache, r, min, now_ms)
						 : use_openai(cache, r, min, now_ms);
}
