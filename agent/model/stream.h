/*
 * stream.h - inside the model clients: what the shared part of the stream parsers and the parser of
 * each API know of each other.
 *
 * The shared part owns the event framing, the limit on what an answer may hold, errors that come
 * within the stream, usage and stop reason. An API's parser owns its blocks.
 */
#ifndef BATON_AGENT_MODEL_STREAM_H
#define BATON_AGENT_MODEL_STREAM_H

#include "agent/model/client.h"
#include "base/sse.h"

enum {
	ANSWER_MAX = 64 << 20, /* bytes of text, thinking, arguments and opaque parts */
	PARTS_MAX = 4096,      /* blocks or calls of one answer */
};

struct stream_ops {
	void *(*state_new)(void);
	void (*state_free)(void *state);
	/* One event's JSON object. -1 stops the stream. */
	int (*event)(struct stream_parser *p, const char *name, struct json_object *event,
		     struct err *err);
	/* Adds the blocks to m, those that are cut with `partial`. */
	void (*collect)(struct stream_parser *p, struct message *m);
};
extern const struct stream_ops anthropic_stream, openai_stream;

struct stream_parser {
	const struct stream_ops *ops;
	const char *provider, *model; /* of the client's model: borrowed */
	struct stream_events events;
	void *arg;
	struct sse_parser sse;
	void *state;
	size_t held; /* bytes taken into the answer */
	bool failed;
	enum stop_reason stop;
	bool ended; /* message_stop */
	struct model_usage usage;
	struct buf refusal;
	char *answer_id;
	bool dropped_blocks;
	int64_t cleared; /* by the provider (H2) */
	int64_t seed;	 /* for ids that the server does not give */
};

/* Counts n bytes against ANSWER_MAX. */
int stream_hold(struct stream_parser *p, size_t n, struct err *err);
/* STOP_NONE for NULL and "" (some servers send it with every chunk); STOP_END if unknown. */
enum stop_reason stream_stop_reason(const char *name);
/* Takes a stop reason. One that says "cut" stays: a proxy that repeats the end with a friendlier
 * reason must not make a cut call runnable (trap 37). */
void stream_take_stop(struct stream_parser *p, enum stop_reason stop);
/* The last block is not whole: cut by a limit, a filter or an error. */
bool stream_is_cut(enum stop_reason stop);
/* Adds a call: makes up an id if it has none or one that m has already, normalises the arguments,
 * sets `partial` where they are no object. */
struct block *stream_add_call(struct stream_parser *p, struct message *m, const char *id,
			      const char *name, const struct buf *arguments, const char *extra_raw);
void stream_tell_text(struct stream_parser *p, const char *text, size_t n);
void stream_tell_thinking(struct stream_parser *p, const char *text, size_t n);
void stream_tell_call(struct stream_parser *p, const char *name);
/* Replaces *field by obj[key] where that is a number: usage never adds up (trap 80). */
void stream_take_count(struct stream_parser *p, struct json_object *obj, const char *key,
		       int64_t *field);

#endif
