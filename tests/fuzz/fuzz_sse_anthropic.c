/*
 * fuzz_sse_anthropic.c - streams of the Anthropic form; see fuzz_stream.h.
 */
#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model = {.provider = (char *)"anthropic",
			      .name = (char *)"m",
			      .api = MODEL_API_ANTHROPIC,
			      .cache = CACHE_EXPLICIT,
			      .images = true};
	return stream_fuzz(&model, data, size);
}
