/*
 * repeat.c - fingerprints of calls and results in a small ring.
 *
 * Not only calls in a row count: two calls that alternate for ever are the same loop. The ring
 * bounds how far apart repetitions may be; `git status` three times in a long run is not one.
 */
#include "agent/repeat.h"

#include "base/memory.h"
#include "base/text.h"

static uint64_t fingerprint(const char *tool, const char *arguments, size_t n_arguments,
			    const char *result, size_t n_result)
{
	uint64_t parts[3] = {
		text_hash(tool, strlen(tool)),
		text_hash(arguments, n_arguments),
		text_hash(result, n_result),
	};

	return text_hash(parts, sizeof(parts));
}

int repeat_count(struct repeats *repeats, const char *tool, const char *arguments,
		 size_t n_arguments, const char *result, size_t n_result, bool changed)
{
	uint64_t print = fingerprint(tool, arguments, n_arguments, result, n_result);
	size_t kept = MIN(repeats->n, (size_t)REPEAT_KEEP);
	int count = 1;

	for (size_t i = 0; i < kept; i++)
		count += repeats->seen[i] == print;
	if (changed && count == 1)
		repeats->n = 0;
	repeats->seen[repeats->n++ % REPEAT_KEEP] = print;
	return count;
}
