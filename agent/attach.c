/*
 * attach.c - the table of attachments and the loop over it.
 */
#include "agent/attach.h"

#include <inttypes.h>

#include "agent/context/rehydrate.h"
#include "agent/memory_show.h"
#include "agent/tools/tool.h"
#include "base/memory.h"
#include "base/text.h"

/* A5: a command in the background is forgotten with the rounds that started it, and is left running. */
static int add_jobs(struct agent *a, const struct attach_input *in, struct message *head,
		    struct err *err)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;

	(void)in;
	(void)err;
	if (!a->toolbox.context)
		return 0;
	tool_context_list_jobs(a->toolbox.context, &text);
	if (!text.len)
		return 0;
	buf_adds(&clean, "Background jobs that still run:\n");
	text_sanitize(&clean, text.data, text.len);
	message_add_text(head, ORIGIN_ATTACHMENT, clean.data, clean.len);
	return 0;
}

/* A4, A5: of agents that were started what they reported in a line or two, and who still works. */
static int add_agents(struct agent *a, const struct attach_input *in, struct message *head,
		      struct err *err)
{
	(void)in;
	(void)err;
	subagents_add_state(a, head);
	return 0;
}

/* H13: last in the table, so that what else comes back has its room. */
static int add_files(struct agent *a, const struct attach_input *in, struct message *head,
		     struct err *err)
{
	struct rehydrate files = {
		.files = a->toolbox.context,
		.view = &a->view,
		.from = in->from,
		.tail = in->tail,
		.ledger = &a->ledger,
		.knobs = &a->settings->knobs,
		.summary = in->summary,
		.summary_len = in->summary_len,
		.room = in->room,
	};

	return files.files ? rehydrate_files(&files, head, err) : 0;
}

/* X2: what a model said of its decisions is no way round the check that its summary passes. */
static void clean_sayings(struct agent *a, struct buf *text)
{
	struct user_words_check check = {.summary = buf_str(text), .summary_len = text->len};
	struct user_words_findings found = {0};
	struct buf clean = BUF_INIT;

	user_words_check(&a->words, &check, &found);
	user_words_clean(buf_str(text), text->len, &found, &clean);
	user_words_findings_release(&found);
	buf_release(text);
	*text = clean;
}

/* R3, H21: what calls and results show does not hang on what a summary remembers. */
static int add_facts(struct agent *a, const struct attach_input *in, struct message *head,
		     struct err *err)
{
	AUTO_BUF struct buf facts = BUF_INIT;
	AUTO_BUF struct buf sayings = BUF_INIT;
	AUTO_BUF struct buf clean = BUF_INIT;
	int64_t tokens = MIN(a->settings->knobs.facts, in->room / 2);
	struct facts_spec spec = {
		.task = a->settings->task,
		.task_len = strlen(a->settings->task),
		.tokens = tokens * 3 / 4,
		.ledger = &a->ledger,
	};

	(void)err;
	facts_take(&a->facts, &a->conversation);
	facts_write(&a->facts, &spec, &facts);
	spec.tokens = tokens - spec.tokens;
	facts_write_sayings(&a->facts, &spec, &sayings);
	clean_sayings(a, &sayings);
	buf_add(&facts, sayings.data, sayings.len);
	text_sanitize(&clean, facts.data, facts.len);
	if (clean.len)
		message_add_text(head, ORIGIN_ATTACHMENT, clean.data, clean.len);
	return 0;
}

static const struct attachment attachments[] = {
	{"facts", true, add_facts},
	{"earlier", true, memory_attach_earlier},
	{"memory", true, memory_attach},
	{"hooks", true, hooks_attach},
	{"jobs", false, add_jobs},
	{"agents", false, add_agents},
	{"recall", true, memory_attach_recall},
	{"files", false, add_files},
};

/* Tokens of the blocks from `first` on. */
static int64_t tokens_from(const struct agent *a, const struct message *head, size_t first)
{
	int64_t sum = 0;

	for (size_t i = first; i < head->n_blocks; i++)
		sum += ledger_estimate_text(&a->ledger, head->blocks[i].text,
					    head->blocks[i].text_len);
	return sum;
}

int attach_all(struct agent *a, struct attach_input *in, struct message *head, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(attachments); i++) {
		size_t first = head->n_blocks;

		if (in->by_notes && !attachments[i].after_notes)
			continue;
		if (attachments[i].add(a, in, head, err) < 0)
			return -1;
		in->room -= tokens_from(a, head, first);
	}
	return 0;
}
