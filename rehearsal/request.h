/*
 * request.h - a model request as both protocols give it, read once.
 *
 * request_read parses the body in place, checks it as strictly as the provider would (wire.md 1.5
 * to 1.7, 2.1, 2.3), and leaves flat arrays: messages, their parts, and the cacheable units with
 * their running fingerprint and token count. The matcher, the prefix cache and the answer work on
 * these and do not care which protocol it was. All strings are borrowed from the body or the
 * request's arena.
 */
#ifndef BATON_REHEARSAL_REQUEST_H
#define BATON_REHEARSAL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "rehearsal/doc.h"
#include "rehearsal/tokens.h"

enum protocol { PROTOCOL_ANTHROPIC, PROTOCOL_OPENAI };
enum speaker { SPEAKER_SYSTEM, SPEAKER_USER, SPEAKER_ASSISTANT, SPEAKER_TOOL };
enum part_kind { PART_TEXT, PART_THINKING, PART_CALL, PART_RESULT, PART_IMAGE, PART_OTHER };

#define NO_PART UINT32_MAX

struct part {
	enum part_kind kind;
	bool is_error;	  /* result */
	uint32_t call;	  /* result: index of its call's part, NO_PART before pairing */
	uint32_t input;	  /* call: node of the arguments (OpenAI: a string with JSON) */
	const char *text; /* text, thinking, a result's joined text */
	size_t len;
	const char *id; /* call, result */
	size_t id_len;
	const char *name; /* call */
	size_t name_len;
};

struct req_message {
	enum speaker speaker;
	uint32_t first, count; /* parts */
	bool thinking;	       /* it brought thinking back */
	uint64_t before;       /* fingerprint of all that stands before it */
};

/* One block at which a prefix can end. */
struct unit {
	uint64_t chain;	 /* fingerprint of everything up to and with it, markers left out */
	int64_t tokens;	 /* running sum */
	uint8_t ttl_min; /* minutes of the cache marker on it: 0, 5 or 60 */
	bool in_messages;
	bool message_end; /* the last unit of its message, tool list or system prompt */
};

/* A refusal as the provider words it. rule is our short name for the statistics. */
struct refusal {
	int status;	  /* 0: none */
	const char *type; /* Anthropic and OpenAI error type */
	const char *code; /* OpenAI, may be NULL */
	const char *rule;
	bool violation; /* the client broke a rule (an exceeded window is none) */
	char param[96]; /* OpenAI, may be empty */
	char text[600];
};

/* What the scenario and the headers say about reading. */
struct request_policy {
	struct token_cache *tokens;
	int64_t max_output;	     /* 0: no limit */
	bool bind_thinking;	     /* signatures are bound to their prefix */
	bool free_thinking;	     /* foreign signatures are accepted (imitations) */
	bool need_reasoning;	     /* OpenAI: reasoning_content must come back (trap 48) */
	bool need_thought_signature; /* Gemini: extra_content must come back (trap 50) */
	bool completion_tokens_only; /* o-series: max_tokens is refused */
	bool strict_roles;	     /* Anthropic: consecutive messages of one role are refused */
	bool drop_header;	     /* the beta thinking-binding-controls was named */
	bool edits_header;	     /* the beta context-management was named */
	bool count_only;	     /* count_tokens */
	/* Called once the model's name is known, to set what depends on it. May be NULL. */
	void (*on_model)(struct request_policy *policy, const char *model);
	void *arg; /* the owner of on_model */
};

struct request {
	enum protocol protocol;
	struct doc doc;
	struct arena *arena;
	struct request_policy *policy;
	struct refusal refusal;

	const char *model;
	bool stream, include_usage;
	bool thinking_on, tools_off, one_call, drop_mismatched;
	int64_t max_tokens; /* 0: not given */
	uint32_t tools;	    /* node, 0: none */
	size_t n_tools;

	struct req_message *messages;
	size_t n_messages, cap_messages;
	struct part *parts;
	size_t n_parts, cap_parts;
	struct unit *units;
	size_t n_units, cap_units;
	size_t n_markers;

	const char *system; /* joined system text */
	size_t system_len;
	const char *task; /* joined user texts before the first answer: task, instructions,
			     environment */
	size_t task_len;
	const char *last; /* what request_last_text gave; NULL before */
	size_t last_len;
	size_t turn;	 /* assistant messages so far */
	size_t tail;	 /* first message behind the last assistant message */
	uint64_t chain;	 /* fingerprint of the whole */
	uint64_t params; /* fingerprint of what else invalidates cached messages */
	uint64_t conversation;
	int64_t input_tokens;

	/* Thinking blocks that the client asked to have dropped (wire.md 1.6 no. 5). */
	struct dropped {
		size_t message, block;
	} * dropped;
	size_t n_dropped, cap_dropped;
	/* Results that the server left out (wire.md 1.9); they are not in input_tokens. */
	size_t cleared_uses;
	int64_t cleared_tokens;
};

/* Reads a body (rewritten, must outlive the request). Returns 0, or -1 with request->refusal. The
 * request must be released in both cases. */
int request_read(struct request *r, enum protocol protocol, char *body, size_t n,
		 struct request_policy *policy);
void request_release(struct request *r);

bool request_has_tool(const struct request *r, const char *name);
/* Text of everything behind the last assistant message (results and texts), joined by line ends.
 * Made once, lives in the arena. */
const char *request_last_text(struct request *r, size_t *ret_len);

/* For the two readers (request_anthropic.c, request_openai.c) only. */
int anthropic_read(struct request *r);
int openai_read(struct request *r);
/* context_edits.c: does what context_management asks for, once all else was read. */
int request_read_edits(struct request *r);
int request_refuse(struct request *r, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void request_param(struct request *r, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void request_use_model(struct request *r, uint32_t node);
struct req_message *request_add_message(struct request *r, enum speaker speaker);
struct part *request_add_part(struct request *r, enum part_kind kind);
/* Adds a unit and moves the chain; tokens are those of the unit alone. */
void request_add_unit(struct request *r, uint64_t hash, int64_t tokens, uint8_t ttl_min);
void request_end_message(struct request *r);
int64_t request_count(struct request *r, uint64_t hash, const char *s, size_t n);
int64_t request_count_node(struct request *r, uint32_t node); /* a tree, cache_control left out */
uint32_t request_find_call(const struct request *r, size_t message, const char *id, size_t n);
/* False if the id was added before. */
struct id_set;
bool id_set_add(struct request *r, struct id_set **set, const char *id, size_t n);
void request_use_system(struct request *r, const char *s,
			size_t n); /* appends to the system text */

/* Fixed parts of the count, in tokens. */
#define TOKENS_REQUEST 8
#define TOKENS_MESSAGE 4
#define TOKENS_CALL    12
#define TOKENS_RESULT  8
#define TOKENS_TOOL    10

#endif
