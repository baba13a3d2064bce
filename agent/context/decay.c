/*
 * decay.c - makes the faded forms.
 *
 * A digest begins with a line that says how large the result was and when it came; the one line is that line
 * again, so that it can be made from a digest as well as from the whole.
 */
#include "agent/context/decay.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/context/about.h"
#include "agent/context/facts.h"
#include "agent/tools/tool.h"
#include "base/memory.h"
#include "base/text.h"

#define DIGEST_BYTES 4000
#define LINE_BYTES   300
#define SMALL	     60 /* tokens: nothing is gained below */

#define DIGEST	     "[digest of "
#define LINE	     "[once shown: "

/* How a faded text begins: its size when it was whole, and its round. */
struct origin {
	size_t lines, bytes;
	int64_t round;
};

static struct origin origin_of(const struct block *b, int64_t round)
{
	struct origin o = {.round = round};

	if (sscanf(b->text, DIGEST "%zu lines, %zu bytes of round %" SCNd64, &o.lines, &o.bytes,
		   &o.round) == 3)
		return o;
	return (struct origin){.lines = text_count_lines(b->text, b->text_len),
			       .bytes = b->text_len,
			       .round = round};
}

static void write_digest(const struct block *b, int64_t round, struct buf *out)
{
	const struct tool *tool = tool_find(b->name);
	struct origin o = origin_of(b, round);

	buf_addf(out, DIGEST "%zu lines, %zu bytes of round %" PRId64 "]\n", o.lines, o.bytes,
		 o.round);
	if (tool && tool->shorten) {
		struct tool_result full = {.exit_code = b->is_error ? 1 : 0};

		sscanf(b->text, "exit code %d", &full.exit_code);
		buf_add(&full.text, b->text, b->text_len);
		tool->shorten(&full, DIGEST_BYTES, NULL, out);
		tool_result_release(&full);
	} else {
		text_clip(out, b->text, b->text_len, DIGEST_BYTES, NULL);
	}
}

/* The first line that is not of the digest says the most: a file's first line, a command's exit code. */
static void write_line(const struct block *b, int64_t round, struct buf *out)
{
	struct origin o = origin_of(b, round);
	const char *s = b->text, *lf = strchr(s, '\n');
	size_t n;

	if (text_starts(s, DIGEST) && lf)
		s = lf + 1;
	n = strcspn(s, "\n");
	buf_addf(out, LINE "%zu lines, %zu bytes of round %" PRId64 ", which began: %.*s]", o.lines,
		 o.bytes, o.round, (int)text_floor(s, n, MIN(n, (size_t)LINE_BYTES)), s);
}

/* What stands for a result of that age; false: it stays as it is. */
static bool fade(const struct rung_input *in, const struct block *b, int64_t round, struct buf *out)
{
	const char *placeholder = about_placeholder(b, in->knobs);
	int64_t age = in->conversation->round - round;

	if (!placeholder || age <= DECAY_WHOLE || b->estimate <= SMALL || about_is_cleared(b))
		return false;
	if (age > DECAY_LINE)
		buf_adds(out, placeholder);
	else if (text_starts(b->text, LINE) ||
		 (age <= DECAY_DIGEST && text_starts(b->text, DIGEST)))
		return false;
	else if (age > DECAY_DIGEST)
		write_line(b, round, out);
	else
		write_digest(b, round, out);
	if (age > DECAY_DIGEST)
		facts_add_failure(b, out);
	return out->len < b->text_len;
}

/* A copy with its old results faded; NULL if none is. Pictures go with the first step. */
static struct message *faded(const struct rung_input *in, const struct message *m)
{
	struct message *copy = message_new(m->role);
	bool changed = false, drop = false;

	for (size_t k = 0; k < m->n_blocks; k++) {
		const struct block *b = &m->blocks[k];
		AUTO_BUF struct buf text = BUF_INIT;

		if (b->kind == BLOCK_IMAGE && b->id && drop)
			continue;
		drop = b->kind == BLOCK_TOOL_RESULT && fade(in, b, m->round, &text);
		if (drop)
			message_add_result(copy, b->id, b->name, text.data, text.len, b->is_error);
		else
			message_add_block(copy, b);
		changed |= drop;
	}
	copy->round = m->round;
	if (changed)
		return copy;
	message_free(copy);
	return NULL;
}

bool decay_wanted(const struct rung_input *in)
{
	return in->knobs->decay && in->view->epoch != in->epoch;
}

int decay_run(struct rung_input *in, int64_t *ret_freed, struct err *err)
{
	const struct view *view = in->view;
	struct epoch_edit edit;

	rung_begin(in, "decay", &edit);
	for (size_t i = view->broken; i < view->n; i++) {
		const struct message *m = view->list[i];
		struct message *copy = NULL;

		if (in->conversation->round - m->round <= DECAY_WHOLE)
			break;
		if (m->role == MESSAGE_USER && message_count(m, BLOCK_TOOL_RESULT))
			copy = faded(in, m);
		if (copy)
			epoch_change(&edit, i, i + 1, copy);
	}
	epoch_apply(&edit, &in->done);
	*ret_freed = in->done.freed;
	return 0;
}
