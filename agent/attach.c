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

static const struct attachment attachments[] = {
	{"earlier", true, memory_attach_earlier},
	{"memory", true, memory_attach},
	{"hooks", true, hooks_attach},
	{"jobs", false, add_jobs},
	{"recall", true, memory_attach_recall},
	{"files", false, add_files},
};

const struct attachment *attachment_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(attachments);
	return attachments;
}

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
