/*
 * request.c - what both protocols share when a request is read: arrays, fingerprints, counting,
 * refusals, and the views that the matcher asks for.
 */
#include "rehearsal/request.h"

#include <stdarg.h>
#include <stdio.h>

#include "rehearsal/hash.h"

/* The first refusal is the answer; what follows from the same mistake would only hide it. */
int request_refuse(struct request *r, const char *rule, const char *fmt, ...)
{
	va_list ap;

	if (r->refusal.status)
		return -1;
	r->refusal.status = 400;
	r->refusal.type = "invalid_request_error";
	r->refusal.rule = rule;
	r->refusal.violation = true;
	va_start(ap, fmt);
	vsnprintf(r->refusal.text, sizeof(r->refusal.text), fmt, ap);
	va_end(ap);
	return -1;
}

void request_param(struct request *r, const char *code, const char *fmt, ...)
{
	va_list ap;

	r->refusal.code = code;
	va_start(ap, fmt);
	vsnprintf(r->refusal.param, sizeof(r->refusal.param), fmt, ap);
	va_end(ap);
}

void request_use_model(struct request *r, uint32_t node)
{
	r->model = arena_strndup(r->arena, r->doc.nodes[node].s, r->doc.nodes[node].len);
	if (r->policy->on_model)
		r->policy->on_model(r->policy, r->model);
}

/* The speaker goes into the chain: the same words from another mouth are another prefix. */
struct req_message *request_add_message(struct request *r, enum speaker speaker)
{
	struct req_message *m;

	MEM_GROW(r->messages, r->cap_messages, r->n_messages + 1);
	m = &r->messages[r->n_messages++];
	*m = (struct req_message){
		.speaker = speaker, .first = (uint32_t)r->n_parts, .before = r->chain};
	r->chain = hash_mix(r->chain, 0x1000U + (unsigned)speaker);
	r->input_tokens += TOKENS_MESSAGE;
	if (speaker == SPEAKER_ASSISTANT) {
		r->turn++;
		r->tail = r->n_messages;
	}
	return m;
}

struct part *request_add_part(struct request *r, enum part_kind kind)
{
	struct part *part;

	MEM_GROW(r->parts, r->cap_parts, r->n_parts + 1);
	part = &r->parts[r->n_parts++];
	*part = (struct part){.kind = kind, .call = NO_PART};
	r->messages[r->n_messages - 1].count++;
	return part;
}

void request_add_unit(struct request *r, uint64_t hash, int64_t tokens, uint8_t ttl_min)
{
	struct unit *unit;

	r->chain = hash_mix(r->chain, hash);
	r->input_tokens += tokens;
	MEM_GROW(r->units, r->cap_units, r->n_units + 1);
	unit = &r->units[r->n_units++];
	*unit = (struct unit){.chain = r->chain,
			      .tokens = r->input_tokens,
			      .ttl_min = ttl_min,
			      .in_messages = r->n_messages > 0};
	if (ttl_min)
		r->n_markers++;
}

void request_end_message(struct request *r)
{
	if (r->n_units)
		r->units[r->n_units - 1].message_end = true;
}

int64_t request_count(struct request *r, uint64_t hash, const char *s, size_t n)
{
	return token_cache_count(r->policy->tokens, hash, s, n);
}

/* What a provider counts for a schema is the text that it makes of it; names, values and one mark
 * per node come close and do not depend on blanks. */
static int64_t count_tree(const struct doc *doc, uint32_t node)
{
	const struct doc_node *it = &doc->nodes[node];
	int64_t total = 1;

	if (it->type == DOC_STRING)
		return 1 + tokens_count(it->s, it->len);
	if (it->type == DOC_ARRAY) {
		DOC_EACH(doc, node, child)
		total += count_tree(doc, child);
	} else if (it->type == DOC_OBJECT) {
		DOC_EACH_KEY(doc, node, k)
		{
			if (!doc_is(doc, k, "cache_control"))
				total += 1 + tokens_count(doc->nodes[k].s, doc->nodes[k].len) +
					 count_tree(doc, k + 1);
		}
	}
	return total;
}

int64_t request_count_node(struct request *r, uint32_t node)
{
	uint64_t hash = doc_hash(&r->doc, node, HASH_SEED, "cache_control");
	int64_t tokens = token_cache_find(r->policy->tokens, hash);

	if (tokens < 0) {
		tokens = count_tree(&r->doc, node);
		token_cache_put(r->policy->tokens, hash, tokens);
	}
	return tokens;
}

/* Linear: a message holds few calls, and each result looks once. */
uint32_t request_find_call(const struct request *r, size_t message, const char *id, size_t n)
{
	const struct req_message *m = &r->messages[message];

	for (uint32_t i = m->first; i < m->first + m->count; i++) {
		const struct part *part = &r->parts[i];

		if (part->kind == PART_CALL && part->id_len == n && memcmp(part->id, id, n) == 0)
			return i;
	}
	return NO_PART;
}

/* An open-addressed set of fingerprints in the arena; doubled by re-insertion. */
struct id_set {
	size_t used, size;
	uint64_t *slots;
};

static bool slots_add(uint64_t *slots, size_t size, uint64_t hash)
{
	size_t i = (size_t)hash & (size - 1);

	while (slots[i]) {
		if (slots[i] == hash)
			return false;
		i = (i + 1) & (size - 1);
	}
	slots[i] = hash;
	return true;
}

bool id_set_add(struct request *r, struct id_set **set, const char *id, size_t n)
{
	uint64_t hash = hash_bytes(HASH_SEED, id, n) | 1;
	struct id_set *s = *set;

	if (!s || 2 * (s->used + 1) > s->size) {
		struct id_set *grown = arena_alloc(r->arena, sizeof(*grown));

		grown->size = s ? 2 * s->size : 64;
		grown->used = s ? s->used : 0;
		grown->slots = arena_alloc(r->arena, grown->size * sizeof(uint64_t));
		for (size_t i = 0; s && i < s->size; i++)
			if (s->slots[i])
				slots_add(grown->slots, grown->size, s->slots[i]);
		*set = s = grown;
	}
	if (!slots_add(s->slots, s->size, hash))
		return false;
	s->used++;
	return true;
}

void request_use_system(struct request *r, const char *s, size_t n)
{
	char *joined;

	if (!r->system_len) {
		r->system = s;
		r->system_len = n;
		return;
	}
	joined = arena_alloc(r->arena, r->system_len + n + 2);
	memcpy(joined, r->system, r->system_len);
	joined[r->system_len] = '\n';
	memcpy(joined + r->system_len + 1, s, n);
	r->system = joined;
	r->system_len += n + 1;
}

/* The user's texts before the first answer, one after the other: with `out` they are copied. */
static size_t walk_task(const struct request *r, char *out, const struct part **ret_only)
{
	size_t total = 0, count = 0;

	for (size_t m = 0; m < r->n_messages && r->messages[m].speaker != SPEAKER_ASSISTANT; m++) {
		for (uint32_t i = 0; i < r->messages[m].count; i++) {
			const struct part *part = &r->parts[r->messages[m].first + i];

			if (r->messages[m].speaker != SPEAKER_USER || part->kind != PART_TEXT)
				continue;
			*ret_only = count++ ? NULL : part;
			if (out) {
				memcpy(out + total, part->text, part->len);
				out[total + part->len] = '\n';
			}
			total += part->len + 1;
		}
	}
	return total ? total - 1 : 0;
}

/* A single text is borrowed, several are joined: agents open with instructions, environment and
 * task in one message or in several. */
static void find_task(struct request *r)
{
	const struct part *only = NULL;
	char *joined;

	r->task_len = walk_task(r, NULL, &only);
	if (only) {
		r->task = only->text;
	} else if (r->task_len) {
		joined = arena_alloc(r->arena, r->task_len + 1);
		walk_task(r, joined, &only);
		r->task = joined;
	}
}

bool request_has_tool(const struct request *r, const char *name)
{
	if (!r->tools)
		return false;
	DOC_EACH(&r->doc, r->tools, tool)
	{
		uint32_t function = doc_get(&r->doc, tool, "function");

		if (doc_is(&r->doc, doc_get(&r->doc, function ? function : tool, "name"), name))
			return true;
	}
	return false;
}

/* Results and texts, but no system message: the OpenAI form opens with one, and it is no news. */
const char *request_last_text(struct request *r, size_t *ret_len)
{
	size_t total = 0, at = 0;
	char *joined;

	if (r->last) {
		*ret_len = r->last_len;
		return r->last;
	}
	for (size_t m = r->tail; m < r->n_messages; m++)
		for (uint32_t i = 0; i < r->messages[m].count; i++)
			total += r->parts[r->messages[m].first + i].len + 1;
	joined = arena_alloc(r->arena, total + 1);
	for (size_t m = r->tail; m < r->n_messages; m++) {
		if (r->messages[m].speaker == SPEAKER_SYSTEM)
			continue;
		for (uint32_t i = 0; i < r->messages[m].count; i++) {
			const struct part *part = &r->parts[r->messages[m].first + i];

			if (!part->len)
				continue;
			memcpy(joined + at, part->text, part->len);
			at += part->len;
			joined[at++] = '\n';
		}
	}
	r->last = joined;
	r->last_len = *ret_len = at ? at - 1 : 0;
	return joined;
}

/* In the words of each provider's own JSON reader. */
static int refuse_json(struct request *r, const struct doc_failure *failure)
{
	if (r->protocol == PROTOCOL_OPENAI)
		return request_refuse(
			r, "json",
			"We could not parse the JSON body of your request. (HINT: This "
			"likely means you aren't using your HTTP library correctly. The "
			"OpenAI API expects a JSON payload, but what was sent was not valid "
			"JSON: %s at byte %zu.)",
			failure->what, failure->at);
	return request_refuse(
		r, "json", "The request body is not valid JSON: %s: line %zu column %zu (char %zu)",
		failure->what, failure->line, failure->column, failure->at);
}

int request_read(struct request *r, enum protocol protocol, char *body, size_t n,
		 struct request_policy *policy)
{
	struct doc_failure failure = {.what = NULL};

	*r = (struct request){.protocol = protocol,
			      .policy = policy,
			      .arena = arena_new(),
			      .model = "",
			      .system = "",
			      .task = "",
			      .chain = HASH_SEED,
			      .input_tokens = TOKENS_REQUEST};
	if (doc_parse(&r->doc, body, n, &failure) < 0)
		return refuse_json(r, &failure);
	if (r->doc.nodes[DOC_ROOT].type != DOC_OBJECT)
		return request_refuse(r, "json", "Input should be a valid dictionary");
	if ((protocol == PROTOCOL_ANTHROPIC ? anthropic_read(r) : openai_read(r)) < 0)
		return -1;
	find_task(r);
	r->conversation = hash_bytes(HASH_SEED, r->system, r->system_len);
	r->conversation = hash_bytes(r->conversation, r->task, r->task_len);
	return 0;
}

void request_release(struct request *r)
{
	doc_release(&r->doc);
	arena_free(r->arena);
	free(r->messages);
	free(r->parts);
	free(r->units);
	free(r->dropped);
	*r = (struct request){.model = ""};
}
