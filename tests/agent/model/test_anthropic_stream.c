/*
 * Streams of the Anthropic form: what comes out of them, and what must never be taken for a whole
 * answer. Traps by number.
 */
#include "fixture.h"

#define START(i, block)                                                                            \
	"{\"type\":\"content_block_start\",\"index\":" #i ",\"content_block\":" block "}"
#define DELTA(i, kind, field, value)                                                               \
	"{\"type\":\"content_block_delta\",\"index\":" #i ",\"delta\":{\"type\":\"" kind           \
	"\",\"" field "\":\"" value "\"}}"
#define JSON_DELTA(i, value) DELTA(i, "input_json_delta", "partial_json", value)
#define STOP(i)		     "{\"type\":\"content_block_stop\",\"index\":" #i "}"
#define TEXT_START(i)	     START(i, "{\"type\":\"text\",\"text\":\"\"}")
#define TEXT(i, value)	     DELTA(i, "text_delta", "text", value)
#define CALL(i, id, name)                                                                          \
	START(i, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}")
#define HEAD                                                                                       \
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":"   \
	"10,"                                                                                      \
	"\"output_tokens\":1}}}"
#define REASON(reason)                                                                             \
	"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":{"       \
	"\"output_tokens\":7}}"
#define END "{\"type\":\"message_stop\"}"

struct setup {
	struct model model;
	struct model_client *client;
	struct stream_answer answer;
};

static int setup(void **state)
{
	struct setup *s = mem_alloc(sizeof(*s));
	struct request_params params = {.temperature = -1};
	s->model = fixture_anthropic();
	s->client = fixture_client(&s->model, &params);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct setup *s = *state;
	stream_answer_release(&s->answer);
	client_free(s->client);
	free(s);
	return 0;
}

/* The answer lives until the test ends. */
#define ANSWER(...) take_answer(*state, fixture_sse(__VA_ARGS__, NULL))
static struct stream_answer *take_answer(struct setup *s, char *sse)
{
	stream_answer_release(&s->answer);
	s->answer = fixture_answer(s->client, sse, 0);
	free(sse);
	return &s->answer;
}

#define FAILURE(message, ...) take_failure(*state, message, fixture_sse(__VA_ARGS__, NULL))
static enum err_code take_failure(struct setup *s, char message[512], char *sse)
{
	enum err_code code = fixture_failure(s->client, sse, message);
	free(sse);
	return code;
}

static void test_ordinary_answer(void **state)
{
	struct stream_answer *a = ANSWER(
		HEAD, START(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"),
		DELTA(0, "thinking_delta", "thinking", "let \\u00e9"),
		DELTA(0, "thinking_delta", "thinking", " me"),
		DELTA(0, "signature_delta", "signature", "c2l/nbg=="), STOP(0),
		"{\"type\":\"ping\"}", TEXT_START(1), TEXT(1, "I "), TEXT(1, "look."), STOP(1),
		START(2, "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"read\",\"input\":{},"
			 "\"caller\":{\"type\":\"direct\"}}"),
		JSON_DELTA(2, ""), JSON_DELTA(2, "{\\\"path\\\": "), JSON_DELTA(2, "\\\"a.c\\\"}"),
		STOP(2), REASON("tool_use"), END);
	struct message *m = a->message;
	assert_int_equal(a->stop, STOP_TOOL_USE);
	assert_int_equal(m->n_blocks, 3);
	assert_string_equal(m->provider, "anthropic");
	assert_string_equal(m->model, "claude-opus-5");
	assert_string_equal(m->blocks[0].raw,
			    "{\"type\":\"thinking\",\"thinking\":\"let \xc3\xa9 me\","
			    "\"signature\":\"c2l/nbg==\"}");
	assert_string_equal(m->blocks[0].text, "let \xc3\xa9 me");
	assert_string_equal(m->blocks[1].text, "I look.");
	assert_string_equal(m->blocks[2].id, "toolu_1");
	assert_string_equal(m->blocks[2].name, "read");
	assert_string_equal(m->blocks[2].text, "{\"path\": \"a.c\"}");
	assert_string_equal(m->blocks[2].raw, "{\"caller\":{\"type\":\"direct\"}}");
	for (size_t i = 0; i < m->n_blocks; i++)
		assert_false(m->blocks[i].partial);
	assert_int_equal(a->usage.output, 7);
}

/* Trap 28: zero content blocks and end_turn are an empty answer, not an error. */
static void test_empty_answer_trap_28(void **state)
{
	struct stream_answer *a =
		ANSWER(HEAD, TEXT_START(0), TEXT(0, " \\n"), STOP(0), REASON("end_turn"), END);
	assert_int_equal(a->stop, STOP_END);
	assert_int_equal(a->message->n_blocks, 0);
	assert_true(message_is_blank(a->message));
}

/* Trap 37: complete to look at, but the limit cut it. */
static void test_call_cut_by_limit_trap_37(void **state)
{
	struct stream_answer *a = ANSWER(
		HEAD, CALL(0, "t1", "read"), JSON_DELTA(0, "{}"), STOP(0), CALL(1, "t2", "write"),
		JSON_DELTA(1, "{\\\"path\\\":\\\"readme.md\\\",\\\"content\\\":\\\"part\\\"}"),
		REASON("max_tokens"), END);
	assert_int_equal(a->stop, STOP_MAX_TOKENS);
	assert_false(a->message->blocks[0].partial);
	assert_true(a->message->blocks[1].partial);
	assert_string_equal(a->message->blocks[1].text,
			    "{\"path\":\"readme.md\",\"content\":\"part\"}");
}

/* Trap 39: raw control characters are accepted, what is unterminated never runs. */
static void test_control_characters_and_cut_arguments_trap_39(void **state)
{
	struct stream_answer *a = ANSWER(
		HEAD, CALL(0, "t1", "shell"),
		JSON_DELTA(0, "{\\\"command\\\":\\\"printf 'a\\tb\\n'\\\"}"), STOP(0),
		CALL(1, "t2", "shell"), JSON_DELTA(1, "{\\\"command\\\":\\\"rm -rf /srv/app/tm"),
		STOP(1), REASON("tool_use"), END);
	assert_string_equal(a->message->blocks[0].text, "{\"command\":\"printf 'a\\tb\\n'\"}");
	assert_false(a->message->blocks[0].partial);
	assert_true(a->message->blocks[1].partial);
	assert_string_equal(a->message->blocks[1].text, "{\"command\":\"rm -rf /srv/app/tm");
}

/* Trap 43: "" or no delta at all. */
static void test_no_arguments_trap_43(void **state)
{
	struct stream_answer *a = ANSWER(HEAD, CALL(0, "t1", "ls"), JSON_DELTA(0, ""), STOP(0),
					 CALL(1, "t2", "ls"), STOP(1), REASON("tool_use"), END);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(a->message->blocks[i].text, "{}");
		assert_false(a->message->blocks[i].partial);
	}
}

static void test_input_given_at_the_start(void **state)
{
	struct stream_answer *a = ANSWER(
		HEAD,
		START(0, "{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"ls\",\"input\":{\"a\":1}}"),
		STOP(0), REASON("end_turn"), END);
	assert_int_equal(a->stop, STOP_TOOL_USE);
	assert_string_equal(a->message->blocks[0].text, "{\"a\":1}");
	assert_true(strlen(a->message->blocks[0].id) > 8);
}

/* Trap 80: later values replace earlier ones, field by field. */
static void test_usage_replaces_trap_80(void **state)
{
	struct stream_answer *a = ANSWER(
		"{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":317,"
		"\"cache_creation_input_tokens\":4425,\"cache_read_input_tokens\":12,\"output_"
		"tokens\":1,"
		"\"cache_creation\":{\"ephemeral_1h_input_tokens\":25}}}}",
		"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{"
		"\"input_tokens\":317,\"cache_creation_input_tokens\":4425,\"output_tokens\":90,"
		"\"cache_read_input_tokens\":null,\"output_tokens_details\":{\"thinking_tokens\":"
		"40}}}",
		END);
	assert_true(a->usage.known);
	assert_int_equal(a->usage.input, 317);
	assert_int_equal(a->usage.cache_write, 4425);
	assert_int_equal(a->usage.cache_write_1h, 25);
	assert_int_equal(a->usage.cache_read, 12);
	assert_int_equal(a->usage.output, 90);
	assert_int_equal(a->usage.thinking, 40);
	/* Trap 82: the sum of three fields. */
	assert_int_equal(usage_prompt(&a->usage), 317 + 4425 + 12);
}

static void test_stop_reasons(void **state)
{
	static const struct {
		const char *event;
		enum stop_reason want;
	} rows[] = {
		{REASON("end_turn"), STOP_END},
		{REASON("stop_sequence"), STOP_END},
		{REASON("max_tokens"), STOP_MAX_TOKENS},
		{REASON("model_context_window_exceeded"), STOP_WINDOW},
		{REASON("refusal"), STOP_REFUSAL},
		{REASON("pause_turn"), STOP_PAUSE},
		{REASON("something new"), STOP_END},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stream_answer *a =
			ANSWER(HEAD, TEXT_START(0), TEXT(0, "x"), STOP(0), rows[i].event);
		assert_int_equal(a->stop, rows[i].want);
		assert_non_null(stop_reason_name(a->stop));
	}
}

static void test_refusal_has_its_explanation(void **state)
{
	struct stream_answer *a =
		ANSWER(HEAD,
		       "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\","
		       "\"stop_details\":{\"category\":\"cyber\",\"explanation\":\"not that\"}}}",
		       END);
	assert_int_equal(a->stop, STOP_REFUSAL);
	assert_string_equal(a->refusal, "not that");
}

/* wire.md 1.4: a paused turn is sent back unchanged. */
static void test_unknown_blocks_are_kept_whole(void **state)
{
	struct setup *s = *state;
	struct stream_answer *a =
		ANSWER(HEAD, START(0, "{\"type\":\"server_tool_use\",\"id\":\"s1\",\"input\":{}}"),
		       JSON_DELTA(0, "{\\\"q\\\":"), JSON_DELTA(0, "1}"), STOP(0),
		       START(1, "{\"type\":\"compaction\",\"content\":null}"),
		       DELTA(1, "compaction_delta", "content", "sum"),
		       DELTA(1, "compaction_delta", "content", "mary"), STOP(1),
		       "{\"type\":\"brand_new_event\",\"x\":1}", REASON("pause_turn"), END);
	assert_int_equal(a->stop, STOP_PAUSE);
	assert_false(message_is_blank(a->message));
	client_render_message(s->client, a->message);
	assert_string_equal(a->message->rendered,
			    "{\"role\":\"assistant\",\"content\":["
			    "{\"type\":\"server_tool_use\",\"id\":\"s1\",\"input\":{\"q\":1}},"
			    "{\"type\":\"compaction\",\"content\":\"summary\"}]}");
}

static void test_redacted_thinking_is_kept(void **state)
{
	struct stream_answer *a =
		ANSWER(HEAD, START(0, "{\"type\":\"redacted_thinking\",\"data\":\"AbC/+=\"}"),
		       STOP(0), REASON("end_turn"), END);
	assert_int_equal(a->message->blocks[0].kind, BLOCK_THINKING);
	assert_string_equal(a->message->blocks[0].raw,
			    "{\"type\":\"redacted_thinking\",\"data\":\"AbC/+=\"}");
	assert_true(message_is_blank(a->message)); /* trap 26 */
}

static void test_dropped_blocks_are_told(void **state)
{
	struct stream_answer *a = ANSWER(
		"{\"type\":\"message_start\",\"message\":{\"input_transformations\":[{\"path\":"
		"\"messages.1.content.0\",\"reason\":\"model_binding_mismatch\"}]}}",
		TEXT_START(0), TEXT(0, "x"), STOP(0), REASON("end_turn"));
	assert_true(a->dropped_blocks);
}

/* H2: the last word holds, wherever it stands. */
static void test_applied_edits_are_told(void **state)
{
	struct stream_answer *a = ANSWER(
		HEAD, TEXT_START(0), TEXT(0, "x"), STOP(0),
		"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
		"\"context_management\":{\"applied_edits\":[{\"type\":\"clear_tool_uses_20250919\","
		"\"cleared_tool_uses\":8,\"cleared_input_tokens\":5000},{\"type\":"
		"\"clear_thinking_20251015\",\"cleared_input_tokens\":70}]}}",
		END);
	assert_int_equal(a->cleared, 5070);
	a = ANSWER(HEAD, TEXT_START(0), TEXT(0, "x"), STOP(0), REASON("end_turn"), END);
	assert_int_equal(a->cleared, 0);
}

/* Trap 60: cut without a stop reason. */
static void test_incomplete_stream_trap_60(void **state)
{
	assert_int_equal(FAILURE(NULL, HEAD, TEXT_START(0), TEXT(0, "a"), TEXT(0, "b"),
				 TEXT(0, "c"), TEXT(0, "d"), TEXT(0, "e")),
			 ERR_CLOSED);
	assert_int_equal(FAILURE(NULL, HEAD, CALL(0, "t1", "ls"), JSON_DELTA(0, "{}"), STOP(0)),
			 ERR_CLOSED);
	/* Trap 77: after the first reasoning delta. */
	assert_int_equal(FAILURE(NULL, HEAD, START(0, "{\"type\":\"thinking\",\"thinking\":\"\"}"),
				 DELTA(0, "thinking_delta", "thinking", "hm")),
			 ERR_CLOSED);
}

static void test_message_stop_alone_ends_it(void **state)
{
	struct stream_answer *a = ANSWER(HEAD, TEXT_START(0), TEXT(0, "x"), STOP(0), END);
	assert_int_equal(a->stop, STOP_END);
	assert_false(a->message->blocks[0].partial);
}

static void test_error_event(void **state)
{
	char message[512];
	assert_int_equal(FAILURE(message, HEAD, TEXT_START(0), TEXT(0, "x"),
				 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
				 "\"message\":\"Overloaded\"}}"),
			 ERR_BUSY);
	assert_string_equal(message, "overloaded_error: Overloaded");
	assert_int_equal(
		FAILURE(message, HEAD,
			"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
			"\"message\":\"prompt is too long\"}}"),
		ERR_DENIED);
}

static void test_garbage_is_refused(void **state)
{
	struct setup *s = *state;
	char message[512];
	assert_int_equal(FAILURE(message, HEAD, "{\"type\":\"content_block_"), ERR_INVALID);
	assert_int_equal(FAILURE(message, HEAD, JSON_DELTA(3, "{}")), ERR_INVALID);
	assert_int_equal(fixture_failure(s->client, "<html>502</html>\n\n", message), ERR_CLOSED);
}

/* Once failed, failed until the reset; then as new. */
static void test_reset_makes_it_new(void **state)
{
	struct setup *s = *state;
	struct stream_parser *parser = stream_new(s->client, NULL, NULL);
	struct err err = ERR_INIT;
	static const char bad[] = "data: {x\n\n";
	AUTO_FREE char *good = fixture_sse(HEAD, TEXT_START(0), TEXT(0, "new"), STOP(0),
					   REASON("end_turn"), END, NULL);
	AUTO_FREE char *half = fixture_sse(HEAD, TEXT_START(0), TEXT(0, "old"), NULL);
	assert_int_equal(stream_feed(parser, half, strlen(half), &err), 0);
	assert_int_equal(stream_feed(parser, bad, strlen(bad), &err), -1);
	assert_int_equal(stream_feed(parser, good, strlen(good), &err), -1);
	assert_int_equal(stream_finish(parser, &s->answer, &err), -1);
	stream_reset(parser);
	assert_int_equal(stream_feed(parser, good, strlen(good), &err), 0);
	assert_int_equal(stream_finish(parser, &s->answer, &err), 0);
	assert_int_equal(s->answer.message->n_blocks, 1);
	assert_string_equal(s->answer.message->blocks[0].text, "new");
	stream_free(parser);
}

/* Events reach the listener while the stream comes. */
static void on_text(void *arg, const char *text, size_t n)
{
	buf_add(arg, text, n);
}

static void on_call(void *arg, const char *name)
{
	buf_addf(arg, "[%s]", name);
}

static void test_events_come_at_once(void **state)
{
	struct setup *s = *state;
	struct stream_events events = {
		.on_text = on_text, .on_thinking = on_text, .on_call = on_call};
	AUTO_BUF struct buf seen = BUF_INIT;
	struct stream_parser *parser = stream_new(s->client, &events, &seen);
	AUTO_FREE char *sse =
		fixture_sse(HEAD, START(0, "{\"type\":\"thinking\",\"thinking\":\"h\"}"),
			    DELTA(0, "thinking_delta", "thinking", "m"), STOP(0), TEXT_START(1),
			    TEXT(1, "a"), TEXT(1, "b"), STOP(1), CALL(2, "t", "ls"), NULL);
	assert_int_equal(stream_feed(parser, sse, strlen(sse), NULL), 0);
	assert_string_equal(seen.data, "hmab[ls]");
	stream_free(parser);
}

static void test_answer_has_a_limit(void **state)
{
	struct setup *s = *state;
	struct stream_parser *parser = stream_new(s->client, NULL, NULL);
	struct err err = ERR_INIT;
	AUTO_FREE char *start = fixture_sse(HEAD, TEXT_START(0), NULL);
	AUTO_FREE char *mega = mem_alloc((1 << 20) + 1);
	memset(mega, 'x', 1 << 20);
	AUTO_FREE char *event =
		mem_printf("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
			   "\"type\":\"text_delta\",\"text\":\"%s\"}}",
			   mega);
	AUTO_FREE char *sse = fixture_sse(event, NULL);
	int rc = stream_feed(parser, start, strlen(start), &err), fed = 0;
	while (rc == 0 && fed++ < 70)
		rc = stream_feed(parser, sse, strlen(sse), &err);
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_int_equal(fed, 64);
	stream_free(parser);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ordinary_answer),
		TEST(test_empty_answer_trap_28),
		TEST(test_call_cut_by_limit_trap_37),
		TEST(test_control_characters_and_cut_arguments_trap_39),
		TEST(test_no_arguments_trap_43),
		TEST(test_input_given_at_the_start),
		TEST(test_usage_replaces_trap_80),
		TEST(test_stop_reasons),
		TEST(test_refusal_has_its_explanation),
		TEST(test_unknown_blocks_are_kept_whole),
		TEST(test_redacted_thinking_is_kept),
		TEST(test_dropped_blocks_are_told),
		TEST(test_applied_edits_are_told),
		TEST(test_incomplete_stream_trap_60),
		TEST(test_message_stop_alone_ends_it),
		TEST(test_error_event),
		TEST(test_garbage_is_refused),
		TEST(test_reset_makes_it_new),
		TEST(test_events_come_at_once),
		TEST(test_answer_has_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
