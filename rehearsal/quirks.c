/*
 * quirks.c - the names of quirks.h. A server's dialect is a sum of single quirks.
 */
#include "rehearsal/quirks.h"

#include <string.h>

#define QUIRK_TABLE(X)                                                                             \
	X("crlf", QUIRK_CRLF)                                                                      \
	X("cr", QUIRK_CR)                                                                          \
	X("comments", QUIRK_COMMENTS)                                                              \
	X("no_space", QUIRK_NO_SPACE)                                                              \
	X("split", QUIRK_SPLIT)                                                                    \
	X("padded", QUIRK_PADDED)                                                                  \
	X("drop_usage", QUIRK_NO_USAGE)                                                            \
	X("usage_on_finish", QUIRK_USAGE_ON_FINISH)                                                \
	X("usage_in_choice", QUIRK_USAGE_IN_CHOICE)                                                \
	X("usage_late", QUIRK_USAGE_LATE)                                                          \
	X("openai_index_zero", QUIRK_INDEX_ZERO)                                                   \
	X("openai_no_index", QUIRK_NO_INDEX)                                                       \
	X("whole_args", QUIRK_WHOLE_ARGS)                                                          \
	X("new_ids", QUIRK_NEW_IDS)                                                                \
	X("args_object", QUIRK_ARGS_OBJECT | QUIRK_WHOLE_ARGS)                                     \
	X("args_null", QUIRK_ARGS_NULL)                                                            \
	X("finish_stop", QUIRK_FINISH_STOP)                                                        \
	X("thought_signature", QUIRK_THOUGHT_SIGNATURE)                                            \
	X("no_done", QUIRK_NO_DONE)                                                                \
	X("azure", QUIRK_AZURE)                                                                    \
	X("reasoning", QUIRK_REASONING)                                                            \
	X("reasoning_twice", QUIRK_REASONING_TWICE)                                                \
	X("no_signature", QUIRK_NO_SIGNATURE)                                                      \
	X("no_block_stop", QUIRK_NO_BLOCK_STOP)                                                    \
	X("no_input_delta", QUIRK_NO_INPUT_DELTA)                                                  \
	X("no_ping", QUIRK_NO_PING)                                                                \
	X("raw_controls", QUIRK_RAW_CONTROLS)                                                      \
	X("gemini",                                                                                \
	  QUIRK_NO_INDEX | QUIRK_WHOLE_ARGS | QUIRK_FINISH_STOP | QUIRK_THOUGHT_SIGNATURE)         \
	X("ollama", QUIRK_USAGE_ON_FINISH | QUIRK_WHOLE_ARGS | QUIRK_REASONING)                    \
	X("ollama_old", QUIRK_USAGE_ON_FINISH | QUIRK_WHOLE_ARGS | QUIRK_INDEX_ZERO)               \
	X("openrouter", QUIRK_COMMENTS | QUIRK_REASONING)                                          \
	X("deepseek", QUIRK_COMMENTS)                                                              \
	X("moonshot", QUIRK_USAGE_IN_CHOICE)                                                       \
	X("oci", QUIRK_NEW_IDS | QUIRK_FINISH_STOP)

#define QUIRK_BITS(name, bits) bits,
#define QUIRK_NAME(name, bits) name,
static const uint32_t bits_of[] = {QUIRK_TABLE(QUIRK_BITS)};
static const char *const names[] = {QUIRK_TABLE(QUIRK_NAME) NULL};

uint32_t quirk_bits(const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return bits_of[i];
	return 0;
}

const char *const *quirk_names(void)
{
	return names;
}
