/*
 * record.c - see record.h. A library of its own: the view and the parent link it, and it needs base/ alone.
 */
#include "orchestrator/record.h"

#include <string.h>

#include "base/jsonl.h"
#include "base/memory.h"

static const struct record_info records[] = {
#define RECORD_ROW(name, type, durability, fields) {type, SYNC_##durability, fields},
	RECORD_CATALOGUE(RECORD_ROW)
#undef RECORD_ROW
};

const struct record_info *record_info(enum record_type type)
{
	return &records[type];
}

enum record_type record_find(const char *type)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(records) && strcmp(records[i].type, type) != 0)
		i++;
	return (enum record_type)i;
}

void record_fold(const struct record_fold *fold, struct json_object *record, void *arg)
{
	enum record_type type = record_find(json_str(record, "type", ""));

	if (fold->each && !fold->each(record, arg))
		return;
	if (type != RECORD_TYPES && fold->on[type])
		fold->on[type](record, arg);
}

struct reading {
	const struct record_fold *fold;
	void *arg;
};

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct reading *r = arg;

	record_fold(r->fold, record, r->arg);
	return 0;
}

int journal_fold(const char *path, const struct record_fold *fold, void *arg,
		 struct jsonl_stats *ret_stats, struct err *err)
{
	struct reading r = {fold, arg};

	return jsonl_read(path, 0, RECORD_LINE_MAX, on_record, &r, ret_stats, err);
}

const char *record_room_made_by(struct json_object *data)
{
	static const struct {
		const char *trigger, *text;
	} rungs[] = {
		{"snip", "superseded rounds removed from the context"},
		{"clear", "old tool results cleared"},
		{"idle", "old tool results cleared after a pause"},
		{"collapse", "finished rounds shown as a snapshot"},
		{"decay", "old tool results shortened"},
	};
	const char *trigger = json_str(data, "trigger", "");

	for (size_t i = 0; i < ARRAY_SIZE(rungs); i++)
		if (strcmp(rungs[i].trigger, trigger) == 0)
			return rungs[i].text;
	return NULL;
}
