/*
 * bench_render.c - what a request of 150,000 tokens costs beyond copying its bytes.
 *
 * 300 messages of 2,000 bytes (600 KB). Prints, as one JSON line: the bytes of the request, the
 * first build (every message is rendered), a later one (nothing is), a memcpy of the same bytes,
 * and the difference of the last two in microseconds: the figure that issue 2 bounds at 1 ms. The
 * median of many runs counts. For each API, with cache markers where the API has them.
 *
 * Build: executable('bench_render', 'bench_render.c', dependencies: [model_dep])
 */
#include <stdio.h>

#include "agent/model/client.h"
#include "base/clock.h"
#include "base/memory.h"

enum { MESSAGES = 301, TEXT = 2000, RUNS = 101 };

static void fill(char *text)
{
	static const char line[] = "\tif (x == \"y\") /* code, \\ and quotes */\n\t\treturn -1;\n";
	for (size_t i = 0; i < TEXT; i++)
		text[i] = line[i % (sizeof(line) - 1)];
}

static void make_view(struct message **view, const struct model *model)
{
	static char text[TEXT];
	fill(text);
	for (size_t i = 0; i < MESSAGES; i++) {
		AUTO_FREE char *id = mem_printf("call_%zu", (i + 1) / 2);
		view[i] = message_new(i % 2 ? MESSAGE_ASSISTANT : MESSAGE_USER);
		view[i]->uid = i + 1;
		if (i % 2) {
			view[i]->provider = mem_strdup(model->provider);
			message_add_text(view[i], ORIGIN_MODEL, text, TEXT);
			message_add_call(view[i], id, "read", "{\"path\":\"a.c\"}", 14, NULL);
		} else if (i) {
			message_add_result(view[i], id, "read", text, TEXT, false);
		} else {
			message_add_text(view[i], ORIGIN_USER, text, TEXT);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t build(struct model_client *client, struct message **view, struct buf *out)
{
	const char *beta;
	struct err err = ERR_INIT;
	int64_t start = clock_mono_us();
	buf_clear(out);
	if (client_render_request(client, view, MESSAGES, 4096, 0, out, &beta, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	return clock_mono_us() - start;
}

static int64_t copy(const struct buf *from, char *to)
{
	int64_t start = clock_mono_us();
	memcpy(to, from->data, from->len);
	__asm__ volatile("" : : "r"(to) : "memory");
	return clock_mono_us() - start;
}

static int run(const struct model *model)
{
	static const struct tool_spec tool = {"read", "Reads a file.", "{\"type\":\"object\"}"};
	const struct request_params params = {
		.system = "You are careful.", .tools = &tool, .n_tools = 1, .temperature = -1};
	struct message *view[MESSAGES];
	struct model_client *client = NULL;
	int64_t builds[RUNS], copies[RUNS];
	AUTO_BUF struct buf out = BUF_INIT;
	if (client_new(model, &params, &client, NULL) < 0)
		return -1;
	make_view(view, model);
	int64_t first = build(client, view, &out);
	AUTO_FREE char *to = mem_alloc(out.len);
	for (int i = 0; i < RUNS && first >= 0; i++) {
		builds[i] = build(client, view, &out);
		copies[i] = copy(&out, to);
	}
	qsort(builds, RUNS, sizeof(builds[0]), by_size);
	qsort(copies, RUNS, sizeof(copies[0]), by_size);
	printf("{\"bench\":\"render\",\"api\":\"%s\",\"bytes\":%zu,\"first_us\":%lld,\"build_us\":%"
	       "lld,"
	       "\"memcpy_us\":%lld,\"beyond_memcpy_us\":%lld}\n",
	       model->provider, out.len, (long long)first, (long long)builds[RUNS / 2],
	       (long long)copies[RUNS / 2], (long long)(builds[RUNS / 2] - copies[RUNS / 2]));
	for (size_t i = 0; i < MESSAGES; i++)
		message_free(view[i]);
	client_free(client);
	return first < 0 ? -1 : 0;
}

int main(void)
{
	struct model anthropic = {.provider = (char *)"anthropic",
				  .name = (char *)"m",
				  .api = MODEL_API_ANTHROPIC,
				  .cache = CACHE_EXPLICIT};
	struct model openai = {
		.provider = (char *)"openai", .name = (char *)"m", .api = MODEL_API_OPENAI};
	return run(&anthropic) < 0 || run(&openai) < 0;
}
