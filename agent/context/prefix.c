/*
 * prefix.c - hashes of what was sent, compared only when the provider's counts say that something is wrong.
 */
#include "agent/context/prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define LIFETIME_MS 300000 /* of the markers on messages (wire.md 1.5) */
#define FAR_BELOW   50	   /* per cent of what was known */
#define LEAST	    2048 /* tokens: servers cache in steps, and nothing shorter than some of them */

static uint64_t mix(uint64_t hash, const char *s)
{
	return (hash ^ text_hash(s ? s : "", s ? strlen(s) : 0)) * 0x9e3779b97f4a7c15u;
}

static uint64_t hash_tools(const struct tool_spec *tools, size_t n)
{
	uint64_t hash = 1;

	for (size_t i = 0; i < n; i++)
		hash = mix(mix(mix(hash, tools[i].name), tools[i].description), tools[i].schema);
	return hash;
}

/* Eight bytes at a time: behind an epoch's end all of a view is hashed between two requests. Of this process only. */
static uint64_t hash_bytes(const char *s, size_t n)
{
	const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t hash = n * factor, word;

	for (; n >= sizeof(word); s += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 29;
	}
	for (; n; s++, n--)
		hash = (hash ^ (unsigned char)*s) * factor;
	return hash ^ hash >> 32;
}

static uint64_t hash_message(const struct message *m)
{
	return m->rendered ? hash_bytes(m->rendered, m->rendered_len) : 0;
}

void prefix_release(struct prefix *p)
{
	free(p->hashes);
	*p = (struct prefix){.n = 0};
}

void prefix_sent(struct prefix *p, const struct view *view, const char *system,
		 const struct tool_spec *tools, size_t n_tools, int64_t now_ms)
{
	p->broken = p->n && (p->epoch != view->epoch || view->n < p->n);
	p->before = p->broken ? 0 : p->n;
	if (!p->n || p->broken) {
		p->n = 0;
		p->tools = hash_tools(tools, n_tools);
		p->system = mix(1, system);
	}
	MEM_GROW(p->hashes, p->cap, view->n + 1);
	for (size_t i = p->n; i < view->n; i++)
		p->hashes[i] = hash_message(view->list[i]);
	p->n = view->n;
	p->epoch = view->epoch;
	p->earlier_ms = p->sent_ms;
	p->sent_ms = now_ms;
}

/* In the order in which the provider's cache has them (wire.md 1.5): tools, system, messages. */
static void find_part(const struct prefix *p, const struct view *view, const char *system,
		      const struct tool_spec *tools, size_t n_tools, struct prefix_break *ret)
{
	if (hash_tools(tools, n_tools) != p->tools) {
		ret->part = PREFIX_TOOLS;
		return;
	}
	if (mix(1, system) != p->system) {
		ret->part = PREFIX_SYSTEM;
		return;
	}
	for (size_t i = 0; i < p->before && i < view->n; i++) {
		if (hash_message(view->list[i]) != p->hashes[i]) {
			ret->part = PREFIX_MESSAGE;
			ret->index = i;
			return;
		}
	}
	ret->part = ret->idle_ms >= LIFETIME_MS ? PREFIX_LAPSED : PREFIX_PROVIDER;
}

bool prefix_answered(struct prefix *p, const struct view *view, const char *system,
		     const struct tool_spec *tools, size_t n_tools, const struct model_usage *usage,
		     struct prefix_break *ret)
{
	int64_t expected = p->known, read = usage->cache_read;

	if (!usage->known)
		return false;
	/* Servers that cache by themselves tell no writes: where they read at all, they hold the prompt. */
	p->known = usage->cache_write ? read + usage->cache_write
		   : read || expected ? usage_prompt(usage)
				      : 0;
	if (p->broken || !expected || read * 100 >= expected * FAR_BELOW || expected - read < LEAST)
		return false;
	*ret = (struct prefix_break){
		.expected = expected,
		.read = read,
		.idle_ms = p->earlier_ms ? p->sent_ms - p->earlier_ms : 0,
	};
	find_part(p, view, system, tools, n_tools, ret);
	return true;
}

bool prefix_hit(const struct model_usage *usage)
{
	return usage->cache_read > 0 && usage->cache_read * 2 >= usage_prompt(usage);
}

const char *prefix_part_name(enum prefix_part part)
{
	switch (part) {
	case PREFIX_TOOLS: return "tools";
	case PREFIX_SYSTEM: return "system";
	case PREFIX_MESSAGE: return "message";
	case PREFIX_LAPSED: return "lapsed";
	case PREFIX_PROVIDER: break;
	}
	return "provider";
}
