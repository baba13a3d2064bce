/*
 * answer.c - expands a rule's answer and bounds it as a provider does: calls that may not be made
 * are left out, and output beyond max_tokens or the window is cut in the middle of a block.
 */
#include "rehearsal/answer.h"

#include "base/memory.h"
#include "base/text.h"
#include "rehearsal/quirks.h"
#include "rehearsal/thinking.h"

static struct answer_block *add_block(struct answer *a, enum part_kind kind, const char *s,
				      size_t n)
{
	struct answer_block *block;

	MEM_GROW(a->blocks, a->cap_blocks, a->n_blocks + 1);
	block = &a->blocks[a->n_blocks++];
	*block = (struct answer_block){.kind = kind, .text = mem_strndup(s, n), .len = n};
	return block;
}

/* A text may be written as a list: its items (and those of a for_each_match) become lines. */
static void add_text(struct answer *a, enum part_kind kind, struct scope *scope,
		     struct json_object *node)
{
	AUTO_JSON struct json_object *value = node ? template_expand(scope, node) : NULL;
	AUTO_BUF struct buf text = BUF_INIT;

	if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_len(value); i++)
			buf_addf(&text, "%s%s", i ? "\n" : "",
				 json_object_get_string(json_at(value, i)));
	} else if (json_object_is_type(value, json_type_string)) {
		buf_add(&text, json_object_get_string(value),
			(size_t)json_object_get_string_len(value));
	} else if (value) {
		buf_adds(&text, json_object_get_string(value));
	}
	if (text.len)
		add_block(a, kind, buf_str(&text), text.len);
}

/* An unknown tool is called nevertheless, as models do, and noted. */
static void add_call(struct answer *a, struct scope *scope, struct json_object *call)
{
	const struct request *r = scope->request;
	struct json_object *input = json_get(call, "input");
	const char *name = json_str(call, "name", "");
	AUTO_BUF struct buf arguments = BUF_INIT, id = BUF_INIT;
	struct answer_block *block;
	size_t index = 0;

	for (size_t i = 0; i < a->n_blocks; i++)
		index += a->blocks[i].kind == PART_CALL;
	if (json_object_is_type(input, json_type_string))
		buf_adds(&arguments, json_object_get_string(input)); /* raw: malformed on purpose */
	else if (input)
		json_write(&arguments, input);
	else
		buf_adds(&arguments, "{}");
	if (!request_has_tool(r, name))
		buf_addf(&scope->notes, "%stool '%.80s' was not offered",
			 scope->notes.len ? "; " : "", name);
	block = add_block(a, PART_CALL, buf_str(&arguments), arguments.len);
	block->name = mem_strdup(name);
	call_id_write(&id, r->protocol == PROTOCOL_ANTHROPIC ? "toolu_" : "call_", r->chain, index,
		      a->thinking);
	block->id = buf_take(&id);
}

static void add_calls(struct answer *a, struct scope *scope, struct json_object *calls)
{
	AUTO_JSON struct json_object *list = calls ? template_expand(scope, calls) : NULL;

	for (size_t i = 0; i < json_len(list); i++) {
		add_call(a, scope, json_at(list, i));
		if (scope->request->one_call)
			break;
	}
}

/* A call costs its name and frame beside its arguments, on output as on input. */
static int64_t block_tokens(const struct answer_block *block)
{
	return tokens_count(block->text, block->len) +
	       (block->kind == PART_CALL
			? TOKENS_CALL + tokens_count(block->name, strlen(block->name))
			: 0);
}

/* Keeps the part of a block that `left` tokens allow, cut at a character. */
static void cut_block(struct answer_block *block, int64_t tokens, int64_t left)
{
	size_t keep = tokens > 0 ? (size_t)((double)block->len * (double)MAX(left, (int64_t)0) /
					    (double)tokens)
				 : 0;

	block->len = text_floor(block->text, block->len, keep);
	block->text[block->len] = '\0';
	block->cut = true;
}

/* Blocks are spent in order; the one that does not fit is cut, what follows is never said. */
static void bound_output(struct answer *a, const struct request *r, int64_t window)
{
	int64_t max = r->max_tokens ? r->max_tokens : INT64_MAX, total = 0;
	int64_t room = window ? MAX(window - r->input_tokens, (int64_t)0) : INT64_MAX;
	int64_t limit = MIN(max, room);

	for (size_t i = 0; i < a->n_blocks; i++) {
		int64_t tokens = block_tokens(&a->blocks[i]);

		if (total + tokens <= limit) {
			total += tokens;
			if (a->blocks[i].kind == PART_THINKING)
				a->thinking_tokens += tokens;
			continue;
		}
		cut_block(&a->blocks[i], tokens, limit - total);
		while (a->n_blocks > i + (a->blocks[i].len || a->blocks[i].kind == PART_CALL)) {
			struct answer_block *last = &a->blocks[--a->n_blocks];

			free(last->text);
			free(last->name);
			free(last->id);
		}
		total = limit;
		a->stop = room < max ? STOP_WINDOW : STOP_MAX_TOKENS;
		break;
	}
	a->output_tokens = total;
}

static void use_stop_reason(struct answer *a, const char *word)
{
	if (!word || a->stop == STOP_MAX_TOKENS || a->stop == STOP_WINDOW)
		return;
	a->stop = STOP_OTHER;
	a->stop_text = word;
}

/* Figures of the scenario replace single ones of ours: tests of accounting need odd values. */
static void use_usage(struct answer *a, struct json_object *usage)
{
	a->output_tokens = json_i64(usage, "output", a->output_tokens);
	a->usage.fresh = json_i64(usage, "input", a->usage.fresh);
	a->usage.read = json_i64(usage, "cache_read", a->usage.read);
	a->usage.write = json_i64(usage, "cache_write", a->usage.write);
	a->usage.write_1h = MIN(a->usage.write_1h, a->usage.write);
	a->input_tokens = a->usage.fresh + a->usage.read + a->usage.write;
}

/* Thinking first, then text, then calls: the order in which models speak. */
void answer_build(struct answer *a, const struct rule *rule, struct scope *scope, uint32_t quirks,
		  int64_t window)
{
	const struct request *r = scope->request;
	struct json_object *tree = rule->answer;
	struct json_object *redacted = json_get(tree, "redacted_thinking");

	a->quirks = quirks | rule->quirks | rule->fault.quirks;
	add_text(a, PART_THINKING, scope, json_get(tree, "thinking"));
	if (a->n_blocks)
		a->thinking = thinking_hash(a->blocks[0].text, a->blocks[0].len);
	if (redacted && r->protocol == PROTOCOL_ANTHROPIC)
		add_text(a, PART_OTHER, scope, redacted);
	add_text(a, PART_TEXT, scope, json_get(tree, "text"));
	if (!r->tools_off)
		add_calls(a, scope, json_get(tree, "tool_calls"));
	a->stop = STOP_END;
	for (size_t i = 0; i < a->n_blocks; i++)
		if (a->blocks[i].kind == PART_CALL)
			a->stop = STOP_TOOLS;
	bound_output(a, r, window);
	use_stop_reason(a, json_str(tree, "stop_reason", NULL));
	a->stop_details = json_obj(tree, "stop_details");
	use_usage(a, json_obj(tree, "usage"));
}

void answer_release(struct answer *a)
{
	for (size_t i = 0; i < a->n_blocks; i++) {
		free(a->blocks[i].text);
		free(a->blocks[i].name);
		free(a->blocks[i].id);
	}
	free(a->blocks);
	*a = (struct answer){.blocks = NULL};
}
