/*
 * transcript_load.c - rebuilds a conversation from its transcript, and repairs what a crash left.
 *
 * A file may end in the middle of a batch, miss lines in the middle, or hold a line of garbage: all
 * that can be read is taken, and the result is put in a form that every provider accepts (I2, I10).
 * What is made up says so in its text. A call whose start is on record but whose result is not is
 * never run again here: its outcome is unknown, and the model is told (traps 24, 138, 142).
 */
#include "agent/transcript.h"

#include "agent/validate.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

#define LOST_RESULT                                                                                \
	"interrupted: the outcome of this call is unknown, it may have run in part; look before "  \
	"you run it again"
#define LOST_PART "[a part of the history before this point could not be read]"

struct loader {
	struct conversation *c;
	struct transcript_stats *stats;
	struct message *held; /* an assistant message with calls that waits for its results */
};

static void append(struct loader *l, struct message *m)
{
	conversation_append(l->c, m);
}

static void append_note(struct loader *l)
{
	struct message *note = message_new(MESSAGE_USER);

	message_add_text(note, ORIGIN_NUDGE, LOST_PART, strlen(LOST_PART));
	append(l, note);
	l->stats->repaired++;
}

/* Puts the held assistant message in, with what answers it; `m` may be NULL or answer only a part.
 */
static struct message *settle_held(struct loader *l, struct message *m)
{
	struct message *closed;

	if (!l->held)
		return m;
	closed = validate_close_calls(l->held, m, LOST_RESULT);
	append(l, take_ptr(l->held));
	if (!closed)
		return m;
	l->stats->repaired++;
	message_free(m);
	return closed;
}

static bool has_opaque(const struct message *m)
{
	return m && message_count(m, BLOCK_OPAQUE);
}

static void take_assistant(struct loader *l, struct message *m)
{
	struct message *last, *results = settle_held(l, NULL);

	if (results)
		append(l, results);
	last = conversation_last(l->c);
	if (!last || (last->role == MESSAGE_ASSISTANT && !has_opaque(last)))
		append_note(l);
	if (message_count(m, BLOCK_TOOL_CALL))
		l->held = m;
	else
		append(l, m);
}

/* A copy of a user message without the results that answer no call of `call`. */
static struct message *without_orphans(struct loader *l, struct message *m,
				       const struct message *call)
{
	struct message *clean = message_new(MESSAGE_USER);

	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];
		bool known = !b->id;

		for (size_t k = 0; !known && call && k < call->n_blocks; k++)
			known = call->blocks[k].kind == BLOCK_TOOL_CALL &&
				!strcmp(call->blocks[k].id, b->id);
		/* A second result of one call is the write of a second recoverer: the first counts.
		 */
		if (known && b->kind == BLOCK_TOOL_RESULT && validate_find_result(clean, b->id))
			known = false;
		if (!known)
			l->stats->repaired++;
		else if (b->kind == BLOCK_TOOL_RESULT)
			message_add_result(clean, b->id, b->name ? b->name : "tool",
					   b->text_len ? b->text : "(no output)",
					   b->text_len ? b->text_len : 11, b->is_error);
		else if (b->kind == BLOCK_IMAGE)
			message_add_image(clean, b->id, b->name, b->text, b->text_len);
		else if (b->kind == BLOCK_TEXT)
			message_add_text(clean, b->origin, b->text, b->text_len);
	}
	clean->round = m->round;
	clean->uid = m->uid;
	message_free(m);
	return clean;
}

static void take_user(struct loader *l, struct message *m)
{
	m = settle_held(l, without_orphans(l, m, l->held));
	if (m->n_blocks)
		append(l, m);
	else
		message_free(m);
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct loader *l = arg;
	struct message *m = NULL;

	if (strcmp(json_str(record, "type", ""), "message") != 0)
		return 0;
	if (message_from_json(record, &m, NULL) < 0 ||
	    (m->role == MESSAGE_ASSISTANT && message_is_blank(m))) {
		message_free(m);
		l->stats->repaired++;
		return 0;
	}
	if (m->role == MESSAGE_ASSISTANT)
		take_assistant(l, m);
	else
		take_user(l, m);
	return 0;
}

int transcript_load(const char *path, struct conversation *conversation,
		    struct transcript_stats *ret_stats, struct err *err)
{
	struct transcript_stats stats = {.records = 0};
	struct loader l = {.c = conversation, .stats = &stats};
	struct jsonl_stats lines = {.records = 0};
	struct message *results;

	if (jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &l, &lines, err) < 0) {
		message_free(l.held);
		return -1;
	}
	results = settle_held(&l, NULL);
	if (results)
		append(&l, results);
	stats.records = lines.records;
	stats.bad_lines = lines.bad_lines;
	stats.first_bad_line = lines.first_bad_line;
	if (!conversation->n)
		return err_set(err, ERR_INVALID, "'%s' holds no message", path);
	*ret_stats = stats;
	return 0;
}
