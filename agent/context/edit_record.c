/*
 * edit_record.c - writes and reads the records of rewritten views.
 *
 * A copy mostly differs from its message by one block, and dropping bound thinking makes a copy of every
 * answer: so unchanged blocks are named by their place instead of being written a second time. Which
 * they are is found by comparing, not told by the rungs: a rung that forgot to tell would be a record
 * that lies.
 */
#include "agent/context/edit_record.h"

#include <inttypes.h>

#include "agent/transcript.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

/* ---- writing ---- */

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_block(const struct block *a, const struct block *b)
{
	return a->kind == b->kind && a->origin == b->origin && a->text_len == b->text_len &&
	       a->is_error == b->is_error && a->partial == b->partial && same(a->id, b->id) &&
	       same(a->name, b->name) && same(a->raw, b->raw) &&
	       (!a->text_len || !memcmp(a->text, b->text, a->text_len));
}

/* Blocks keep their order: each is sought behind the one that was found before. */
static void name_kept_blocks(struct json_object *message, const struct message *with,
			     const struct message *old)
{
	struct json_object *blocks = json_arr(message, "blocks");
	size_t at = 0;

	for (size_t i = 0; i < with->n_blocks; i++) {
		size_t k = at;

		while (k < old->n_blocks && !same_block(&old->blocks[k], &with->blocks[i]))
			k++;
		if (k == old->n_blocks)
			continue;
		struct json_object *place = json_object_new_object();

		json_set_i64(place, "block", (int64_t)k);
		json_object_array_put_idx(blocks, i, place);
		at = k + 1;
	}
}

static void set_uid(struct json_object *o, const char *key, uint64_t uid)
{
	json_set(o, key, json_object_new_uint64(uid));
}

static struct json_object *change_json(const struct epoch_change *c, const struct view *view)
{
	struct json_object *o = json_object_new_object(), *message;

	if (c->from < c->to) {
		set_uid(o, "from", view->list[c->from]->uid);
		set_uid(o, "to", view->list[c->to - 1]->uid);
	} else if (c->from < view->n) {
		set_uid(o, "before", view->list[c->from]->uid);
	}
	if (!c->with)
		return o;
	message = message_to_json(c->with);
	if (c->from < c->to)
		name_kept_blocks(message, c->with, view->list[c->from]);
	json_set(o, "message", message);
	return o;
}

void edit_record_write(const struct epoch_edit *edit, struct transcript *transcript)
{
	AUTO_JSON struct json_object *record = json_object_new_object();
	struct json_object *edits = json_object_new_array();

	json_set_str(record, "subtype", "context_edit");
	json_set_str(record, "rung", edit->rung);
	json_set_i64(record, "epoch", edit->view->epoch + 1);
	if (edit->undo)
		json_set_bool(record, "undo", true);
	for (size_t i = 0; i < edit->n; i++)
		json_object_array_add(edits, change_json(&edit->changes[i], edit->view));
	json_set(record, "edits", edits);
	transcript_edit(transcript, record);
}

/* ---- reading ---- */

/* Searches on from `at`: edits stand in the view's order. view->n if it is not there. */
static size_t find_uid(const struct view *view, size_t at, int64_t uid)
{
	while (at < view->n && view->list[at]->uid != (uint64_t)uid)
		at++;
	return at;
}

/* The blocks that are named by their place become whole again; the rest is message_from_json's. */
static int read_message(struct json_object *json, const struct message *old, struct message **ret,
			struct err *err)
{
	struct json_object *blocks = json_arr(json, "blocks");
	AUTO_JSON struct json_object *whole = old ? message_to_json(old) : NULL;

	for (size_t i = 0; i < json_len(blocks); i++) {
		struct json_object *b = json_at(blocks, i), *kept;

		if (!json_has(b, "block"))
			continue;
		kept = json_at(json_arr(whole, "blocks"), (size_t)json_i64(b, "block", -1));
		if (!kept)
			return err_set(err, ERR_INVALID, "an edit names a block that is not there");
		json_object_array_put_idx(blocks, i, json_object_get(kept));
	}
	return message_from_json(json, ret, err);
}

/* 0, or ERR_INVALID: the edit is about another view. */
static int read_change(struct json_object *o, const struct view *view, size_t *at,
		       struct epoch_change *ret, struct err *err)
{
	struct epoch_change c = {.with = NULL};
	bool replaces = json_has(o, "from");
	int64_t first = json_i64(o, replaces ? "from" : "before", -1);

	c.from = first < 0 ? view->n : find_uid(view, *at, first);
	c.to = replaces ? find_uid(view, c.from, json_i64(o, "to", -1)) + 1 : c.from;
	if ((first >= 0 && c.from == view->n) || c.to > view->n)
		return err_set(err, ERR_INVALID, "an edit of messages that are not in the view");
	if (json_obj(o, "message") &&
	    read_message(json_obj(o, "message"), replaces ? view->list[c.from] : NULL, &c.with,
			 err) < 0)
		return -1;
	*at = c.to;
	*ret = c;
	return 0;
}

static void put_changes(const struct epoch_edit *edit)
{
	struct view *view = edit->view;
	size_t at = 0, n = 0, cap = view->n + edit->n;
	struct message **list = mem_array(NULL, cap + 1, sizeof(*list));

	for (size_t i = 0; i < edit->n; i++) {
		const struct epoch_change *c = &edit->changes[i];

		while (at < c->from)
			list[n++] = view->list[at++];
		at = c->to;
		if (!c->with)
			continue;
		c->with->until = epoch_position(view, c);
		view_own(view, c->with);
		list[n++] = c->with;
		edit->conversation->next_uid = MAX(edit->conversation->next_uid, c->with->uid + 1);
	}
	while (at < view->n)
		list[n++] = view->list[at++];
	free(view->list);
	view->list = list;
	view->n = n;
	view->cap = cap + 1;
}

int edit_record_apply(struct json_object *record, struct view *view,
		      struct conversation *conversation, struct err *err)
{
	struct json_object *edits = json_arr(record, "edits");
	struct epoch_edit edit;
	size_t at = 0;

	epoch_begin(&edit, "resume", view, NULL, conversation, false);
	for (size_t i = 0; i < json_len(edits); i++) {
		struct epoch_change c = {.with = NULL};

		if (read_change(json_at(edits, i), view, &at, &c, err) < 0) {
			epoch_drop(&edit);
			return -1;
		}
		epoch_change(&edit, c.from, c.to, c.with);
	}
	put_changes(&edit);
	view->epoch = json_i64(record, "epoch", view->epoch + 1);
	view->broken = edit.n ? edit.changes[0].from : 0;
	free(edit.changes);
	return 0;
}

/* ---- a whole transcript ---- */

struct rebuild {
	struct conversation *conversation;
	struct view *view;
	size_t left_out;
	struct message **before; /* the view before the last compaction, for an undo */
	size_t n_before, taken_before;
};

/* The conversation as far as it was when the record was written. */
static void follow(struct rebuild *r, uint64_t uid)
{
	const struct conversation *c = r->conversation;
	struct conversation part = *c;

	part.n = r->view->taken;
	while (part.n < c->n && c->messages[part.n]->uid <= uid)
		part.n++;
	view_sync(r->view, &part);
}

static void keep(struct rebuild *r)
{
	free(r->before);
	r->before = mem_dup(r->view->list, r->view->n * sizeof(*r->before));
	r->n_before = r->view->n;
	r->taken_before = r->view->taken;
}

static void undo(struct rebuild *r)
{
	struct view *view = r->view;
	struct conversation part = *r->conversation;

	part.n = view->taken;
	MEM_GROW(view->list, view->cap, r->n_before + 1);
	memcpy(view->list, r->before, r->n_before * sizeof(*r->before));
	view->n = r->n_before;
	view->taken = r->taken_before;
	view_sync(view, &part);
}

static void take_edit(struct rebuild *r, struct json_object *record)
{
	if (json_flag(record, "undo", false) && r->before)
		undo(r);
	else if (!strcmp(json_str(record, "rung", ""), "compact"))
		keep(r);
	r->left_out += edit_record_apply(record, r->view, r->conversation, NULL) < 0;
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct rebuild *r = arg;
	const char *type = json_str(record, "type", "");

	if (!strcmp(type, "message"))
		follow(r, (uint64_t)json_i64(record, "uid", 0));
	else if (!strcmp(type, "system") &&
		 !strcmp(json_str(record, "subtype", ""), "context_edit"))
		take_edit(r, record);
	return 0;
}

int edit_record_rebuild(const char *path, struct conversation *conversation, struct view *view,
			size_t *ret_left_out, struct err *err)
{
	struct rebuild r = {.conversation = conversation, .view = view};
	struct jsonl_stats stats = {.records = 0};

	int rc = jsonl_read(path, 0, LINE_MAX_BYTES, on_record, &r, &stats, err);

	free(r.before);
	if (rc < 0)
		return -1;
	view_sync(view, conversation);
	*ret_left_out = r.left_out;
	return 0;
}
