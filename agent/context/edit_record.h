/*
 * edit_record.h - how a rewrite of a view stands in the transcript, and the view made again from it.
 *
 * Messages are in the transcript for good; what the model saw of them at a moment follows from the edits
 * between them. A resume that does not know them would send what was snipped or collapsed long ago, and
 * break the cache a second time. One record an epoch's end:
 *
 *   system {subtype: "context_edit", rung, epoch, undo (absent: false), edits: [
 *       {"from": UID, "to": UID}                          these messages of the view (both included) went
 *       {"from": UID, "to": UID, "message": {...}}        they gave way to this one
 *       {"before": UID, "message": {...}}                 it was put in front of that one (absent: at the end)
 *   ]}
 *
 * With `undo` the view first becomes what it was before the last edit of rung "compact", with what the
 * conversation got since behind it. A message is as in its own record (transcript.h), but that a block may be {"block": K}: the K-th block of
 * the message at `from`, unchanged. Uids are numbers; those of new messages are the view's own.
 */
#ifndef BATON_AGENT_CONTEXT_EDIT_RECORD_H
#define BATON_AGENT_CONTEXT_EDIT_RECORD_H

#include "agent/context/epoch.h"

struct transcript;

/* Before the view changes; the new messages have their uids. Fills the transcript's batch only. */
void edit_record_write(const struct epoch_edit *edit, struct transcript *transcript);

/* Does again what such a record says. ERR_INVALID, and the view is as it was, if it is not about this
 * view. Nothing is recorded and no ledger is kept: whoever resumes counts all of it anew. */
int edit_record_apply(struct json_object *record, struct view *view,
		      struct conversation *conversation, struct err *err);

/* The view at the end of a transcript whose conversation transcript_load gave. Records that do not fit (a
 * part of the file was lost) are left out and counted: what is in the view then is more, never less. */
int edit_record_rebuild(const char *path, struct conversation *conversation, struct view *view,
			size_t *ret_left_out, struct err *err);

#endif
