/*
 * context_edits.c - context_management as the provider does it: old tool results are left out of the prompt by
 * the server (wire.md 1.9).
 *
 * Only clear_tool_uses is known. What is left out counts neither as input nor as cached: every prefix within
 * the messages is another one from then on, as long as the same results are left out.
 */
#include "rehearsal/hash.h"
#include "rehearsal/request.h"

#define TRIGGER 100000 /* the provider's defaults */
#define KEEP	3

static bool is_excluded(const struct request *r, uint32_t list, const struct part *result)
{
	const struct part *call = result->call == NO_PART ? NULL : &r->parts[result->call];

	if (!call || !list)
		return false;
	DOC_EACH(&r->doc, list, name)
	{
		const struct doc_node *node = &r->doc.nodes[name];

		if (node->len == call->name_len && !memcmp(node->s, call->name, node->len))
			return true;
	}
	return false;
}

static size_t count_results(const struct request *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_parts; i++)
		n += r->parts[i].kind == PART_RESULT;
	return n;
}

static int64_t tokens_of(struct request *r, const struct part *p)
{
	return request_count(r, hash_bytes(2, p->text, p->len), p->text, p->len);
}

/* Prefixes within the messages are others now; their sums fall by what is left out, at most to none. */
static void change_units(struct request *r)
{
	int64_t fixed = 0;

	for (size_t i = 0; i < r->n_units; i++) {
		struct unit *u = &r->units[i];

		if (!u->in_messages) {
			fixed = u->tokens;
			continue;
		}
		u->chain = hash_mix(u->chain, r->cleared_uses);
		u->tokens = MAX(u->tokens - r->cleared_tokens, fixed);
	}
}

static void clear_uses(struct request *r, uint32_t edit)
{
	const struct doc *doc = &r->doc;
	int64_t trigger =
		doc_i64(doc, doc_get(doc, doc_get(doc, edit, "trigger"), "value"), TRIGGER);
	int64_t keep = doc_i64(doc, doc_get(doc, doc_get(doc, edit, "keep"), "value"), KEEP);
	int64_t least =
		doc_i64(doc, doc_get(doc, doc_get(doc, edit, "clear_at_least"), "value"), 0);
	uint32_t exclude = doc_get(doc, edit, "exclude_tools");
	int64_t old = (int64_t)count_results(r) - keep, sum = 0;
	size_t uses = 0;

	if (r->input_tokens <= trigger)
		return;
	for (size_t i = 0; i < r->n_parts && old > 0; i++) {
		if (r->parts[i].kind != PART_RESULT)
			continue;
		old--;
		if (is_excluded(r, exclude, &r->parts[i]))
			continue;
		sum += tokens_of(r, &r->parts[i]);
		uses++;
	}
	if (!uses || sum < least)
		return;
	r->cleared_uses = uses;
	r->cleared_tokens = sum;
	r->input_tokens -= sum;
	change_units(r);
}

int request_read_edits(struct request *r)
{
	const struct doc *doc = &r->doc;
	uint32_t management = doc_get(doc, DOC_ROOT, "context_management");
	uint32_t edits = doc_get(doc, management, "edits");

	if (!management)
		return 0;
	if (!r->policy->edits_header)
		return request_refuse(r, "beta",
				      "context_management: Extra inputs are not permitted");
	if (edits)
		DOC_EACH(doc, edits, edit)
	if (doc_is(doc, doc_get(doc, edit, "type"), "clear_tool_uses_20250919"))
		clear_uses(r, edit);
	return 0;
}
