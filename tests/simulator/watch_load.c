/*
 * watch_load.c - the transcript of a session, read back by the product's loader (H12).
 */
#include "agent/transcript.h"
#include "agent/validate.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/memory.h"
#include "mutants.h"
#include "session.h"

/* What the file itself says, read record by record. */
struct records {
	int64_t messages, boundaries;
	uint64_t last_uid;
	bool bad_boundary; /* one that names messages which the file does not hold */
	struct session *session;
};

static int on_record(struct json_object *record, int64_t offset, void *arg)
{
	struct records *r = arg;
	const char *type = json_str(record, "type", "");
	struct json_object *segment;

	if (!strcmp(type, "message")) {
		r->messages++;
		r->last_uid = (uint64_t)json_i64(record, "uid", 0);
	} else if (!strcmp(type, "system") &&
		   !strcmp(json_str(record, "subtype", ""), "compact_boundary")) {
		segment = json_obj(json_obj(record, "compactMetadata"), "preservedSegment");
		r->boundaries++;
		for (int i = 0; i < 3; i++) {
			static const char *const keys[] = {"headUuid", "anchorUuid", "tailUuid"};

			r->bad_boundary |= !*json_str(segment, keys[i], "");
		}
	}
	return 0;
}

void watch_load(struct session *s)
{
	AUTO_FREE char *path = file_join(s->folder, "generation/transcript.jsonl");
	struct records records = {.session = s};
	struct jsonl_stats lines;
	struct transcript_stats stats;
	struct conversation c;
	struct err e = ERR_INIT;

	s->tallies->count[TALLY_LOADS]++;
	if (s->mutant && s->mutant->transcript)
		s->mutant->transcript(s, path);
	if (jsonl_read(path, 0, (size_t)64 << 20, on_record, &records, &lines, &e) < 0) {
		watch_fail(s, "H12", "the transcript cannot be read: %s", e.message);
		return;
	}
	if (lines.bad_lines)
		watch_fail(s, "H12", "%lld lines are not whole", (long long)lines.bad_lines);
	if (records.boundaries != s->watch.all_compactions)
		watch_fail(s, "H12", "%lld boundaries of %lld compactions are in the transcript",
			   (long long)records.boundaries, (long long)s->watch.all_compactions);
	if (records.bad_boundary)
		watch_fail(s, "H12", "a boundary does not say what it preserved");
	if (records.messages != (int64_t)s->agent.conversation.n)
		watch_fail(s, "H12", "%lld of %zu messages are in the transcript",
			   (long long)records.messages, s->agent.conversation.n);
	conversation_init(&c);
	if (transcript_load(path, &c, &stats, &e) < 0) {
		watch_fail(s, "H12", "the loader fails: %s", e.message);
		return;
	}
	/* An answer at the end is what a user message follows (transcript.h). */
	if (conversation_last(&c)->role == MESSAGE_ASSISTANT) {
		struct message *m = message_new(MESSAGE_USER);

		message_add_text(m, ORIGIN_NUDGE, "Go on.", 6);
		conversation_append(&c, m);
	}
	if (validate_all(c.messages, c.n, &e) < 0)
		watch_fail(s, "H12", "what was loaded is no valid request: %s", e.message);
	conversation_release(&c);
}
