/*
 * recall_read.c - reads the transcripts of an agent's generations, passage by passage.
 *
 * The folder of the agent holds a folder for each generation, named by its number. What is opened is made of
 * the present folder's parent and a number, never of a name that somebody gave: no other agent's history
 * can be reached.
 */
#include "agent/tools/recall.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"

#define LINE_MAX_BYTES ((size_t)64 << 20) /* as transcript_load */

struct reading {
	struct recall_source *source;
	int64_t generation;
};

static bool want_line(const char *line, size_t n, void *arg)
{
	struct reading *r = arg;

	return !r->source->want || r->source->want(line, n, r->source->arg);
}

static int give_block(const struct reading *r, int64_t round, struct json_object *block)
{
	const char *kind = json_str(block, "kind", "");
	bool text = !strcmp(kind, "text"), call = !strcmp(kind, "tool_call");
	struct recall_passage p = {
		.generation = r->generation,
		.round = round,
		.kind = kind,
		.origin = json_str(block, "origin", "model"),
		.tool = text ? NULL : json_str(block, "name", ""),
		.call = text ? NULL : json_str(block, "id", ""),
		.text = json_str(block, "text", ""),
		.n = json_str_len(block, "text"),
		.is_error = json_flag(block, "is_error", false),
	};

	/* Thinking is not given: it belongs to its answer and to its provider. Nor are pictures. */
	if (!text && !call && strcmp(kind, "tool_result") != 0)
		return 0;
	return r->source->on_passage(&p, r->source->arg);
}

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	const struct reading *r = arg;
	struct json_object *blocks = json_arr(record, "blocks");
	int64_t round = json_i64(record, "round", 0);

	if (strcmp(json_str(record, "type", ""), "message") != 0)
		return 0;
	for (size_t i = 0; i < json_len(blocks); i++) {
		int rc = give_block(r, round, json_at(blocks, i));

		if (rc)
			return rc;
	}
	return 0;
}

/* A generation that never wrote has no transcript. */
static int read_one(struct recall_source *source, const char *folder, int64_t generation, bool *any,
		    struct err *err)
{
	AUTO_FREE char *path = file_join(folder, "transcript.jsonl");
	struct reading r = {.source = source, .generation = generation};
	struct jsonl_stats stats = {.bad_lines = 0};
	int rc;

	if (!file_exists(path))
		return 0;
	*any = true;
	rc = jsonl_search(path, LINE_MAX_BYTES, want_line, on_record, &r, &stats, err);
	source->bad_lines += stats.bad_lines;
	return rc;
}

int recall_read(struct recall_source *source, struct err *err)
{
	AUTO_FREE char *agent = file_dir(source->folder);
	int64_t own = source->own;
	bool any = false;

	for (int64_t g = source->generation ? source->generation : 1; g <= own; g++) {
		AUTO_FREE char *number = mem_printf("%" PRId64, g);
		AUTO_FREE char *folder =
			g == own ? mem_strdup(source->folder) : file_join(agent, number);
		int rc = read_one(source, folder, g, &any, err);

		if (rc)
			return rc;
		if (source->generation)
			break;
	}
	return any ? 0 : err_set(err, ERR_NOT_FOUND, "there is no such part of the history");
}
