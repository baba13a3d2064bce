/*
 * record.h - records of a journal by their type, and the one way to read them.
 *
 * Whoever makes something of a journal (runs on disk, a run that goes on, the view, `baton context`) is a struct
 * record_fold: a handler for each type that says something to it. Types without a handler, and types that this baton
 * does not know, change nothing: an older baton shows what it understands of a newer one's run.
 */
#ifndef BATON_ORCHESTRATOR_RECORD_H
#define BATON_ORCHESTRATOR_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "orchestrator/record_types.h"

enum record_type {
#define RECORD_ENUM(name, type, durability, fields) RECORD_##name,
	RECORD_CATALOGUE(RECORD_ENUM)
#undef RECORD_ENUM
		RECORD_TYPES, /* their number; of a record: a type that is not in the catalogue */
};

enum record_sync { SYNC_EVENT, SYNC_DURABLE, SYNC_DURABLE_WITH_BUDGET };

struct record_info {
	const char *type;
	enum record_sync sync;
	const char *fields;
};

/* Longer lines are bad to every reader. No record comes near: the largest holds the body of a frame (32 MiB). */
#define RECORD_LINE_MAX ((size_t)64 << 20)

const struct record_info *record_info(enum record_type type);
enum record_type record_find(const char *type);

struct record_fold {
	/* Before the handlers, for all records, unknown ones too; false: this one is passed over. NULL: none. */
	bool (*each)(struct json_object *record, void *arg);
	void (*on[RECORD_TYPES])(struct json_object *record, void *arg);
};

void record_fold(const struct record_fold *fold, struct json_object *record, void *arg);

/* Of the data of agent.compact: what a rung of the ladder did that needs no summary (H0 to H3), for people. NULL: a summary
 * was made, or facts in its place. */
const char *record_room_made_by(struct json_object *data);

struct jsonl_stats;
/* All records of the file in their order. -1: it could not be read (to its end). ret_stats may be NULL. */
int journal_fold(const char *path, const struct record_fold *fold, void *arg,
		 struct jsonl_stats *ret_stats, struct err *err);

#endif
