/*
 * validate.c - the request validator (I2, traps 20, 22, 24, 28, 30).
 *
 * One function per message and one per pair of neighbours. It runs over neutral messages, before
 * rendering: the adapters map these one to one, and a rule that is broken here would be broken in
 * every protocol. The cost of a round is the new messages only.
 */
#include "agent/validate.h"

#include "base/memory.h"
#include "base/text.h"

static int fail(struct err *err, const struct message *m, size_t block, const char *what)
{
	return err_set(
		err, ERR_INVALID,
		"request is not well-formed: message %llu, block %zu: %s (this is a bug of baton)",
		(unsigned long long)m->uid, block, what);
}

/* As message.h has it, or weaker: what may be stored may be sent. */
static bool is_blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != ' ' && (s[i] < '\t' || s[i] > '\r'))
			return false;
	return true;
}

/* What each role may hold. A block in the wrong message is a bug that no adapter can render. */
static bool user_block_fits(const struct block *b)
{
	return b->kind == BLOCK_TEXT || b->kind == BLOCK_TOOL_RESULT || b->kind == BLOCK_IMAGE;
}

static bool assistant_block_fits(const struct block *b)
{
	return b->kind == BLOCK_TEXT || b->kind == BLOCK_THINKING || b->kind == BLOCK_TOOL_CALL ||
	       b->kind == BLOCK_OPAQUE;
}

static int check_block(const struct message *m, size_t i, struct err *err)
{
	const struct block *b = &m->blocks[i];

	if (m->role == MESSAGE_USER ? !user_block_fits(b) : !assistant_block_fits(b))
		return fail(err, m, i, "a block that this role may not hold");
	if (b->text && !text_is_utf8(b->text, b->text_len))
		return fail(err, m, i, "text is not valid UTF-8");
	if (b->kind == BLOCK_TEXT && (!b->text || is_blank(b->text, b->text_len)))
		return fail(err, m, i, "blank text");
	if (b->kind == BLOCK_TOOL_RESULT && (!b->text || !b->text_len))
		return fail(err, m, i, "a tool result without text");
	if ((b->kind == BLOCK_TOOL_CALL || b->kind == BLOCK_TOOL_RESULT) &&
	    (!b->id || !*b->id || !b->name || !*b->name))
		return fail(err, m, i, "a tool call or result without id or name");
	return 0;
}

/* Results first, each followed at most by its own images; then the other text. */
static int check_user_order(const struct message *m, struct err *err)
{
	const struct block *result = NULL;
	bool others = false;

	for (size_t i = 0; i < m->n_blocks; i++) {
		const struct block *b = &m->blocks[i];

		if (b->kind == BLOCK_TOOL_RESULT) {
			if (others)
				return fail(err, m, i, "a tool result after other content");
			result = b;
		} else if (b->kind == BLOCK_IMAGE && b->id) {
			if (others || !result || strcmp(result->id, b->id) != 0)
				return fail(err, m, i, "an image that does not follow its result");
		} else {
			others = true;
		}
	}
	return 0;
}

/* One message by itself. Thinking alone is a blank answer (trap 26); a server's own block is not.
 */
static int check_message(const struct message *m, struct err *err)
{
	if (!m->n_blocks)
		return fail(err, m, 0, "a message without content");
	for (size_t i = 0; i < m->n_blocks; i++)
		if (check_block(m, i, err) < 0)
			return -1;
	if (m->role == MESSAGE_USER)
		return check_user_order(m, err);
	if (message_is_blank(m) && !message_count(m, BLOCK_OPAQUE))
		return fail(err, m, 0, "a blank assistant message");
	return 0;
}

const struct block *validate_find_result(const struct message *results, const char *call_id)
{
	for (size_t i = 0; results && i < results->n_blocks; i++) {
		const struct block *b = &results->blocks[i];

		if (b->kind == BLOCK_TOOL_RESULT && !strcmp(b->id, call_id))
			return b;
	}
	return NULL;
}

/* Batches have a few calls: counting beats a table, and allocates nothing. */
static size_t count_id(const struct message *m, enum block_kind kind, const char *id)
{
	size_t count = 0;

	for (size_t i = 0; i < m->n_blocks; i++)
		count += m->blocks[i].kind == kind && !strcmp(m->blocks[i].id, id);
	return count;
}

/* The calls of `a` are answered by `m`, and `m` answers nothing else. */
static int check_pairing(const struct message *a, const struct message *m, struct err *err)
{
	for (size_t i = 0; a && i < a->n_blocks; i++) {
		const struct block *call = &a->blocks[i];
		const struct block *result;

		if (call->kind != BLOCK_TOOL_CALL)
			continue;
		if (count_id(a, BLOCK_TOOL_CALL, call->id) > 1)
			return fail(err, a, i, "two tool calls with one id");
		if (!m)
			return fail(err, a, i, "a tool call without a result at the end");
		if (count_id(m, BLOCK_TOOL_RESULT, call->id) != 1)
			return fail(err, a, i, "a tool call without exactly one result after it");
		result = validate_find_result(m, call->id);
		if (call->partial && !result->is_error)
			return fail(err, a, i, "a cut tool call without an error result");
	}
	for (size_t i = 0; m && i < m->n_blocks; i++)
		if (m->blocks[i].kind == BLOCK_TOOL_RESULT &&
		    (!a || !count_id(a, BLOCK_TOOL_CALL, m->blocks[i].id)))
			return fail(err, m, i, "a tool result without its call before it");
	return 0;
}

/* Neighbours: `a` may be NULL at the start, `m` at the end. */
static int check_pair(const struct message *a, const struct message *m, struct err *err)
{
	bool paused = a && message_count(a, BLOCK_OPAQUE);

	if (m && m->role == MESSAGE_ASSISTANT) {
		if (!a)
			return fail(err, m, 0, "the first message is not the user's");
		if (a->role == MESSAGE_ASSISTANT && !paused)
			return fail(err, m, 0, "two assistant messages in a row");
	}
	if (!m && a && a->role == MESSAGE_ASSISTANT && !paused)
		return fail(err, a, 0, "the last message is the assistant's");
	return check_pairing(a && a->role == MESSAGE_ASSISTANT ? a : NULL,
			     m && m->role == MESSAGE_USER ? m : NULL, err);
}

/* Each message by itself, each with its predecessor, and the last one with nothing after it. The
 * end is checked anew each time, because what follows it is new each time. */
static int check_from(size_t from, struct message *const *view, size_t n, struct err *err)
{
	for (size_t i = from; i < n; i++) {
		if (check_message(view[i], err) < 0 ||
		    check_pair(i ? view[i - 1] : NULL, view[i], err) < 0)
			return -1;
	}
	if (!n)
		return err_set(err, ERR_INVALID,
			       "request is not well-formed: no message (this is a "
			       "bug of baton)");
	return check_pair(view[n - 1], NULL, err);
}

int validator_check(struct validator *validator, struct message *const *view, size_t n,
		    struct err *err)
{
	size_t from = validator->n;

	/* Another view (a rung changed it): nothing that passed before counts. */
	if (from > n || (from && view[from - 1]->uid != validator->last_uid))
		from = 0;
	if (check_from(from, view, n, err) < 0)
		return -1;
	validator->n = n;
	validator->last_uid = view[n - 1]->uid;
	return 0;
}

int validate_all(struct message *const *view, size_t n, struct err *err)
{
	return check_from(0, view, n, err);
}

/* The text keeps its origin, so that a repair does not turn a nudge into the user's words. */
static void copy_user_block(struct message *to, const struct block *b)
{
	struct block *added = NULL;

	if (b->kind == BLOCK_TOOL_RESULT)
		added = message_add_result(to, b->id, b->name, b->text, b->text_len, b->is_error);
	else if (b->kind == BLOCK_IMAGE)
		added = message_add_image(to, b->id, b->name, b->text, b->text_len);
	else
		added = message_add_text(to, b->origin, b->text, b->text_len);
	if (added)
		added->partial = b->partial;
}

static bool belongs_to_results(const struct block *b)
{
	return b->kind == BLOCK_TOOL_RESULT || (b->kind == BLOCK_IMAGE && b->id);
}

struct message *validate_close_calls(const struct message *assistant, const struct message *results,
				     const char *text)
{
	struct message *m = message_new(MESSAGE_USER);
	bool missing = false;

	for (size_t i = 0; results && i < results->n_blocks; i++)
		if (belongs_to_results(&results->blocks[i]))
			copy_user_block(m, &results->blocks[i]);
	for (size_t i = 0; i < assistant->n_blocks; i++) {
		const struct block *call = &assistant->blocks[i];

		if (call->kind != BLOCK_TOOL_CALL || validate_find_result(m, call->id))
			continue;
		message_add_result(m, call->id, call->name, text, strlen(text), true);
		missing = true;
	}
	for (size_t i = 0; results && i < results->n_blocks; i++)
		if (!belongs_to_results(&results->blocks[i]))
			copy_user_block(m, &results->blocks[i]);
	if (missing)
		return m;
	message_free(m);
	return NULL;
}
