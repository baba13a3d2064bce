/*
 * transcript.c - writes the records.
 *
 * base/jsonl.h gives the durability; this file gives the records their members. One writer per
 * file: the agent itself. Reading is in transcript_load.c, which never writes.
 */
#include "agent/transcript.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define NAME "transcript.jsonl"

struct transcript {
	struct jsonl_writer *writer;
	char *path;
	int64_t records;
	struct jsonl_writer *ahead; /* transcript_follow; NULL: none */
	bool ahead_unsynced;	    /* it was written and not synced since */
};

/* GENERATION, AGENT, agents, RUN: the parent made the first three for this agent, and leaves it to
 * the first sync here to make the way to this file durable. */
#define FOLDERS_ABOVE 3

static void sync_way(struct transcript *t)
{
	AUTO_FREE char *at = file_dir(t->path);

	for (int i = 0; i < FOLDERS_ABOVE; i++) {
		char *above = file_dir(at);

		file_syncs_add(jsonl_syncs(t->writer), above);
		free(at);
		at = above;
	}
}

int transcript_open(const char *folder, struct transcript **ret, struct err *err)
{
	AUTO_FREE char *path = file_join(folder, NAME);
	struct jsonl_writer *writer = NULL;
	struct transcript *t;

	if (jsonl_open(path, &writer, err) < 0)
		return -1;
	t = mem_alloc(sizeof(*t));
	t->writer = writer;
	t->path = take_ptr(path);
	sync_way(t);
	*ret = t;
	return 0;
}

void transcript_close(struct transcript *t)
{
	if (!t)
		return;
	jsonl_close(t->writer);
	free(t->path);
	free(t);
}

/* Small records are written as text; only messages pass through a tree. */
static struct buf *begin(struct transcript *t, const char *type)
{
	t->records++;
	return jsonl_begin(t->writer, type);
}

static void add_str(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, ",\"%s\":", key);
	json_write_cstr(out, value ? value : "");
}

static void add_i64(struct buf *out, const char *key, int64_t value)
{
	buf_addf(out, ",\"%s\":%" PRId64, key, value);
}

void transcript_start(struct transcript *t, const struct agent_settings *settings)
{
	struct buf *out = begin(t, "start");

	add_i64(out, "version", TRANSCRIPT_VERSION);
	add_str(out, "run", settings->run);
	add_str(out, "agent", settings->agent);
	add_i64(out, "generation", settings->generation);
	add_str(out, "role", settings->role);
	add_str(out, "provider", settings->model->provider);
	add_str(out, "model", settings->model->name);
	if (settings->fork_call && settings->generation == 1)
		add_str(out, "fork_of", settings->fork_agent);
	jsonl_end(t->writer);
}

void transcript_resume(struct transcript *t, const struct transcript_resume *resume,
		       const struct model *model)
{
	struct buf *out = begin(t, "resume");

	add_i64(out, "idle_ms", resume->idle_ms);
	add_i64(out, "repaired", resume->repaired);
	add_i64(out, "bad_lines", resume->bad_lines);
	add_str(out, "provider", model->provider);
	add_str(out, "model", model->name);
	jsonl_end(t->writer);
}

void transcript_message(struct transcript *t, const struct message *m)
{
	AUTO_JSON struct json_object *json = message_to_json(m);

	t->records++;
	jsonl_add(t->writer, "message", json);
}

/* I5, trap 142: a call with this record and without a result has an unknown outcome, and is never
 * run again silently. */
void transcript_tools_started(struct transcript *t, const struct message *m)
{
	for (size_t i = 0; i < m->n_blocks; i++) {
		struct buf *out;

		if (m->blocks[i].kind != BLOCK_TOOL_CALL)
			continue;
		out = begin(t, "tool_started");
		add_i64(out, "round", m->round);
		add_str(out, "call", m->blocks[i].id);
		add_str(out, "tool", m->blocks[i].name);
		jsonl_end(t->writer);
	}
}

void transcript_result_file(struct transcript *t, int64_t round, const char *call, const char *file,
			    size_t bytes)
{
	struct buf *out = begin(t, "tool_result");

	add_i64(out, "round", round);
	add_str(out, "call", call);
	add_str(out, "file", file);
	add_i64(out, "bytes", (int64_t)bytes);
	jsonl_end(t->writer);
}

void transcript_tool_ended(struct transcript *t, const struct transcript_tool *tool)
{
	struct buf *out = begin(t, "tool_ended");

	add_i64(out, "round", tool->round);
	add_str(out, "call", tool->call);
	add_str(out, "tool", tool->tool);
	buf_addf(out, ",\"ok\":%s", tool->ok ? "true" : "false");
	if (tool->exit_code >= 0)
		add_i64(out, "exit", tool->exit_code);
	if (tool->file)
		add_str(out, "file", tool->file);
	jsonl_end(t->writer);
}

void transcript_usage(struct transcript *t, int64_t round, const struct model_usage *usage,
		      const struct ledger *ledger)
{
	struct buf *out = begin(t, "usage");

	add_i64(out, "round", round);
	add_i64(out, "input", usage->input);
	add_i64(out, "cache_read", usage->cache_read);
	add_i64(out, "cache_write", usage->cache_write);
	add_i64(out, "output", usage->output);
	add_i64(out, "thinking", usage->thinking);
	buf_addf(out, ",\"known\":%s", usage->known ? "true" : "false");
	add_i64(out, "used", ledger_used(ledger));
	ledger_write_shares(ledger, out);
	jsonl_end(t->writer);
}

/* With the budget's figures of that moment: the only way to see later why a limit was hit. */
void transcript_request(struct transcript *t, const struct transcript_request *request,
			const struct window_budget *budget, const struct ledger *ledger)
{
	struct buf *out = begin(t, "request");
	struct budget_row rows[BUDGET_ROWS_MAX];
	size_t n;

	add_i64(out, "round", request->round);
	add_i64(out, "bytes", (int64_t)request->bytes);
	add_i64(out, "messages", (int64_t)request->messages);
	add_i64(out, "used", request->used);
	add_i64(out, "max_tokens", request->max_tokens);
	n = budget_rows(budget, rows, ARRAY_SIZE(rows));
	for (size_t i = 0; i < n; i++)
		add_i64(out, rows[i].name, rows[i].tokens);
	ledger_write(ledger, budget, request->max_tokens, out);
	jsonl_end(t->writer);
}

void transcript_boundary(struct transcript *t, const struct transcript_boundary *b)
{
	struct buf *out = begin(t, "system");

	add_str(out, "subtype", "compact_boundary");
	add_str(out, "content", b->content);
	buf_adds(out, ",\"compactMetadata\":{\"trigger\":");
	json_write_cstr(out, b->trigger);
	add_i64(out, "preTokens", b->pre_tokens);
	add_i64(out, "postTokens", b->post_tokens);
	buf_addf(out,
		 ",\"preservedSegment\":{\"headUuid\":\"%" PRIu64 "\",\"anchorUuid\":\"%" PRIu64
		 "\",\"tailUuid\":\"%" PRIu64 "\"}}",
		 b->head, b->anchor, b->tail);
	jsonl_end(t->writer);
}

void transcript_undone(struct transcript *t)
{
	struct buf *out = begin(t, "system");

	add_str(out, "subtype", "compact_undone");
	jsonl_end(t->writer);
}

void transcript_edit(struct transcript *t, struct json_object *edit)
{
	t->records++;
	jsonl_add(t->writer, "system", edit);
}

void transcript_end(struct transcript *t, const char *status, const char *reason)
{
	struct buf *out = begin(t, "end");

	add_str(out, "status", status);
	add_str(out, "reason", reason);
	jsonl_end(t->writer);
}

void transcript_follow(struct transcript *t, struct jsonl_writer *ahead)
{
	t->ahead = ahead;
}

/* What it holds changes seldom: most rounds cost it no system call. */
static int bring_out_ahead(struct transcript *t, bool durable, struct err *err)
{
	if (!t->ahead)
		return 0;
	t->ahead_unsynced |= jsonl_pending(t->ahead);
	if (!jsonl_pending(t->ahead) && !(durable && t->ahead_unsynced))
		return 0;
	if (jsonl_flush(t->ahead, durable, err) < 0)
		return -1;
	t->ahead_unsynced &= !durable;
	return 0;
}

static int bring_out(struct transcript *t, bool durable, struct err *err)
{
	struct err e = ERR_INIT;

	if (bring_out_ahead(t, durable, &e) < 0) {
		if (err)
			*err = e;
		return err_prefix(err, "beside '%s'", t->path);
	}

	/* Nothing new needs no sync: what was flushed before was synced by that flush. */
	if (!jsonl_pending(t->writer) || jsonl_flush(t->writer, durable, &e) == 0)
		return 0;
	if (err)
		*err = e;
	return e.code == ERR_NO_SPACE ? err_prefix(err, "no space on '%s'", t->path) : -1;
}

int transcript_sync(struct transcript *t, struct err *err)
{
	return bring_out(t, true, err);
}

int transcript_write(struct transcript *t, struct err *err)
{
	return bring_out(t, false, err);
}

int64_t transcript_records(const struct transcript *t)
{
	return t->records;
}

int64_t transcript_bytes(const struct transcript *t)
{
	return jsonl_offset(t->writer);
}
