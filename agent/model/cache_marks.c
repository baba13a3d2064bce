/*
 * cache_marks.c - where the cache markers of the messages go (H17, wire.md 1.7).
 *
 * A provider finds a cached prefix by looking back 20 blocks from a marker. The marker of the last
 * request's end is therefore found again unless more than 20 blocks were appended, as a batch of
 * parallel calls with its results easily does: then a marker is set that still sees the old one.
 *
 * The ends of earlier requests are remembered by uid, several of them: calls on the side
 * (compaction, notes) share the client and end in messages that the main view never has. The end
 * of the present view does not count, so that a request that is sent again gets the same bytes.
 */
#include "agent/model/render.h"

#include <string.h>

#include "base/memory.h"

enum { LOOK_BACK = 20 };

static bool can_mark(const struct message *m)
{
	return m->rendered_len > 0 && m->splice != (size_t)-1;
}

static void remember(struct model_client *c, uint64_t uid)
{
	for (size_t i = 0; i < c->n_marked; i++)
		if (c->marked[i] == uid)
			return;
	if (c->n_marked == MARKED_UIDS)
		memmove(c->marked, c->marked + 1, --c->n_marked * sizeof(c->marked[0]));
	c->marked[c->n_marked++] = uid;
}

/* The newest message before `last` whose end is in the provider's cache; -1 if none is known. */
static long find_base(const struct model_client *c, struct message *const *view, size_t last)
{
	for (size_t i = last; i-- > 0;)
		for (size_t k = 0; k < c->n_marked; k++)
			if (c->marked[k] == view[i]->uid && can_mark(view[i]))
				return (long)i;
	return -1;
}

/* Blocks that take a marker; thinking and what we do not know never do (trap 30). */
static bool is_cacheable(const char *block, size_t n)
{
	static const char *const starts[] = {"{\"type\":\"text\",", "{\"type\":\"tool_use\",",
					     "{\"type\":\"tool_result\",", "{\"type\":\"image\","};
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t k = strlen(starts[i]);
		if (n > k && memcmp(block, starts[i], k) == 0)
			return true;
	}
	return false;
}

struct block_walk {
	size_t blocks; /* ended so far, counted over all messages */
	struct cache_mark best;
	bool found;
};

/* Walks the content blocks of a rendered message and keeps the last cacheable end within reach. */
static void walk_blocks(struct block_walk *walk, const struct message *m, size_t index)
{
	/* The first such bytes are ours: the role before them is a word without quotes in it. */
	static const char open[] = "\"content\":[";
	const char *s = strstr(m->rendered, open);
	const char *start = NULL;
	int depth = 0;
	bool in_string = false;
	if (!s)
		return;
	for (s += strlen(open); *s; s++) {
		if (in_string) {
			if (*s == '\\' && s[1])
				s++;
			else if (*s == '"')
				in_string = false;
		} else if (*s == '"') {
			in_string = true;
		} else if (*s == '{' && depth++ == 0) {
			start = s;
		} else if (*s == '}' && --depth == 0) {
			walk->blocks++;
			if (walk->blocks <= LOOK_BACK && is_cacheable(start, (size_t)(s - start))) {
				walk->best.message = index;
				walk->best.offset = (size_t)(s - m->rendered);
				walk->found = true;
			}
		}
		if (depth < 0)
			return;
	}
}

/* More than LOOK_BACK blocks behind the base: the last place from which the base is still seen. */
static bool place_intermediate(const struct model_client *c, struct message *const *view,
			       size_t last, struct cache_mark *ret)
{
	struct block_walk walk = {.blocks = 0};
	long base = find_base(c, view, last);
	size_t upper = 0;
	if (base < 0)
		return false;
	for (size_t i = (size_t)base + 1; i <= last; i++)
		upper += view[i]->n_blocks;
	if (upper <= LOOK_BACK)
		return false; /* the usual case costs no walk over bytes */
	for (size_t i = (size_t)base + 1; i <= last && walk.blocks <= LOOK_BACK; i++)
		walk_blocks(&walk, view[i], i);
	*ret = walk.best;
	return walk.found && walk.blocks > LOOK_BACK;
}

void client_sent_end(struct model_client *client, const struct message *message)
{
	remember(client, message->uid);
}

size_t cache_marks_place(struct model_client *c, struct message *const *view, size_t n, long pinned,
			 struct cache_mark ret[2])
{
	size_t last = n, count = 0;
	while (last > 0 && !can_mark(view[last - 1]))
		last--;
	if (last == 0)
		return 0;
	last--;
	if (place_intermediate(c, view, last, &ret[0])) {
		/* Blocks behind the last cacheable one can make the two the same place. */
		count = ret[0].message < last || ret[0].offset < view[last]->splice;
	} else if (pinned >= 0 && (size_t)pinned < last && can_mark(view[pinned])) {
		ret[0] = (struct cache_mark){(size_t)pinned, view[pinned]->splice};
		count = 1;
	}
	ret[count++] = (struct cache_mark){last, view[last]->splice};
	remember(c, view[last]->uid);
	return count;
}
