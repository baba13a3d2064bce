/*
 * quirks.h - the ways in which imitations deviate from the two protocols (wire.md 1.2, 4), as data.
 *
 * A scenario, a model or an answer names quirks; a name stands for one bit or, for a whole server's
 * dialect, for several. The renderers ask for single bits only.
 */
#ifndef BATON_REHEARSAL_QUIRKS_H
#define BATON_REHEARSAL_QUIRKS_H

#include <stdint.h>

enum quirk {
	/* framing of the event stream, both protocols */
	QUIRK_CRLF = 1 << 0,	 /* lines end in CR LF */
	QUIRK_CR = 1 << 1,	 /* lines end in CR */
	QUIRK_COMMENTS = 1 << 2, /* comment lines before and between events (trap 56) */
	QUIRK_NO_SPACE = 1 << 3, /* "data:{...}" */
	QUIRK_SPLIT = 1 << 4, /* one HTTP chunk per 7 bytes, so that every line is torn (trap 54) */
	QUIRK_PADDED = 1 << 5, /* blanks behind the JSON of a data line */
	/* usage */
	QUIRK_NO_USAGE = 1 << 6,
	QUIRK_USAGE_ON_FINISH = 1 << 7, /* OpenAI: on the finish chunk, no chunk of its own */
	QUIRK_USAGE_IN_CHOICE = 1 << 8, /* OpenAI: inside choices[0] */
	QUIRK_USAGE_LATE = 1 << 9, /* Anthropic: zeros in message_start, all in message_delta */
	/* tool calls of OpenAI streams */
	QUIRK_INDEX_ZERO = 1 << 10, /* every call has index 0 (trap 33) */
	QUIRK_NO_INDEX = 1 << 11,   /* no index at all (trap 35) */
	QUIRK_WHOLE_ARGS = 1 << 12, /* one delta per call */
	QUIRK_NEW_IDS = 1 << 13,    /* another id on each fragment */
	QUIRK_ARGS_OBJECT = 1 << 14,
	QUIRK_ARGS_NULL = 1 << 15,	   /* null for a call without arguments (trap 43) */
	QUIRK_FINISH_STOP = 1 << 16,	   /* finish_reason "stop" in spite of calls (trap 41) */
	QUIRK_THOUGHT_SIGNATURE = 1 << 17, /* extra_content on calls; must come back (trap 50) */
	QUIRK_NO_DONE = 1 << 18,
	QUIRK_AZURE = 1 << 19,		 /* first chunk without choices (trap 62) */
	QUIRK_REASONING = 1 << 20,	 /* field "reasoning" */
	QUIRK_REASONING_TWICE = 1 << 21, /* the same text in two fields */
	/* Anthropic streams */
	QUIRK_NO_SIGNATURE = 1 << 22,	/* thinking without signature, and none is asked for */
	QUIRK_NO_BLOCK_STOP = 1 << 23,	/* the last block lacks content_block_stop */
	QUIRK_NO_INPUT_DELTA = 1 << 24, /* a call without arguments has no delta at all */
	QUIRK_NO_PING = 1 << 25,
	QUIRK_RAW_CONTROLS = 1 << 26, /* raw tabs and line ends inside argument strings (trap 39) */
};

/* The bits of a name; 0 if it is unknown. */
uint32_t quirk_bits(const char *name);
/* All names, NULL-terminated, for errors and documentation. */
const char *const *quirk_names(void);

#endif
