/*
 * phrases.c - the table of wire.md 1.10 and 3, and its matcher.
 *
 * Order matters: the longer form of a text stands before the shorter one that it contains, so that
 * the numbers are taken where there are any. Numbers of one row are added where a server counts
 * prompt and wanted output apart, so that used - limit is always what has to go.
 */
#include "orchestrator/gateway/phrases.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static const struct phrase phrases[] = {
	/* Tokens per minute: one request that is larger than a minute's allowance (trap 70). */
	{"6/7", "request too large for *limit #, requested #", WHEN_ANY, true, -1, 2, 0, 1, 0},

	{"1.10 prompt", "prompt is too long: # tokens > # maximum", 0, 0, -1, 1, 0, 2, 0},
	{"1.10 sum", "input length and `max_tokens` exceed context limit: # + # > #", 0, 0, -1, 1,
	 2, 3, 0},
	{"1.10 prompt", "prompt is too long", 0, 0, -1, 0, 0, 0, 0},
	{"1.10 cdn", "request exceeds the maximum size", 0, 0, -1, 0, 0, 0, 0},
	{"1.10 bedrock", "input is too long for requested model", 0, 0, -1, 0, 0, 0, 0},

	{"9",
	 "maximum context length is # tokens*requested about # tokens (# of text input, # in the "
	 "output)",
	 0, 0, -1, 3, 4, 1, 0},
	{"2",
	 "maximum context length is # tokens*requested # tokens (# in the messages, # in the "
	 "completion)",
	 0, 0, -1, 3, 4, 1, 0},
	{"20",
	 "maximum context length is # tokens*requested # output tokens and your prompt contains "
	 "at least # input tokens",
	 0, 0, -1, 3, 2, 1, 0},
	{"20", "requested # output tokens and your prompt contains at least # input tokens", 0, 0,
	 -1, 2, 1, 0, 0},
	{"19", "maximum context length is # tokens*# input tokens plus # 'max_tokens'", 0, 0, -1, 2,
	 3, 1, 0},
	{"19", "# input tokens plus # 'max_tokens'", 0, 0, -1, 1, 2, 0, 0},
	{"18", "maximum context length is # tokens. however, your request has # input tokens", 0, 0,
	 -1, 2, 0, 1, 0},
	{"1", "maximum context length is # tokens. however, your messages resulted in # tokens", 0,
	 0, -1, 2, 0, 1, 0},
	{"3", "resulted in # tokens (# in the messages, # in the functions)", 0, 0, -1, 1, 0, 0, 0},
	{"4",
	 "input tokens exceed the configured limit of # tokens. your messages resulted in # "
	 "tokens",
	 0, 0, -1, 2, 0, 1, 0},
	{"5", "exceeds the context window of this model", 0, 0, -1, 0, 0, 0, 0},
	{"8", "reduce the length of the messages", 0, 0, -1, 0, 0, 0, 0},
	{"7", "reduce your message size", 0, 0, -1, 0, 0, 0, 0},
	{"10", "input length # exceeds the maximum allowed input length of # tokens", 0, 0, -1, 1,
	 0, 2, 0},
	{"11", "request (# tokens) exceeds the available context size (# tokens)", WHEN_ANY, 0, -1,
	 1, 0, 2, 0},
	{"11", "exceeds the available context size", WHEN_ANY, 0, -1, 0, 0, 0, 0},
	/* Slots that share one memory compete: alone the same prompt may fit. */
	{"12", "context size has been exceeded", WHEN_ANY, 0, 2, 0, 0, 0, 0},
	{"14",
	 "tokens to keep from the initial prompt is greater than the context length (n_keep: "
	 "#>= n_ctx: #)",
	 WHEN_ANY, 0, -1, 1, 0, 2, 0},
	{"14", "tokens to keep from the initial prompt is greater than the context length",
	 WHEN_ANY, 0, -1, 0, 0, 0, 0},
	{"15",
	 "trying to keep the first # tokens when context the overflows*context length of only # "
	 "tokens",
	 WHEN_ANY, 0, -1, 1, 0, 2, 0},
	{"21",
	 "you passed # input tokens and requested # output tokens. however, the model's context "
	 "length is only # tokens",
	 0, 0, -1, 1, 2, 3, 0},
	{"22", "max_tokens must be at least 1, got -#", 0, 0, -1, 0, 0, 0, 1},
	{"23",
	 "inputs` tokens + `max_new_tokens` must be <= #. given: # `inputs` tokens and # "
	 "`max_new_tokens`",
	 0, 0, -1, 2, 3, 1, 0},
	{"23", "inputs` tokens + `max_new_tokens` must be", 0, 0, -1, 0, 0, 0, 0},
	{"24", "the prompt is longer than the context length currently available", 0, 0, -1, 0, 0,
	 0, 0},
	{"25", "prompt too long; exceeded max context length by #", 0, 0, -1, 0, 0, 0, 1},
	{"25", "prompt too long; exceeded context length by #", 0, 0, -1, 0, 0, 0, 1},
	{"25", "prompt too long; exceeded *context length", 0, 0, -1, 0, 0, 0, 0},
	/* The server dropped the question itself to make the rest fit. */
	{"27", "no user query found in messages", WHEN_ANY, 0, -1, 0, 0, 0, 0},
	{"29", "input token count (#) exceeds the maximum number of tokens allowed (#)", 0, 0, -1,
	 1, 0, 2, 0},
	{"30", "maximum prompt length is # but the request contains # tokens", 0, 0, -1, 2, 0, 1,
	 0},
	{"31", "prompt contains # tokens*too large for model with # maximum context length", 0, 0,
	 -1, 1, 0, 2, 0},
	{"32", "the input (# tokens) is longer than the model's context length (# tokens)", 0, 0,
	 -1, 1, 0, 2, 0},
	{"33", "exceeded model token limit: # (requested: #)", 0, 0, -1, 2, 0, 1, 0},
	{"34", "context window exceeds limit", 0, 0, -1, 0, 0, 0, 0},
	{"35", "current length is # while limit is #", 0, 0, -1, 1, 0, 2, 0},
	{"36", "prompt token count of # exceeds the limit of #", 0, 0, -1, 1, 0, 2, 0},
	{"37", "exceeds the model's maximum context length of # tokens", 0, 0, -1, 0, 0, 1, 0},
	{"38", "input length (#) exceeds model's maximum context length (#)", 0, 0, -1, 1, 0, 2, 0},
	{"37", "contextwindowexceedederror", 0, 0, -1, 0, 0, 0, 0},
	/* A number of messages, not of tokens: no numbers for the ledger. */
	{"42", "'$.messages' is too long. maximum length is #, but got # items", 0, 0, -1, 0, 0, 0,
	 0},
	{"43", "request entity too large", 0, 0, -1, 0, 0, 0, 0},
};

static bool take_integer(const char **text, int64_t *ret)
{
	const char *p = *text;
	if (!isdigit((unsigned char)*p))
		return false;
	int64_t value = 0;
	for (; isdigit((unsigned char)*p) || (*p == ',' && isdigit((unsigned char)p[1])); p++) {
		if (*p != ',' && value < INT64_MAX / 16)
			value = value * 10 + (*p - '0');
	}
	*ret = value;
	*text = p;
	return true;
}

/* Backtracks over '*' only; texts are bounded (8 KiB) and patterns have one of them. */
static bool match_here(const char *text, const char *pattern, int64_t *numbers, size_t count)
{
	for (; *pattern; pattern++) {
		if (*pattern == '#') {
			int64_t value;
			if (!take_integer(&text, &value))
				return false;
			if (count < PHRASE_NUMBERS)
				numbers[count++] = value;
		} else if (*pattern == '*') {
			for (; *text; text++) {
				if (match_here(text, pattern + 1, numbers, count))
					return true;
			}
			return false;
		} else if (tolower((unsigned char)*text) != *pattern) {
			return false;
		} else {
			text++;
		}
	}
	return true;
}

/* Matches text against a pattern anywhere, without regard to case: '#' is an integer (commas
 * allowed) and '*' any run of characters. Up to PHRASE_NUMBERS integers are stored. */
static bool phrase_match(const char *text, const char *pattern, int64_t numbers[PHRASE_NUMBERS])
{
	memset(numbers, 0, sizeof(*numbers) * PHRASE_NUMBERS);
	for (const char *at = text; *at; at++) {
		/* A number is matched from its first digit only. */
		if (*pattern == '#' && at > text && isdigit((unsigned char)at[-1]))
			continue;
		if (match_here(at, pattern, numbers, 0))
			return true;
	}
	return false;
}

const struct phrase *phrase_find(const char *text, bool any_status_only, bool rate_rows,
				 int64_t numbers[PHRASE_NUMBERS])
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++) {
		const struct phrase *p = &phrases[i];
		if (p->rate_row != rate_rows || (any_status_only && p->when != WHEN_ANY))
			continue;
		if (phrase_match(text, p->pattern, numbers))
			return p;
	}
	return NULL;
}
