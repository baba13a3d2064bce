/*
 * edits.c - the provider's rule: all results but the newest become a line, those of the named tools excepted.
 *
 * It is applied to each request anew, since the client sends its whole history each time.
 */
#include "edits.h"

#define LEFT_TOKENS 12 /* of the line that stands there instead */

/* The tool whose call a result answers: in the message before. */
static uint64_t tool_of(const struct reading *r, size_t message, uint64_t id)
{
	const struct seen_message *m = message ? &r->list[message - 1] : NULL;

	for (size_t i = 0; m && i < m->n_blocks; i++) {
		const struct seen_block *b = &r->blocks[m->first_block + i];

		if (b->kind == SEEN_CALL && b->id == id)
			return b->name;
	}
	return 0;
}

static bool is_excluded(const struct seen_edits *e, uint64_t tool)
{
	for (size_t i = 0; i < e->n_excluded; i++)
		if (e->excluded[i] == tool)
			return true;
	return false;
}

struct edits_done edits_apply(const struct reading *r)
{
	const struct seen_edits *e = &r->edits;
	struct edits_done done = {.tokens = 0};
	int64_t kept = 0;

	if (!e->present || reading_tokens(r) <= e->trigger)
		return done;
	for (size_t i = r->n; i-- > 0;) {
		const struct seen_message *m = &r->list[i];

		for (size_t k = m->n_blocks; k-- > 0;) {
			const struct seen_block *b = &r->blocks[m->first_block + k];
			int64_t tokens = b->weight / READING_WEIGHT_UNIT;

			if (b->kind != SEEN_RESULT || is_excluded(e, tool_of(r, i, b->id)) ||
			    kept++ < e->keep || tokens <= LEFT_TOKENS)
				continue;
			done.tokens += tokens - LEFT_TOKENS;
			done.uses++;
		}
	}
	return done.tokens >= e->least ? done : (struct edits_done){.tokens = 0};
}
