/*
 * message.h - one message of a conversation in a form that knows no provider.
 *
 * Content that a provider must get back unchanged (thinking, signatures, unknown blocks, unknown
 * fields of calls) is kept as the raw JSON that came, in order (wire.md 1.6, 4 rule 6). Text is
 * valid UTF-8 before it gets here. A message is immutable once it is in a conversation.
 */
#ifndef BATON_AGENT_MESSAGE_H
#define BATON_AGENT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum message_role { MESSAGE_USER, MESSAGE_ASSISTANT };

enum block_kind {
	BLOCK_TEXT,	/* text */
	BLOCK_THINKING, /* raw: Anthropic thinking or redacted_thinking block; OpenAI: the reasoning
			   text is `text`, its field name is `name`, details raw in `raw` */
	BLOCK_TOOL_CALL,   /* id, name, text = arguments as a JSON object in text form; raw = extra
			      fields   of the call as a JSON object, or NULL */
	BLOCK_TOOL_RESULT, /* id = the call's id, name = the tool, text, is_error */
	BLOCK_IMAGE,  /* name = media type, text = base64; in a user message, or right after the
			 BLOCK_TOOL_RESULT to which it belongs (then id = the call's id) */
	BLOCK_OPAQUE, /* raw: echoed to the same provider only */
};

/* What a text came from, for the ledger's categories (W5). */
enum block_origin {
	ORIGIN_MODEL,
	ORIGIN_USER,	     /* the user's own words (X2) */
	ORIGIN_TASK,	     /* the delegating agent's or the command's task text */
	ORIGIN_INSTRUCTIONS, /* AGENTS.md and rules */
	ORIGIN_ENVIRONMENT,  /* root, branch, date: what differs between agents */
	ORIGIN_TOOL,
	ORIGIN_NUDGE,	   /* written by baton: budget notes, empty-turn nudges, job ends */
	ORIGIN_SUMMARY,	   /* of what was compacted away: the model's words, never the user's */
	ORIGIN_ATTACHMENT, /* put back after a compaction, or by a hook: files, jobs (H13) */
	ORIGIN_HOOK,	   /* what a hook printed (M6): data */
	ORIGIN_MEMORY,	   /* the model's own notes, plan and working memory (H4, H18) */
	ORIGIN_HANDOFF,	   /* the document from which this generation began (R1) */
	ORIGIN_EVALUATOR,  /* an evaluator's critique (A8): a speaker like the task's */
};

struct block {
	enum block_kind kind;
	enum block_origin origin;
	char *id, *name;
	char *text;
	size_t text_len; /* bytes; text also has a NUL behind them */
	char *raw;
	bool is_error;
	bool partial;	  /* cut by max_tokens or a broken stream */
	int64_t estimate; /* tokens, by the ledger; 0 before */
};

struct message {
	enum message_role role;
	struct block *blocks;
	size_t n_blocks, cap_blocks;
	char *provider; /* of an assistant message: opaque parts go back to it only; NULL else */
	char *model;
	int64_t round; /* 0 for the opening messages */
	uint64_t uid;  /* position in the transcript, unique in the conversation */
	uint64_t
		until; /* of a message that stands in a view only: the uid of the newest message of the
			   conversation that it stands for; 0: of none */
	char *rendered; /* the bytes of this message in the request, made once (I4); NULL before */
	size_t rendered_len;
	size_t splice;	  /* where ,"cache_control":{...} may be inserted; (size_t)-1 if nowhere */
	int64_t estimate; /* tokens, by the ledger; 0 before */
	bool marked;	  /* by view_sweep, for a moment */
};

struct message *message_new(enum message_role role);
/* Where it stands in the conversation, also of a copy or a summary: never falls along a view. */
static inline uint64_t message_position(const struct message *m)
{
	return m->until ? m->until : m->uid;
}
void message_free(struct message *message); /* NULL allowed */
/* It is not sent any more. If it ever is again, it is rendered again, to the same bytes. */
void message_forget_rendering(struct message *m);
/* Appends a block; strings are copied; the returned pointer is valid until the next append. Blank
 * text blocks are refused (NULL is returned): no empty text is ever stored (traps 28, 30). */
struct block *message_add_text(struct message *m, enum block_origin origin, const char *text,
			       size_t n);
struct block *message_add_thinking(struct message *m, const char *name, const char *text, size_t n,
				   const char *raw);
struct block *message_add_call(struct message *m, const char *id, const char *name,
			       const char *arguments, size_t n, const char *extra_raw);
struct block *message_add_result(struct message *m, const char *call_id, const char *tool,
				 const char *text, size_t n, bool is_error);
struct block *message_add_image(struct message *m, const char *call_id, const char *media_type,
				const char *base64, size_t n);
struct block *message_add_opaque(struct message *m, const char *raw);
/* A copy of a block of another message, whole as it is. */
struct block *message_add_block(struct message *m, const struct block *block);
/* White space only, by Unicode's notion: what providers refuse as empty (traps 28, 30). */
bool message_text_is_blank(const char *text, size_t n);
size_t message_count(const struct message *m, enum block_kind kind);
/* A blank assistant turn: no text, no call (thinking alone counts as blank; trap 26). */
bool message_is_blank(const struct message *m);

/* It stands for messages that were summarised (H5). */
bool message_is_summary(const struct message *m);

/* The record form for the transcript and back (X12): everything but rendered, splice and estimate.
 */
struct json_object;
struct err;
struct json_object *message_to_json(const struct message *m);
int message_from_json(struct json_object *json, struct message **ret, struct err *err);

#endif
