/*
 * Any split of the bytes gives the same answer (traps 52, 54): rich streams of both forms, cut at
 * every offset, fed byte by byte and in random pieces, with each kind of line end.
 */
#include "fixture.h"

static const char anthropic_stream_text[] =
	": hello\n"
	"event: message_start\n"
	"data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":5,"
	"\"cache_read_input_tokens\":3}}}   \n\n"
	"event: content_block_start\n"
	"data:{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
	"\"thinking\","
	"\"thinking\":\"\",\"signature\":\"\"}}\n\n"
	"data: "
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\","
	"\"thinking\":\"\xc3\xa9\xe2\x82\xac \\ud83d\\ude00\"}}\n\n"
	"data: "
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\","
	"\"signature\":\"c2ln\"}}\n\n"
	"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	"event: ping\ndata: {\"type\": \"ping\"}\n\n"
	"data: {\"type\":\"content_block_start\",\"index\":1,\n"
	"data: \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	"data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\","
	"\"text\":\"\xf0\x9f\x98\x80 ok\"}}\n\n"
	"data: "
	"{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\","
	"\"id\":\"t1\",\"name\":\"sh\",\"input\":{}}}\n\n"
	"data: "
	"{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\","
	"\"partial_json\":\"{\\\"c\\\":\\\"\\\\\"}}\n\n"
	"data: "
	"{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\","
	"\"partial_json\":\"n\\\"}\"}}\n\n"
	"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{"
	"\"output_tokens\":9}}\n\n"
	"data: {\"type\":\"message_stop\"}\n\n";

static const char openai_stream_text[] =
	": OPENROUTER PROCESSING\n\n"
	"data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n\n"
	"data: "
	"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"reasoning\":"
	"\"h\xc3\xa4\"}}]}\n\n"
	"data: "
	"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe2\x82\xac\"}}]}\n\n"
	"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"
	"\"function\":{\"name\":\"sh\",\"arguments\":\"{\\\"c\\\":\\\"\\\\\"}}]}}]}\n\n"
	"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"
	"\"function\":{\"arguments\":\"n\\\"}\"}}]}}]}\n\n"
	"data:{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
	"\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n"
	"data: [DONE]\n\n";

/* LF becomes the given line end. Caller frees. */
static char *with_line_ends(const char *text, const char *line_end)
{
	struct buf out = BUF_INIT;
	for (; *text; text++)
		if (*text == '\n')
			buf_adds(&out, line_end);
		else
			buf_addc(&out, *text);
	return buf_take(&out);
}

static char *describe_pieces(struct model_client *client, const char *text, const size_t *cuts,
			     size_t n_cuts)
{
	struct stream_parser *parser = stream_new(client, NULL, NULL);
	struct stream_answer answer = {.message = NULL};
	struct err err = ERR_INIT;
	size_t from = 0, n = strlen(text);
	for (size_t i = 0; i <= n_cuts; i++) {
		size_t to = i < n_cuts ? cuts[i] : n;
		if (stream_feed(parser, text + from, to - from, &err) < 0)
			fail_msg("cut %zu: %s", to, err.message);
		from = to;
	}
	if (stream_finish(parser, &answer, &err) < 0)
		fail_msg("%s", err.message);
	char *description = fixture_describe(&answer);
	stream_answer_release(&answer);
	stream_free(parser);
	return description;
}

static int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void check_random_splits(struct model_client *client, const char *text, const char *want)
{
	size_t n = strlen(text);
	unsigned seed = 7;
	for (int round = 0; round < 200; round++) {
		size_t cuts[12];
		for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
			seed = seed * 1103515245 + 12345;
			cuts[i] = (seed >> 8) % (n + 1);
		}
		qsort(cuts, ARRAY_SIZE(cuts), sizeof(cuts[0]), by_size);
		AUTO_FREE char *have = describe_pieces(client, text, cuts, ARRAY_SIZE(cuts));
		assert_string_equal(have, want);
	}
}

static void check_splits(struct model *model, const char *text)
{
	static const char *const line_ends[] = {"\n", "\r\n", "\r"};
	struct request_params params = {.temperature = -1};
	struct model_client *client = fixture_client(model, &params);
	struct stream_answer whole = fixture_answer(client, text, 0);
	AUTO_FREE char *want = fixture_describe(&whole);
	assert_int_equal(whole.stop, STOP_TOOL_USE);
	stream_answer_release(&whole);
	for (size_t k = 0; k < ARRAY_SIZE(line_ends); k++) {
		AUTO_FREE char *form = with_line_ends(text, line_ends[k]);
		for (size_t cut = 0; cut <= strlen(form); cut++) {
			AUTO_FREE char *have = describe_pieces(client, form, &cut, 1);
			assert_string_equal(have, want);
		}
		struct stream_answer bytewise = fixture_answer(client, form, 1);
		AUTO_FREE char *have = fixture_describe(&bytewise);
		assert_string_equal(have, want);
		stream_answer_release(&bytewise);
		check_random_splits(client, form, want);
	}
	client_free(client);
}

static void test_splits_anthropic_traps_52_54(void **state)
{
	struct model model = fixture_anthropic();
	check_splits(&model, anthropic_stream_text);
}

static void test_splits_openai_traps_52_54(void **state)
{
	struct model model = fixture_openai();
	check_splits(&model, openai_stream_text);
}

/* Trap 60: no proper prefix of a stream up to its stop reason is taken for the whole. */
static void test_no_prefix_is_an_answer_trap_60(void **state)
{
	struct model models[2] = {fixture_anthropic(), fixture_openai()};
	const char *texts[2] = {anthropic_stream_text, openai_stream_text};
	const char *signs[2] = {"\"stop_reason\"", "\"finish_reason\""};
	for (int k = 0; k < 2; k++) {
		struct request_params params = {.temperature = -1};
		struct model_client *client = fixture_client(&models[k], &params);
		size_t n = (size_t)(strstr(texts[k], signs[k]) - texts[k]);
		struct stream_parser *parser = stream_new(client, NULL, NULL);
		for (size_t i = 0; i <= n; i++) {
			struct stream_answer answer;
			stream_reset(parser);
			/* Half an event at the end is an error of its own kind. */
			if (stream_feed(parser, texts[k], i, NULL) == 0)
				assert_int_equal(stream_finish(parser, &answer, NULL), -1);
		}
		stream_free(parser);
		client_free(client);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_splits_anthropic_traps_52_54),
		cmocka_unit_test(test_splits_openai_traps_52_54),
		cmocka_unit_test(test_no_prefix_is_an_answer_trap_60),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
