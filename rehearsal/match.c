/*
 * match.c - evaluates the conditions of rules, cheap ones first. See match.h.
 */
#include "rehearsal/match.h"

#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/hash.h"

struct match_counts {
	struct {
		uint64_t key;
		int64_t uses;
	} * slots;
	size_t size, used;
};

struct match_counts *match_counts_new(void)
{
	struct match_counts *counts = mem_alloc(sizeof(*counts));

	counts->size = 1024;
	counts->slots = mem_alloc(counts->size * sizeof(*counts->slots));
	return counts;
}

void match_counts_free(struct match_counts *counts)
{
	if (!counts)
		return;
	free(counts->slots);
	free(counts);
}

/* The pointer is good until the next call, which may move the table. */
static int64_t *uses_of(struct match_counts *counts, uint64_t key)
{
	size_t i;

	if (2 * (counts->used + 1) > counts->size) {
		struct match_counts bigger = {.size = 2 * counts->size};

		bigger.slots = mem_alloc(bigger.size * sizeof(*bigger.slots));
		for (i = 0; i < counts->size; i++)
			if (counts->slots[i].key)
				*uses_of(&bigger, counts->slots[i].key) = counts->slots[i].uses;
		free(counts->slots);
		*counts = bigger;
	}
	i = (size_t)key & (counts->size - 1);
	while (counts->slots[i].key && counts->slots[i].key != key)
		i = (i + 1) & (counts->size - 1);
	if (!counts->slots[i].key) {
		counts->slots[i].key = key;
		counts->used++;
	}
	return &counts->slots[i].uses;
}

/* A word after "role:" at the start of a line, marks of headings and emphasis skipped. */
bool request_role(const struct request *r, const char **ret, size_t *ret_len)
{
	size_t n = MIN(r->system_len, (size_t)4096);

	for (const char *p = r->system, *end = p + n; p < end;) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));
		const char *stop = line_end ? line_end : end, *word;

		while (p < stop && strchr(" #*\t", *p) && *p)
			p++;
		if (stop - p > 5 && strncasecmp(p, "role:", 5) == 0) {
			p += 5;
			while (p < stop && strchr(" *`\t", *p) && *p)
				p++;
			for (word = p; p < stop && !strchr(" .,*`\t\r", *p);)
				p++;
			*ret = word;
			*ret_len = (size_t)(p - word);
			return p > word;
		}
		p = stop + 1;
	}
	return false;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* By the "role:" line; without one, the role's name as a whole word in the first 400 bytes. */
static bool role_holds(const struct request *r, const char *role)
{
	const char *word, *p = r->system;
	size_t len, n = strlen(role), left = MIN(r->system_len, (size_t)400);

	if (request_role(r, &word, &len))
		return len == n && strncasecmp(word, role, n) == 0;
	for (const char *hit; (hit = text_find_nocase(p, left, role)); p = hit + 1) {
		bool starts = hit == r->system || !is_word_char(hit[-1]);
		bool ends = hit + n == r->system + r->system_len || !is_word_char(hit[n]);

		if (starts && ends)
			return true;
		left -= (size_t)(hit + 1 - p);
	}
	return false;
}

/* The compaction request asks for both blocks (H5). */
static bool is_compaction(struct request *r)
{
	size_t len;
	const char *last = request_last_text(r, &len);

	return memmem(last, len, "<analysis>", 10) && memmem(last, len, "<summary>", 9);
}

/* A background call that keeps notes of the session (H4). */
static bool is_notes(struct request *r)
{
	size_t len;
	const char *last = request_last_text(r, &len);

	return memmem(last, len, "<section name=", 14) && memmem(last, len, "<notes>", 7);
}

/* Its judgement is asked for a handoff document (R3). */
static bool is_handoff(struct request *r)
{
	size_t len;
	const char *last = request_last_text(r, &len);

	return memmem(last, len, "with the <handoff> block", 24) != NULL;
}

enum beside { BESIDE_NOTHING, BESIDE_NOTES, BESIDE_HANDOFF };

static enum beside beside_of(struct request *r)
{
	return is_notes(r) ? BESIDE_NOTES : is_handoff(r) ? BESIDE_HANDOFF : BESIDE_NOTHING;
}

static enum beside beside_wanted(const struct condition *c)
{
	return c->is_notes == YES     ? BESIDE_NOTES
	       : c->is_handoff == YES ? BESIDE_HANDOFF
				      : BESIDE_NOTHING;
}

/* Scenarios are about what agents say. What they note beside it is answered by a rule of its own, or, where
 * there is none, by one of these: it must not use up an answer that was meant for the work. A handoff is then made of
 * facts alone. */
static const struct rule *beside_rule(enum beside beside)
{
	static struct rule rules[] = {
		[BESIDE_NOTES] = {.name = "notes", .probability = 1},
		[BESIDE_HANDOFF] = {.name = "handoff", .probability = 1},
	};
	static const char *const texts[] = {
		[BESIDE_NOTES] =
			"<section name=\"current state\">\nThe rehearsal goes on.\n</section>",
		[BESIDE_HANDOFF] = "The scenario has no rule for a handoff.",
	};
	struct rule *rule = &rules[beside];

	if (!rule->answer) {
		rule->answer = json_object_new_object();
		json_set_str(rule->answer, "text", texts[beside]);
	}
	return rule;
}

static bool tri_holds(enum tristate wanted, bool is)
{
	return wanted == ANY || (wanted == YES) == is;
}

static bool pattern_holds(struct scope *scope, const struct pattern_ref *ref, const char *text,
			  size_t n, struct captures *caps)
{
	const struct pattern *pattern;

	if (!ref->source)
		return true;
	pattern = template_pattern(scope, ref);
	return pattern && pattern_match(pattern, text, n, 0, caps);
}

/* Results carry no tool name in either protocol: it stands in the call that they answer. */
static bool is_tool(const struct request *r, const struct part *part, const char *tool)
{
	const struct part *call;

	if (!tool)
		return true;
	if (part->call == NO_PART)
		return false;
	call = &r->parts[part->call];
	return call->name_len == strlen(tool) && memcmp(call->name, tool, call->name_len) == 0;
}

/* A result from message `first` on, of the tool if one is named, that the pattern matches. */
static const struct part *find_result(struct request *r, struct scope *scope, size_t first,
				      const struct condition *c, const struct pattern_ref *ref,
				      struct captures *caps)
{
	for (size_t m = r->n_messages; m > first; m--) {
		const struct req_message *message = &r->messages[m - 1];

		for (uint32_t i = 0; i < message->count; i++) {
			const struct part *part = &r->parts[message->first + i];

			if (part->kind == PART_RESULT && is_tool(r, part, c->tool_name) &&
			    tri_holds(c->tool_error, part->is_error) &&
			    pattern_holds(scope, ref, part->text ? part->text : "", part->len,
					  caps))
				return part;
		}
	}
	return NULL;
}

/* `tool_name` and `tool_error` narrow both patterns; alone they ask for any such result. */
static bool results_hold(const struct condition *c, struct request *r, struct scope *scope)
{
	const struct part *part;

	if (c->tool_name || c->tool_error != ANY || c->tool_result.source) {
		part = find_result(r, scope, r->tail, c, &c->tool_result, &scope->result);
		if (!part)
			return false;
		scope->result_part = part;
	}
	if (!c->any_result.source)
		return true;
	part = find_result(r, scope, 0, c, &c->any_result, &scope->any);
	if (part && !scope->result_part)
		scope->result_part = part;
	return part != NULL;
}

/* A text that was said to the model, wherever it stands: what comes back behind the results of some earlier round (its notes,
 * a summary's head) is in no result and not in the first messages. Newest first. */
static bool any_text_holds(struct request *r, struct scope *scope, const struct pattern_ref *ref)
{
	if (!ref->source)
		return true;
	for (size_t m = r->n_messages; m > 0; m--) {
		const struct req_message *message = &r->messages[m - 1];

		if (message->speaker != SPEAKER_USER)
			continue;
		for (uint32_t i = message->count; i > 0; i--) {
			const struct part *part = &r->parts[message->first + i - 1];

			if (part->kind == PART_TEXT && part->len &&
			    pattern_holds(scope, ref, part->text, part->len, &scope->seen))
				return true;
		}
	}
	return false;
}

/* Captures go into the scope. Numbers first, then the role, patterns last: most rules are ruled out
 * before a pattern runs. */
static bool condition_holds(const struct condition *c, struct request *r, struct scope *scope)
{
	const char *last = "";
	size_t last_len = 0;
	int64_t turn = (int64_t)r->turn;

	if ((c->protocol >= 0 && c->protocol != (int)r->protocol) || turn < c->turn_min ||
	    turn > c->turn_max || r->input_tokens < c->tokens_min ||
	    !tri_holds(c->has_tools, r->n_tools > 0) || !tri_holds(c->stream, r->stream) ||
	    !tri_holds(c->tools_off, r->tools_off))
		return false;
	if ((c->role && !role_holds(r, c->role)) ||
	    (c->is_compaction != ANY && !tri_holds(c->is_compaction, is_compaction(r))))
		return false;
	if (!pattern_holds(scope, &c->model, r->model, strlen(r->model), NULL) ||
	    !pattern_holds(scope, &c->system, r->system, r->system_len, &scope->system) ||
	    !pattern_holds(scope, &c->task, r->task, r->task_len, &scope->task))
		return false;
	if (c->last_message.source)
		last = request_last_text(r, &last_len);
	if (!pattern_holds(scope, &c->last_message, last, last_len, &scope->last) ||
	    !results_hold(c, r, scope) || !any_text_holds(r, scope, &c->any_text))
		return false;
	if (c->unless) {
		/* What is not there has no captures: a scope of its own. */
		struct scope inner = *scope;
		bool holds;

		inner.notes = (struct buf)BUF_INIT;
		holds = condition_holds(c->unless, r, &inner);
		scope_release(&inner);
		return !holds;
	}
	return true;
}

/* `request` is the fingerprint of the whole request: the same for each attempt of one call, and
 * another one in the next turn. */
static uint64_t scope_key(const struct rule *rule, const struct request *r, size_t index)
{
	uint64_t key = hash_mix(HASH_SEED, index + 1);

	if (rule->per == SCOPE_CONVERSATION)
		key = hash_mix(key, r->conversation);
	else if (rule->per == SCOPE_REQUEST)
		key = hash_mix(key, r->chain);
	return key | 1;
}

/* Chance is a function of seed, conversation, turn and attempt, so that the order in which agents
 * ask does not matter. An attempt is any further request of that turn: one that a resumed agent makes says something
 * more, and would meet the very fault again, for ever, if it counted as the first. */
static bool chance_holds(const struct rule *rule, const struct request *r, size_t index,
			 struct match_counts *counts)
{
	uint64_t turn_key = hash_mix(hash_mix(HASH_SEED, r->conversation), r->turn);
	uint64_t attempt_key = hash_mix(hash_mix(turn_key, index), 0xa77e) | 1;
	int64_t attempt;
	uint64_t h;

	if (rule->probability >= 1.0)
		return true;
	attempt = (*uses_of(counts, attempt_key))++;
	h = hash_mix(hash_mix(HASH_SEED, (uint64_t)rule->seed), r->conversation);
	h = hash_mix(hash_mix(hash_mix(h, r->turn), (uint64_t)attempt), index);
	h = hash_mix(h ^ h >> 29, UINT64_C(0xc4ceb9fe1a85ec53));
	return (double)(h >> 11) / 9007199254740992.0 < rule->probability;
}

/* A use is counted only when all else holds, so `times` means answers and not looks. */
static bool rule_applies(const struct rule *rule, size_t index, struct match_counts *counts,
			 struct request *r, struct scope *scope)
{
	int64_t *uses;

	if (rule->times && *uses_of(counts, scope_key(rule, r, index)) >= rule->times)
		return false;
	if (!condition_holds(&rule->when, r, scope) || !chance_holds(rule, r, index, counts))
		return false;
	uses = uses_of(counts, scope_key(rule, r, index));
	(*uses)++;
	return true;
}

/* A fault that needs an answer to damage, and brings none. */
static bool is_overlay(const struct rule *rule)
{
	return !rule->answer && !rule->fault.status && !rule->fault.overflow &&
	       rule->fault.reset_after != 0;
}

struct decision match_rules(struct scenario *s, struct match_counts *counts, struct request *r,
			    struct scope *scope)
{
	struct decision decision = {.rule = NULL};
	enum beside beside = beside_of(r);

	for (size_t i = 0; i < s->n_rules; i++) {
		const struct rule *rule = &s->rules[i];
		struct scope trial = {.scenario = s, .request = r};

		if ((decision.overlay && is_overlay(rule)) || beside_wanted(&rule->when) != beside)
			continue;
		if (!rule_applies(rule, i, counts, r, &trial)) {
			scope_release(&trial);
			continue;
		}
		if (is_overlay(rule)) {
			decision.overlay = rule;
			scope_release(&trial);
			continue;
		}
		*scope = trial;
		decision.rule = rule;
		return decision;
	}
	*scope = (struct scope){.scenario = s, .request = r};
	if (beside)
		decision.rule = beside_rule(beside);
	return decision;
}
