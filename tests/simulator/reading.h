/*
 * reading.h - a request body as the server reads it: strict JSON, messages, blocks, tokens.
 *
 * It shares no code with the agent: what the agent's own validator lets through is looked at with other eyes. A
 * reading follows one conversation: messages that stand at the same place as in the request before, byte for byte
 * but for cache markers, are taken over without being parsed again, so a request costs what is new in it.
 */
#ifndef SIMULATOR_READING_H
#define SIMULATOR_READING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/model_table.h"
#include "random.h"

enum seen_kind { SEEN_TEXT, SEEN_THINKING, SEEN_CALL, SEEN_RESULT, SEEN_IMAGE, SEEN_OTHER };
enum seen_role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };

struct seen_block {
	enum seen_kind kind;
	bool blank, marked;
	uint64_t id;	    /* of a call or a result; 0: none */
	uint64_t hash;	    /* of a result's content */
	uint64_t signature; /* of thinking: the prefix that it names */
	uint64_t name;	    /* of a call's tool */
	size_t size;	    /* bytes of text */
	int64_t weight;	    /* of a result's content, 1/1000 token */
};

struct seen_message {
	enum seen_role role;
	size_t at, len; /* in reading.bytes, without cache markers */
	size_t first_block, n_blocks;
	uint64_t hash;
	uint64_t before; /* of all that stands before it */
	int64_t weight;	 /* 1/1000 token */
	bool reasoning;
};

#define READING_WEIGHT_UNIT 1000

struct tokenizer { /* 1/1000 token */
	uint16_t byte[256];
	uint32_t block, message, image;
};
void tokenizer_make(struct tokenizer *t, struct random *r, bool stubborn);
int64_t tokenizer_weigh(const struct tokenizer *t, const char *s, size_t n);

struct seen_mark { /* a cache marker: behind which block of which message */
	size_t message, block;
};
#define SEEN_MARKS 8

#define SEEN_TOOLS 16
struct seen_edits { /* context_management: the provider is asked to clear old results */
	bool present;
	int64_t trigger, keep, least;
	uint64_t excluded[SEEN_TOOLS]; /* hashes of tools' names */
	size_t n_excluded;
};

struct reading {
	enum model_api api;
	const struct tokenizer *tokenizer;
	struct buf head; /* up to the list of messages, without markers' effect on anything */
	int64_t head_weight;
	struct buf bytes; /* canonical bytes of the messages */
	struct seen_message *list;
	size_t n, cap;
	struct seen_block *blocks;
	size_t n_blocks, cap_blocks;
	/* Of the present request. */
	size_t kept; /* messages that are those of the request before */
	bool same_head;
	size_t marks; /* cache markers */
	struct seen_mark mark_list[SEEN_MARKS];
	size_t n_marks; /* of them in the list */
	int64_t max_tokens;
	bool drops_thinking; /* block_binding: drop_block */
	struct seen_edits edits;
	size_t last_at;	 /* where the last message begins in the body */
	char wrong[300]; /* what is not well-formed; "": nothing */
};

void reading_init(struct reading *r, enum model_api api, const struct tokenizer *tokenizer);
void reading_release(struct reading *r);
/* Reads a request. -1: it is not well-formed, and `wrong` says why. With `whole` nothing is taken over. */
int reading_take(struct reading *r, const char *body, size_t n, bool whole);
void reading_mark(struct reading *r, size_t message, size_t block);
int64_t reading_tokens(const struct reading *r); /* of head and messages */

#endif
