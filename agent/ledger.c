/*
 * ledger.c - keeps the token ledger of one conversation.
 *
 * Each message is counted once, when it is appended; nothing here walks the history, so a round
 * costs the same at 1,000 and at 150,000 tokens. The estimator learns from the part that is new
 * since the last usage: the difference of two usages is what the provider counts for exactly that
 * text. Where something was removed in between, or thinking was stripped by the server, the
 * difference says nothing about the text, and nothing is learned.
 */
#include "agent/ledger.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/text.h"

#define MESSAGE_OVERHEAD 4    /* role and separators */
#define BLOCK_OVERHEAD	 8    /* ids and names of a call or a result */
#define PINNED_LEAST	 2048 /* no server has a smaller window; a made-up usage may be smaller */
#define PINNED_ENOUGH	 3

static const char *const category_names[LEDGER_CATEGORIES] = {
	[LEDGER_SYSTEM] = "system",
	[LEDGER_TOOLS] = "tools",
	[LEDGER_INSTRUCTIONS] = "instructions",
	[LEDGER_SKILLS] = "skills",
	[LEDGER_ENVIRONMENT] = "environment",
	[LEDGER_USER] = "user",
	[LEDGER_ASSISTANT] = "assistant",
	[LEDGER_THINKING] = "thinking",
	[LEDGER_RESULTS] = "results",
	[LEDGER_REPORTS] = "reports",
	[LEDGER_ATTACHMENTS] = "attachments",
	[LEDGER_HOOKS] = "hook_output",
	[LEDGER_MEMORY] = "memory",
	[LEDGER_NOTES] = "notes",
	[LEDGER_SUMMARY] = "summary",
};

void ledger_init(struct ledger *ledger)
{
	*ledger = (struct ledger){.base = 0};
	estimator_init(&ledger->estimator);
}

void ledger_release(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->n_tools; i++)
		free(ledger->tools[i].name);
	free(ledger->tools);
	ledger_init(ledger);
	ledger->tools = NULL;
}

/* A handful of tools: a list is faster than a table, and has a stable order for the record. */
static struct ledger_tool *tool_entry(struct ledger *ledger, const char *name)
{
	for (size_t i = 0; i < ledger->n_tools; i++)
		if (!strcmp(ledger->tools[i].name, name))
			return &ledger->tools[i];
	MEM_GROW(ledger->tools, ledger->cap_tools, ledger->n_tools + 1);
	ledger->tools[ledger->n_tools] = (struct ledger_tool){.name = mem_strdup(name)};
	return &ledger->tools[ledger->n_tools++];
}

static void book_tokens(struct ledger *ledger, enum ledger_category category, int64_t tokens,
			int64_t bytes)
{
	ledger->category[category] += tokens;
	ledger->since += tokens;
	if (category != LEDGER_THINKING)
		ledger->text_bytes += bytes;
}

/* Books counts under a category and among what no usage has covered. */
static int64_t book(struct ledger *ledger, enum ledger_category category,
		    const struct text_counts *counts)
{
	int64_t tokens = estimate_tokens(&ledger->estimator, counts);

	book_tokens(ledger, category, tokens, estimate_bytes(counts));
	estimate_merge(&ledger->unmeasured, counts);
	return tokens;
}

/* The rendered head is not used for this: it has the provider's JSON around each schema, which the
 * provider does not count. */
void ledger_fixed(struct ledger *ledger, const char *system, const struct tool_spec *tools,
		  size_t n_tools)
{
	struct text_counts counts = {.overhead = MESSAGE_OVERHEAD};

	if (system)
		estimate_count(&counts, system, strlen(system));
	book(ledger, LEDGER_SYSTEM, &counts);
	ledger->fixed = counts;
	for (size_t i = 0; i < n_tools; i++) {
		struct text_counts tool = {.overhead = BLOCK_OVERHEAD};

		estimate_count(&tool, tools[i].name, strlen(tools[i].name));
		estimate_count(&tool, tools[i].description, strlen(tools[i].description));
		estimate_count(&tool, tools[i].schema, strlen(tools[i].schema));
		book(ledger, LEDGER_TOOLS, &tool);
		estimate_merge(&ledger->fixed, &tool);
	}
}

/* W5: who wrote a text decides its category, not where it stands. */
static enum ledger_category text_category(enum block_origin origin)
{
	switch (origin) {
	case ORIGIN_MODEL: return LEDGER_ASSISTANT;
	case ORIGIN_USER:
	case ORIGIN_TASK:
	case ORIGIN_EVALUATOR: return LEDGER_USER;
	case ORIGIN_INSTRUCTIONS: return LEDGER_INSTRUCTIONS;
	case ORIGIN_ENVIRONMENT: return LEDGER_ENVIRONMENT;
	case ORIGIN_TOOL: return LEDGER_RESULTS;
	case ORIGIN_ATTACHMENT: return LEDGER_ATTACHMENTS;
	case ORIGIN_HOOK: return LEDGER_HOOKS;
	case ORIGIN_HANDOFF: return LEDGER_SUMMARY;
	case ORIGIN_MEMORY: return LEDGER_MEMORY;
	case ORIGIN_NUDGE: return LEDGER_NOTES;
	case ORIGIN_SUMMARY: return LEDGER_SUMMARY;
	}
	return LEDGER_NOTES;
}

static enum ledger_category block_category(const struct block *b)
{
	switch (b->kind) {
	case BLOCK_THINKING: return LEDGER_THINKING;
	case BLOCK_TOOL_CALL:
	case BLOCK_OPAQUE: return LEDGER_ASSISTANT;
	case BLOCK_TOOL_RESULT: return LEDGER_RESULTS;
	case BLOCK_IMAGE: return LEDGER_ATTACHMENTS;
	case BLOCK_TEXT: break;
	}
	return text_category(b->origin);
}

/* Thinking that exists as text is counted as text; its raw form repeats it beside a signature. */
static struct text_counts block_count(const struct block *b)
{
	struct text_counts counts = {.overhead = 0};

	if (b->kind == BLOCK_IMAGE) {
		counts.images = 1;
		return counts;
	}
	if (b->kind == BLOCK_TOOL_CALL || b->kind == BLOCK_TOOL_RESULT)
		counts.overhead = BLOCK_OVERHEAD;
	if (b->kind == BLOCK_TOOL_CALL && b->name)
		estimate_count(&counts, b->name, strlen(b->name));
	if (b->text)
		estimate_count(&counts, b->text, b->text_len);
	else if (b->raw)
		estimate_count(&counts, b->raw, strlen(b->raw));
	return counts;
}

void ledger_add(struct ledger *ledger, struct message *m)
{
	struct text_counts frame = {.overhead = MESSAGE_OVERHEAD};
	int64_t sum = MESSAGE_OVERHEAD;

	ledger->since += MESSAGE_OVERHEAD;
	estimate_merge(&ledger->unmeasured, &frame);
	for (size_t i = 0; i < m->n_blocks; i++) {
		struct block *b = &m->blocks[i];
		struct text_counts counts = block_count(b);

		b->estimate = book(ledger, block_category(b), &counts);
		if (b->kind == BLOCK_TOOL_RESULT && b->name)
			tool_entry(ledger, b->name)->tokens += b->estimate;
		sum += b->estimate;
	}
	m->estimate = sum;
}

/* Bytes of a block as far as they have to do with its tokens. */
static int64_t block_bytes(const struct block *b)
{
	if (b->kind == BLOCK_IMAGE)
		return 0;
	return (int64_t)(b->text_len || !b->raw ? b->text_len : strlen(b->raw));
}

/* Divides measured tokens among an answer's thinking, or among the rest of it, by bytes. */
static void divide(struct message *m, bool thinking, int64_t tokens)
{
	int64_t bytes = 0, left = tokens;
	struct block *last = NULL;

	for (size_t i = 0; i < m->n_blocks; i++)
		if ((m->blocks[i].kind == BLOCK_THINKING) == thinking)
			bytes += block_bytes(&m->blocks[i]) + BLOCK_OVERHEAD;
	for (size_t i = 0; i < m->n_blocks; i++) {
		struct block *b = &m->blocks[i];

		if ((b->kind == BLOCK_THINKING) != thinking)
			continue;
		b->estimate = (int64_t)((double)tokens * (double)(block_bytes(b) + BLOCK_OVERHEAD) /
					(double)bytes);
		left -= b->estimate;
		last = b;
	}
	if (last)
		last->estimate += left;
}

/* Splits an answer's measured output between thinking and the rest. */
static void book_answer(struct ledger *ledger, struct message *m, const struct model_usage *usage)
{
	int64_t thinking = usage->thinking;

	for (size_t i = 0; !thinking && i < m->n_blocks; i++) {
		if (m->blocks[i].kind == BLOCK_THINKING) {
			struct text_counts counts = block_count(&m->blocks[i]);

			thinking += estimate_tokens(&ledger->estimator, &counts);
		}
	}
	thinking = MIN(thinking, usage->output);
	ledger->category[LEDGER_THINKING] += thinking;
	ledger->category[LEDGER_ASSISTANT] += usage->output - thinking;
	m->estimate = usage->output;
	divide(m, true, thinking);
	divide(m, false, usage->output - thinking);
}

/* Trap 84: far less was counted than was sent, and prompt and answer always fill the same total. */
static void watch_pinned(struct ledger *ledger, int64_t prompt, int64_t total)
{
	bool short_of = ledger_used(ledger) > prompt + prompt / 2 + 1000 && total >= PINNED_LEAST;

	if (short_of && total == ledger->pinned_total)
		ledger->pinned_times++;
	else
		ledger->pinned_times = short_of;
	ledger->pinned_total = total;
}

/* What rounding leaves goes to the largest part, so that the sum is the provider's. */
static void divide_usage(struct ledger *ledger, int64_t prompt)
{
	int64_t sum = 0, left = prompt;
	size_t largest = 0;

	for (size_t i = 0; i < LEDGER_CATEGORIES; i++) {
		sum += ledger->category[i];
		if (ledger->category[i] > ledger->category[largest])
			largest = i;
	}
	for (size_t i = 0; i < LEDGER_CATEGORIES; i++) {
		ledger->share[i] = sum > 0 ? (int64_t)((double)ledger->category[i] *
						       (double)prompt / (double)sum)
					   : 0;
		left -= ledger->share[i];
	}
	ledger->share[largest] += left;
	ledger->share_total = prompt;
	ledger->share_estimate = sum;
}

void ledger_answer(struct ledger *ledger, struct message *m, const struct model_usage *usage)
{
	int64_t prompt = usage_prompt(usage);

	if (!usage->known || prompt <= 0) {
		if (m)
			ledger_add(ledger, m);
		return;
	}
	watch_pinned(ledger, prompt, prompt + usage->output);
	if (ledger->pinned_times || prompt < ledger->text_bytes / 8) {
		/* The figure is not about what was sent (X8: no text has 8 bytes a token): our own
		 * count stays, else a server that makes figures up leads into an overflow. */
		if (m)
			ledger_add(ledger, m);
		return;
	}
	divide_usage(ledger, prompt);
	/* After a removal the difference of two usages is not the size of what was added. */
	if (!ledger->removed)
		estimator_learn(&ledger->estimator, &ledger->unmeasured, prompt - ledger->base);
	ledger->base = prompt;
	/* A blank answer is not kept, so its output will not be in the next prompt. */
	if (m) {
		book_answer(ledger, m, usage);
		ledger->base += usage->output;
	}
	ledger->since = ledger->removed = 0;
	ledger->unmeasured = (struct text_counts){.overhead = 0};
}

void ledger_removed(struct ledger *ledger, int64_t tokens)
{
	ledger->removed += tokens;
}

void ledger_cleared(struct ledger *ledger, int64_t tokens)
{
	int64_t *results = &ledger->category[LEDGER_RESULTS];

	*results = MAX(*results - tokens, 0);
	ledger->text_bytes = MAX(ledger->text_bytes - tokens * BYTES_PER_TOKEN, 0);
}

int64_t ledger_take_out(struct ledger *ledger, const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];
		int64_t *category = &ledger->category[block_category(b)];

		*category = MAX(*category - b->estimate, 0);
		if (b->kind == BLOCK_TOOL_RESULT && b->name) {
			struct ledger_tool *tool = tool_entry(ledger, b->name);

			tool->tokens = MAX(tool->tokens - b->estimate, 0);
		}
		/* Else a session that dropped much would one day not believe its usages. */
		if (b->kind != BLOCK_THINKING)
			ledger->text_bytes = MAX(ledger->text_bytes - block_bytes(b), 0);
	}
	ledger->removed += m->estimate;
	return m->estimate;
}

int64_t ledger_put_in(struct ledger *ledger, struct message *m)
{
	int64_t sum = MESSAGE_OVERHEAD;

	ledger->since += MESSAGE_OVERHEAD;
	for (size_t i = 0; i < m->n_blocks; i++) {
		struct block *b = &m->blocks[i];

		if (!b->estimate) {
			struct text_counts counts = block_count(b);

			b->estimate = estimate_tokens(&ledger->estimator, &counts);
		}
		book_tokens(ledger, block_category(b), b->estimate, block_bytes(b));
		if (b->kind == BLOCK_TOOL_RESULT && b->name)
			tool_entry(ledger, b->name)->tokens += b->estimate;
		sum += b->estimate;
	}
	return m->estimate = sum;
}

/* Answers that a usage measured are estimated like the rest: the next usage covers all of it again. */
void ledger_restart(struct ledger *ledger, struct message *const *view, size_t n)
{
	int64_t fixed = ledger->category[LEDGER_SYSTEM] + ledger->category[LEDGER_TOOLS];

	for (size_t i = LEDGER_TOOLS + 1; i < LEDGER_CATEGORIES; i++)
		ledger->category[i] = 0;
	for (size_t i = 0; i < ledger->n_tools; i++)
		ledger->tools[i].tokens = 0;
	ledger->base = ledger->removed = 0;
	ledger->since = fixed;
	ledger->text_bytes = 0;
	ledger->unmeasured = ledger->fixed;
	ledger->pinned_times = 0;
	for (size_t i = 0; i < n; i++)
		ledger_add(ledger, view[i]);
}

int64_t ledger_used(const struct ledger *ledger)
{
	return MAX(ledger->base + ledger->since - ledger->removed, 0);
}

int64_t ledger_results(const struct ledger *ledger)
{
	return ledger->category[LEDGER_RESULTS] + ledger->category[LEDGER_ATTACHMENTS];
}

int64_t ledger_tool(const struct ledger *ledger, const char *name)
{
	for (size_t i = 0; i < ledger->n_tools; i++)
		if (!strcmp(ledger->tools[i].name, name))
			return ledger->tools[i].tokens;
	return 0;
}

int64_t ledger_estimate_text(const struct ledger *ledger, const char *text, size_t n)
{
	struct text_counts counts = {.overhead = BLOCK_OVERHEAD};

	estimate_count(&counts, text, n);
	return estimate_tokens(&ledger->estimator, &counts);
}

int64_t ledger_learned_window(const struct ledger *ledger)
{
	return ledger->pinned_times >= PINNED_ENOUGH ? ledger->pinned_total : 0;
}

static void write_tools(const struct ledger *ledger, double scale, struct buf *out)
{
	buf_adds(out, ",\"results_by_tool\":{");
	for (size_t i = 0; i < ledger->n_tools; i++) {
		if (i)
			buf_addc(out, ',');
		json_write_cstr(out, ledger->tools[i].name);
		buf_addf(out, ":%" PRId64, (int64_t)((double)ledger->tools[i].tokens * scale));
	}
	buf_addc(out, '}');
}

static void write_categories(const int64_t *tokens, struct buf *out)
{
	buf_adds(out, ",\"by\":{");
	for (size_t i = 0; i < LEDGER_CATEGORIES; i++)
		buf_addf(out, "%s\"%s\":%" PRId64, i ? "," : "", category_names[i], tokens[i]);
}

void ledger_write(const struct ledger *ledger, const struct window_budget *budget,
		  int64_t answer_room, struct buf *out)
{
	int64_t free_tokens = budget->effective - ledger_used(ledger);

	write_categories(ledger->category, out);
	buf_addf(out,
		 ",\"response_reserve\":%" PRId64 ",\"compact_buffer\":%" PRId64
		 ",\"free\":%" PRId64 "}",
		 answer_room, budget->effective - budget->compact, MAX(free_tokens, 0));
	write_tools(ledger, 1, out);
}

void ledger_write_shares(const struct ledger *ledger, struct buf *out)
{
	if (ledger->share_total <= 0 || ledger->share_estimate <= 0)
		return;
	write_categories(ledger->share, out);
	buf_addc(out, '}');
	write_tools(ledger, (double)ledger->share_total / (double)ledger->share_estimate, out);
}
