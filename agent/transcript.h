/*
 * transcript.h - transcript.jsonl of one generation: what the agent knows, durable before its
 * effects.
 *
 * Records (beside t and type); the form of a message is message_to_json's:
 *   start         {version, run, agent, generation, role, provider, model, fork_of}  (fork_of: what precedes it was taken
 *                 over from that agent, A2)
 *   message       {role, round, uid, blocks, ...}
 *   tool_started  {round, call, tool}          with the message that holds the call, in one write
 *   tool_result   {round, call, file, bytes}   where all of a shortened result is
 *   usage         {round, input, cache_read, cache_write, output, thinking, known, used, by: {...}, results_by_tool}
 *   request       {round, bytes, messages, used, max_tokens, all of budget_rows, by: {...}, results_by_tool}
 *   system        {subtype: "compact_boundary", content, compactMetadata: {trigger, preTokens, postTokens,
 *                 preservedSegment: {headUuid, anchorUuid, tailUuid}}} (H12; uids as strings)
 *   system        {subtype: "compact_undone"}: the last boundary does not hold any more
 *   system        {subtype: "context_edit", rung, epoch, edits: [...]}: the view was rewritten; which of its
 *                 messages went, and what stands in their place (context/edit_record.h)
 *   tool_ended    {round, call, tool, ok, exit, file}  a call with effects that ended; not synced: it tells a resumed
 *                 generation more than that the outcome is unknown
 *   resume        {idle_ms, repaired, bad_lines}  what follows is the work of another process (R6)
 *   end           {status, reason}
 *
 * Writing functions only fill the batch; transcript_sync brings it out in one write and one
 * fdatasync (I5): once before tools run, once before the next request.
 */
#ifndef BATON_AGENT_TRANSCRIPT_H
#define BATON_AGENT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/conversation.h"
#include "agent/ledger.h"
#include "base/err.h"

#define TRANSCRIPT_VERSION 1

struct transcript;

/* Opens FOLDER/transcript.jsonl for append. Caller closes. */
int transcript_open(const char *folder, struct transcript **ret, struct err *err);
void transcript_close(struct transcript *t); /* NULL allowed */

void transcript_start(struct transcript *t, const struct agent_settings *settings);
/* R6: in the place of a start. */
struct transcript_resume {
	int64_t idle_ms; /* since the last record before */
	int64_t repaired, bad_lines;
};
void transcript_resume(struct transcript *t, const struct transcript_resume *resume,
		       const struct model *model);
void transcript_message(struct transcript *t, const struct message *m);
/* One tool_started for each call of the message. */
void transcript_tools_started(struct transcript *t, const struct message *m);
void transcript_result_file(struct transcript *t, int64_t round, const char *call, const char *file,
			    size_t bytes);
struct transcript_tool { /* exit_code -1: none; file NULL: none */
	int64_t round;
	const char *call, *tool, *file;
	bool ok;
	int exit_code;
};
void transcript_tool_ended(struct transcript *t, const struct transcript_tool *tool);
/* Right after ledger_answer: how the usage divides among the categories (W5) goes with it. */
void transcript_usage(struct transcript *t, int64_t round, const struct model_usage *usage,
		      const struct ledger *ledger);

struct transcript_request {
	int64_t round;
	size_t bytes, messages;
	int64_t used, max_tokens;
};
void transcript_request(struct transcript *t, const struct transcript_request *request,
			const struct window_budget *budget, const struct ledger *ledger);
struct transcript_boundary { /* H12 */
	const char *trigger, *content;
	int64_t pre_tokens, post_tokens;
	uint64_t head, anchor, tail; /* uids: first kept, opening, last kept */
};
void transcript_boundary(struct transcript *t, const struct transcript_boundary *boundary);
/* The last boundary does not hold any more. */
void transcript_undone(struct transcript *t);
/* An epoch's end, as context/edit_record.h makes it; borrowed. */
struct json_object;
void transcript_edit(struct transcript *t, struct json_object *edit);
void transcript_end(struct transcript *t, const char *status, const char *reason);

/* All records so far are on disk afterwards. A full disk is ERR_NO_SPACE, "no space on PATH" (trap
 * 144): no half record is left behind. */
int transcript_sync(struct transcript *t, struct err *err);
/* Without the sync: for what precedes the first request, all of which the run's journal holds. */
int transcript_write(struct transcript *t, struct err *err);
/* A file whose records are to be on disk before those of the transcript: each sync and each write
 * brings it out first. Borrowed until the transcript is closed. */
struct jsonl_writer;
void transcript_follow(struct transcript *t, struct jsonl_writer *ahead);
int64_t transcript_records(const struct transcript *t);
int64_t transcript_bytes(const struct transcript *t);

struct transcript_stats {
	int64_t records;
	int64_t bad_lines, first_bad_line; /* isolated and skipped (trap 138) */
	int64_t repaired; /* results made up for calls without one, messages left out or put between
			   */
};

/* As transcript_load, but that the calls of a last answer which nothing answers stay open: then *ret_open, and
 * the caller answers them. */
int transcript_load_open(const char *path, struct conversation *conversation,
			 struct transcript_stats *ret_stats, bool *ret_open, struct err *err);

/* Rebuilds a conversation that passes the validator (where it ends with an answer: once a user
 * message follows), whatever the file holds: a call without result gets an error result that says
 * that its outcome is unknown (trap 142), a result without its call is dropped. `conversation` must
 * be empty. ERR_NOT_FOUND, ERR_IO; ERR_INVALID if no message is left. */
int transcript_load(const char *path, struct conversation *conversation,
		    struct transcript_stats *ret_stats, struct err *err);

#endif
