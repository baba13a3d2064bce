/*
 * fuzz_sse_openai.c - streams of the OpenAI form; see fuzz_stream.h.
 */
#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model model = {.provider = (char *)"openrouter",
			      .name = (char *)"m",
			      .api = MODEL_API_OPENAI,
			      .reasoning_field = (char *)"reasoning",
			      .dialect = (char *)"openrouter",
			      .images = true};
	return stream_fuzz(&model, data, size);
}
