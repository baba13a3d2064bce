/*
 * test_watch.c - what the gateway sees of a stream: life, content, end, error (traps 56, 58, 60,
 * 62).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/gateway/watch.h"

static void feed(struct watch *w, const char *text)
{
	assert_int_equal(watch_feed(w, text, strlen(text), NULL), 0);
}

#define DELTA(text)                                                                                \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text                          \
	"\"},\"finish_reason\":null}]}\n\n"
#define FINISH(word)                                                                               \
	"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" word "\"}]}\n\n"

static void test_trap_56_comments_are_no_content(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n: keep-alive\n\n");
	assert_false(w.progress || w.content || w.finished || w.failed);
	feed(&w, DELTA("x"));
	assert_true(w.progress && w.content);
	watch_release(&w);
}

static void test_trap_58_finish_reason_error(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, "data: "
		 "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":"
		 "{\"name\":\"f\",\"arguments\":\"{\\\"a\"}}]},\"finish_reason\":null}]}\n\n");
	assert_true(w.content);
	feed(&w, "data: {\"error\":{\"code\":503,\"message\":\"down\"},\"choices\":[{\"delta\":{},"
		 "\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n");
	assert_true(w.failed);
	assert_false(w.finished);
	assert_non_null(strstr(buf_str(&w.error), "503"));
	watch_release(&w);
	/* Also without the error object. */
	watch_init(&w, false);
	feed(&w, DELTA("x") FINISH("error"));
	assert_true(w.failed);
	watch_release(&w);
}

static void test_trap_60_cut_stream_is_not_finished(void **state)
{
	struct watch w;
	watch_init(&w, false);
	for (int i = 0; i < 5; i++)
		feed(&w, DELTA("word "));
	assert_int_equal(watch_end(&w, NULL), 0);
	assert_false(w.finished || w.failed);
	watch_release(&w);
	/* [DONE] alone ends nothing (wire.md 4, rule 5). */
	watch_init(&w, false);
	feed(&w, DELTA("word") "data: [DONE]\n\n");
	assert_false(w.finished || w.last);
	watch_release(&w);
}

static void test_trap_62_azure_first_chunk(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, "data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n\n");
	assert_false(w.content || w.finished || w.failed);
	feed(&w, DELTA("x") FINISH("stop"));
	assert_true(w.finished);
	watch_release(&w);
}

static void test_openai_end_with_and_without_done(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, DELTA("x") FINISH("stop"));
	assert_true(w.finished);
	assert_false(w.last);
	feed(&w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n");
	assert_true(w.usage);
	feed(&w, "data: [DONE]\n\n");
	assert_true(w.last);
	watch_release(&w);
	/* The last event may lack its blank line. */
	watch_init(&w, false);
	feed(&w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}");
	assert_false(w.finished);
	assert_int_equal(watch_end(&w, NULL), 0);
	assert_true(w.finished);
	watch_release(&w);
}

/* wire.md 3, row 16: usage and nothing else; the agent judges by the numbers. */
static void test_row_16_empty_answer_with_usage(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w,
	     "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9000,\"completion_tokens\":0}}\n\n"
	     "data: [DONE]\n\n");
	assert_true(w.finished && !w.content && !w.failed);
	watch_release(&w);
}

/* Words in strings, and `error` members of tool arguments, are content. */
static void test_quoted_words_are_not_signs(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, DELTA("\\\"finish_reason\\\":\\\"stop\\\", \\\"error\\\": {}"));
	assert_false(w.finished || w.failed);
	feed(&w, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\","
		 "\"arguments\":{\"error\":{\"a\":1}}}}]},\"finish_reason\":null}],\"error\":null}"
		 "\n\n");
	assert_false(w.failed);
	feed(&w, DELTA("finish_reason"));
	assert_false(w.finished);
	watch_release(&w);
}

static void test_empty_deltas_are_no_progress(void **state)
{
	struct watch w;
	watch_init(&w, false);
	feed(&w, DELTA(""));
	feed(&w, "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[]}}]}\n\n");
	assert_false(w.progress || w.content);
	feed(&w, "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\n");
	assert_true(w.progress && w.content);
	watch_release(&w);
}

static void test_in_band_errors_of_openai_forms(void **state)
{
	static const char *const streams[] = {
		"data: {\"error\":{\"message\":\"x\"}}\n\n",
		"data: {\"error\":\"text\"}\n\n",
		"event: error\ndata: {\"message\":\"x\"}\n\n",
		"error: {\"code\":400,\"message\":\"x\"}\n\n", /* row 13 */
		"data: [{\"error\":{\"code\":400}}]\n\n",
	};
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		struct watch w;
		watch_init(&w, false);
		feed(&w, streams[i]);
		assert_true(w.failed);
		watch_release(&w);
	}
}

static void test_anthropic_stream(void **state)
{
	struct watch w;
	watch_init(&w, true);
	feed(&w, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
	assert_false(w.progress);
	feed(&w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n");
	assert_true(w.progress && !w.content);
	feed(&w, "event: content_block_delta\ndata: "
		 "{\"type\":\"content_block_delta\",\"delta\":{\"text\":"
		 "\"\\\"type\\\":\\\"message_stop\\\"\"}}   \n\n");
	assert_true(w.content && !w.finished);
	/* A stop reason alone is not the end: usage and blocks may be half. */
	feed(&w,
	     "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
	     "\"end_turn\"}}\n\n");
	assert_false(w.finished);
	feed(&w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
	assert_true(w.finished && w.last);
	watch_release(&w);
}

static void test_anthropic_without_event_names_and_errors(void **state)
{
	struct watch w;
	watch_init(&w, true);
	feed(&w, "data: {\"type\":\"ping\"}\n\n");
	assert_false(w.progress);
	feed(&w,
	     "data: {\"type\":\"content_block_delta\"}\n\ndata: {\"type\": \"message_stop\"}\n\n");
	assert_true(w.content && w.finished);
	watch_release(&w);
	watch_init(&w, true);
	feed(&w, "event: error\ndata: "
		 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n");
	assert_true(w.failed);
	assert_non_null(strstr(buf_str(&w.error), "overloaded_error"));
	watch_release(&w);
}

/* Any split of the bytes gives the same. */
static void test_every_split_gives_the_same(void **state)
{
	static const char stream[] =
		"event: message_start\r\ndata: {\"type\":\"message_start\"}\r\n\r\n"
		"event: content_block_delta\rdata: {\"type\":\"content_block_delta\"}"
		"\r\revent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
	for (size_t cut = 0; cut < sizeof(stream); cut++) {
		struct watch w;
		watch_init(&w, true);
		assert_int_equal(watch_feed(&w, stream, cut, NULL), 0);
		assert_int_equal(watch_feed(&w, stream + cut, sizeof(stream) - 1 - cut, NULL), 0);
		assert_true(w.content && w.finished && w.last && !w.failed);
		watch_release(&w);
		if (cut == sizeof(stream) - 2)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trap_56_comments_are_no_content),
		cmocka_unit_test(test_trap_58_finish_reason_error),
		cmocka_unit_test(test_trap_60_cut_stream_is_not_finished),
		cmocka_unit_test(test_trap_62_azure_first_chunk),
		cmocka_unit_test(test_openai_end_with_and_without_done),
		cmocka_unit_test(test_row_16_empty_answer_with_usage),
		cmocka_unit_test(test_quoted_words_are_not_signs),
		cmocka_unit_test(test_empty_deltas_are_no_progress),
		cmocka_unit_test(test_in_band_errors_of_openai_forms),
		cmocka_unit_test(test_anthropic_stream),
		cmocka_unit_test(test_anthropic_without_event_names_and_errors),
		cmocka_unit_test(test_every_split_gives_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
