/*
 * retell.c - writes messages as text.
 */
#include "agent/context/retell.h"

#include <inttypes.h>

#include "base/text.h"

#define HEAD_SHARE 60 /* per cent of a block's bytes (T4); the tail has 30 */
#define TAIL_SHARE 30

static void add_cut(struct buf *out, const char *s, size_t n, size_t most)
{
	size_t head, tail;

	if (!most || n <= most) {
		buf_add(out, s, n);
		return;
	}
	head = text_floor(s, n, most * HEAD_SHARE / 100);
	tail = text_ceil(s, n, n - most * TAIL_SHARE / 100);
	buf_add(out, s, head);
	buf_addf(out, "\n[... %zu bytes ...]\n", tail - head);
	buf_add(out, s + tail, n - tail);
}

static const char *speaker(const struct message *m, const struct block *b)
{
	if (m->role == MESSAGE_ASSISTANT)
		return "assistant";
	switch (b->origin) {
	case ORIGIN_USER: return "user";
	case ORIGIN_TASK: return "task";
	case ORIGIN_EVALUATOR: return "evaluator";
	default: return "baton";
	}
}

static void add_block(const struct message *m, const struct block *b, size_t most, struct buf *out)
{
	switch (b->kind) {
	case BLOCK_TEXT:
		buf_addf(out, "%s: ", speaker(m, b));
		add_cut(out, b->text, b->text_len, most);
		break;
	case BLOCK_TOOL_CALL:
		buf_addf(out, "call of %s: ", b->name);
		add_cut(out, b->text, b->text_len, most);
		break;
	case BLOCK_TOOL_RESULT:
		buf_addf(out, "%s of %s: ", b->is_error ? "error" : "result", b->name);
		add_cut(out, b->text, b->text_len, most);
		break;
	case BLOCK_IMAGE: buf_addf(out, "[image, %s]", b->name); break;
	case BLOCK_THINKING:
	case BLOCK_OPAQUE: return;
	}
	buf_addc(out, '\n');
}

void retell_messages(struct message *const *list, size_t n, size_t block_bytes, struct buf *out)
{
	int64_t round = -1;

	for (size_t i = 0; i < n; i++) {
		if (list[i]->round != round)
			buf_addf(out, "--- round %" PRId64 "\n", list[i]->round);
		round = list[i]->round;
		for (size_t k = 0; k < list[i]->n_blocks; k++)
			add_block(list[i], &list[i]->blocks[k], block_bytes, out);
	}
}
