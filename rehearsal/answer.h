/*
 * answer.h - what the scripted model says to one request, before it takes a protocol's form.
 */
#ifndef BATON_REHEARSAL_ANSWER_H
#define BATON_REHEARSAL_ANSWER_H

#include "rehearsal/cache.h"
#include "rehearsal/match.h"

enum answer_stop { STOP_END, STOP_TOOLS, STOP_MAX_TOKENS, STOP_WINDOW, STOP_OTHER };

struct answer_block {
	enum part_kind
		kind; /* PART_TEXT, PART_THINKING, PART_CALL; PART_OTHER: redacted thinking */
	char *text;   /* text, or the arguments as JSON */
	size_t len;
	char *name, *id; /* of a call */
	bool cut;	 /* by max_tokens: arguments may be half */
};

struct answer {
	struct answer_block *blocks;
	size_t n_blocks, cap_blocks;
	enum answer_stop stop;
	const char *stop_text;		  /* STOP_OTHER: the scenario's own word */
	struct json_object *stop_details; /* borrowed from the scenario, or NULL */
	int64_t output_tokens, thinking_tokens;
	int64_t input_tokens; /* as told to the client */
	struct cache_usage usage;
	uint32_t quirks;
	uint64_t thinking; /* thinking_hash of the thinking, 0: none */
};

/* Expands the rule's answer for the request. `window` bounds input + output (0: no bound). */
void answer_build(struct answer *answer, const struct rule *rule, struct scope *scope,
		  uint32_t quirks, int64_t window);
void answer_release(struct answer *answer);

#endif
