/*
 * render.h - inside the model clients: what the shared part and the two renderers know of each
 * other.
 *
 * A renderer turns one neutral message into bytes; client.c puts requests together from them. The
 * bytes of a message depend on the message and on the client's model only, never on the messages
 * around it: that is what makes a request grow only at its end (W11).
 */
#ifndef BATON_AGENT_MODEL_RENDER_H
#define BATON_AGENT_MODEL_RENDER_H

#include "agent/model/client.h"
#include "agent/model/dialect.h"

enum { MARKED_UIDS = 8 };

struct render_ops {
	/* The head up to and with "messages":[ and, in the OpenAI form, the system message. */
	int (*head)(struct model_client *c, const struct request_params *params, struct buf *out,
		    struct err *err);
	/* Bytes of the message, nothing if there is nothing to send. Sets *splice. */
	void (*message)(const struct model_client *c, const struct message *m, struct buf *out,
			size_t *splice);
	/* From behind the last message to the closing brace. */
	void (*tail)(const struct model_client *c, int64_t max_tokens, struct buf *out);
};
extern const struct render_ops anthropic_render, openai_render;

struct model_client {
	const struct model *model; /* borrowed */
	const struct dialect *dialect;
	const struct render_ops *ops;
	struct buf head;
	struct buf edits;      /* ,"context_management":{...}; empty: not sent */
	bool head_has_message; /* the OpenAI system message: a comma follows */
	bool has_tools;
	char *effort;
	int64_t thinking_budget;
	double temperature;
	/* uids of the messages that carried the marker of a request's end, newest last */
	uint64_t marked[MARKED_UIDS];
	size_t n_marked;
};

#define CACHE_MARK    ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define CACHE_MARK_1H ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"

#define IMAGE_OMITTED "[image left out: this model takes none]"

/* Opaque parts go back to the provider that made them only. */
bool render_is_own(const struct model_client *c, const struct message *m);
/* A tool name as both APIs take it: a name that the model made up must not be a 400 for ever. */
void render_tool_name(struct buf *out, const char *name);
/* The arguments of a call as JSON text of an object; {} for a cut call. */
void render_arguments(struct buf *out, const struct block *call);
/* Appends `,"key":value` for the members of the JSON object `raw`, those named in skip left out. */
void render_members(struct buf *out, const char *raw, const char *const *skip);
/* The text of a result as a JSON string; a blank one is named, since an empty content is refused
 * (trap 30), and so is each image that this model cannot take. */
void render_result_text(struct buf *out, const struct block *result, size_t omitted_images);
bool render_is_image_of(const struct block *image, const struct block *result);
/* The input schema of a tool, compact; -1 if it is no JSON object. */
int render_schema(struct buf *out, const struct tool_spec *tool, struct err *err);

/* anthropic_render.c: the context_management member by the parameters (wire.md 1.9). */
void anthropic_write_edits(const struct request_params *params, struct buf *out);

/* Does the request's neighbour need an assistant message before it (dialect)? openai_render.c */
bool openai_ends_with_tool(const struct message *m);
bool openai_starts_with_user(const struct message *m);
#define OPENAI_BRIDGE "{\"role\":\"assistant\",\"content\":\"Understood.\"}"

/* cache_marks.c: up to two places for markers within the messages, in order. */
struct cache_mark {
	size_t message; /* index into the view */
	size_t offset;	/* in its rendered bytes */
};
size_t cache_marks_place(struct model_client *c, struct message *const *view, size_t n, long pinned,
			 struct cache_mark ret[2]);

#endif
