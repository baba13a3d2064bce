/*
 * transcript_load.c - rebuilds a conversation from its transcript, and repairs what a crash left.
 *
 * A file may end in the middle of a batch, miss lines in the middle, or hold a line of garbage: all
 * that can be read is taken, and the result is put in a form that every provider accepts (I2, I10).
 * What is made up says so in its text. A call whose result is not on record is never run again here: its
 * outcome is unknown, and the model is told (traps 24, 138, 142); of the last answer resume.c knows more.
 */
#include "agent/transcript.h"

#include "agent/validate.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

/* Numbers beyond these were not written by us. */
#define UID_MAX	  ((uint64_t)1 << 40)
#define ROUND_MAX ((int64_t)1 << 30)

#define LOST_RESULT                                                                                \
	"interrupted: the outcome of this call is unknown, it may have run in part; look before "  \
	"you run it again"
#define LOST_PART "[a part of the history before this point could not be read]"

struct loader {
	struct conversation *c;
	struct transcript_stats *stats;
	struct message *held; /* an assistant message with calls that waits for its results */
	uint64_t *uids, last; /* as they stand in the file, which knows no other numbers */
	size_t n_uids, cap_uids;
};

/* A message that stands there twice (a file that was put together by hand, or from a backup) counts once. They come in
 * their order, so that none has to be looked for in a file that nobody touched. */
static bool is_repeated(struct loader *l, uint64_t uid)
{
	for (size_t i = 0; uid && uid <= l->last && i < l->n_uids; i++) {
		if (l->uids[i] == uid)
			return true;
	}
	MEM_GROW(l->uids, l->cap_uids, l->n_uids + 1);
	l->uids[l->n_uids++] = uid;
	l->last = MAX(l->last, uid);
	return false;
}

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

/* An answer with calls is held back until its results come, so that both go in as a pair or the
 * pair is completed. */
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

/* ---- what a message may hold ---- */

static void block_release(struct block *b)
{
	free(b->id);
	free(b->name);
	free(b->text);
	free(b->raw);
}

static bool is_named(const struct block *b)
{
	return b->id && *b->id && b->name && *b->name;
}

static const struct block *find_call(const struct message *m, const char *id)
{
	for (size_t i = 0; m && id && i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_CALL && !strcmp(m->blocks[i].id, id))
			return &m->blocks[i];
	return NULL;
}

/* Raw parts are copied into requests as they are: they must be JSON. */
static bool raw_is_json(const struct block *b)
{
	AUTO_JSON struct json_object *value = NULL;

	return json_parse(b->raw, strlen(b->raw), &value, NULL) == 0 &&
	       (json_object_is_type(value, json_type_object) ||
		(json_object_is_type(value, json_type_array) && b->kind == BLOCK_THINKING));
}

/* `before` is the message so far, of blocks that were kept. */
static bool assistant_keeps(const struct message *before, const struct block *b)
{
	if (b->raw && !raw_is_json(b))
		return false;
	switch (b->kind) {
	case BLOCK_TEXT: return b->text_len > 0;
	case BLOCK_THINKING: return true;
	case BLOCK_OPAQUE: return b->raw != NULL;
	case BLOCK_TOOL_CALL: return is_named(b) && !find_call(before, b->id);
	default: return false;
	}
}

static void clean_assistant(struct loader *l, struct message *m)
{
	size_t n = m->n_blocks;

	m->n_blocks = 0;
	for (size_t i = 0; i < n; i++) {
		struct block b = m->blocks[i];

		if (assistant_keeps(m, &b)) {
			m->blocks[m->n_blocks++] = b;
		} else {
			block_release(&b);
			l->stats->repaired++;
		}
	}
}

/* Moves a block to the end of `to`. */
static void move_block(struct message *to, struct block *b)
{
	MEM_GROW(to->blocks, to->cap_blocks, to->n_blocks + 1);
	to->blocks[to->n_blocks++] = *b;
	*b = (struct block){.kind = BLOCK_TEXT};
}

static bool result_fits(const struct message *clean, const struct message *calls, struct block *b)
{
	const struct block *call = find_call(calls, b->id);

	/* A second result of one call is the write of a second recoverer: the first counts. */
	if (b->kind != BLOCK_TOOL_RESULT || !call || validate_find_result(clean, b->id))
		return false;
	if (!b->name)
		b->name = mem_strdup(call->name);
	if (!b->text_len) {
		free(b->text);
		b->text = mem_strdup("(no output)");
		b->text_len = strlen(b->text);
	}
	b->is_error |= call->partial;
	return true;
}

static void move_results(struct message *clean, const struct message *calls, struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		AUTO_FREE char *id = NULL;

		if (!result_fits(clean, calls, &m->blocks[i]))
			continue;
		id = mem_strdup(m->blocks[i].id);
		move_block(clean, &m->blocks[i]);
		for (size_t k = i + 1; k < m->n_blocks && m->blocks[k].kind == BLOCK_IMAGE &&
				       m->blocks[k].id && !strcmp(m->blocks[k].id, id);
		     k++)
			move_block(clean, &m->blocks[k]);
	}
}

/* A user message of what fits: results that answer `calls` first, each with its images, then the
 * rest. Frees `m`. */
static struct message *clean_user(struct loader *l, struct message *m, const struct message *calls)
{
	struct message *clean = message_new(MESSAGE_USER);

	clean->round = m->round;
	clean->uid = m->uid;
	move_results(clean, calls, m);
	for (size_t i = 0; i < m->n_blocks; i++) {
		struct block *b = &m->blocks[i];

		if ((b->kind == BLOCK_TEXT || b->kind == BLOCK_IMAGE) && b->text_len && !b->id)
			move_block(clean, b);
	}
	l->stats->repaired += clean->n_blocks < m->n_blocks;
	message_free(m);
	return clean;
}

static void take_user(struct loader *l, struct message *m)
{
	m = settle_held(l, clean_user(l, m, l->held));
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
	if (message_from_json(record, &m, NULL) < 0) {
		l->stats->repaired++;
		return 0;
	}
	if (m->uid > UID_MAX)
		m->uid = 0;
	if (m->round > ROUND_MAX)
		m->round = 0;
	if (is_repeated(l, m->uid)) {
		l->stats->repaired++;
		message_free(m);
		return 0;
	}
	if (m->role == MESSAGE_USER) {
		take_user(l, m);
		return 0;
	}
	clean_assistant(l, m);
	if (message_is_blank(m)) {
		message_free(m);
		l->stats->repaired++;
	} else {
		take_assistant(l, m);
	}
	return 0;
}

int transcript_load(const char *path, struct conversation *conversation,
		    struct transcript_stats *ret_stats, struct err *err)
{
	return transcript_load_open(path, conversation, ret_stats, NULL, err);
}

int transcript_load_open(const char *path, struct conversation *conversation,
			 struct transcript_stats *ret_stats, bool *ret_open, struct err *err)
{
	struct transcript_stats stats = {.records = 0};
	struct loader l = {.c = conversation, .stats = &stats};
	struct jsonl_stats lines = {.records = 0};
	struct message *results;

	int rc = jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &l, &lines, err);
	free(l.uids);
	if (rc < 0) {
		message_free(l.held);
		return -1;
	}
	if (ret_open)
		*ret_open = l.held != NULL;
	results = ret_open ? NULL : settle_held(&l, NULL);
	if (l.held)
		append(&l, take_ptr(l.held));
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
