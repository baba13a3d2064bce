/*
 * speech.h - an answer of the model as bytes of a stream, in either wire form (wire.md 1.2, 2.2).
 */
#ifndef SIMULATOR_SPEECH_H
#define SIMULATOR_SPEECH_H

#include "base/buf.h"
#include "base/model_table.h"
#include "reading.h"

struct speech {
	enum model_api api;
	const struct tokenizer *tokenizer;
	struct buf out;
	int blocks, calls;
	int64_t weight; /* of what was said, 1/1000 token */
};

struct speech_usage {
	bool told;
	int64_t prompt, cached, output; /* prompt: all of it; output < 0: what was said */
	int64_t cleared, cleared_uses;	/* results that the provider left out of the prompt */
	bool marked; /* all that was not cached is written to the cache, as behind markers */
};

void speech_begin(struct speech *s, enum model_api api, const struct tokenizer *tokenizer);
void speech_release(struct speech *s);
/* `prefix`: what the signature names. */
void speech_thinking(struct speech *s, const char *text, size_t n, uint64_t prefix);
void speech_text(struct speech *s, const char *text, size_t n);
/* arguments: JSON text, whole or cut. */
void speech_call(struct speech *s, const char *id, const char *name, const char *arguments,
		 size_t n);
/* stop: Anthropic's word. */
void speech_end(struct speech *s, const char *stop, const struct speech_usage *usage);
int64_t speech_tokens(const struct speech *s);

#endif
