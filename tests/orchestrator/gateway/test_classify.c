/*
 * test_classify.c - every row of wire.md 1.8, 1.10, 2.3 and 3, and their false friends, as a table.
 *
 * A row that fails names itself. Bodies are in the shape in which the server of that row sends
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "orchestrator/gateway/classify.h"

struct row {
	const char *name;
	int status;
	const char *body;
	enum call_class class;
	bool retryable;
	int64_t used, limit, excess;
};

#define ANTHROPIC(type, text)                                                                      \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" text                 \
	"\"},\"request_id\":\"req_1\"}"
#define OPENAI(code, text)                                                                         \
	"{\"error\":{\"message\":\"" text "\",\"type\":\"invalid_request_error\",\"param\":"       \
	"\"messages\",\"code\":\"" code "\"}}"
#define PLAIN(text) "{\"error\":{\"message\":\"" text "\"}}"

static const struct row anthropic_rows[] = {
	{"1.8 400", 400, ANTHROPIC("invalid_request_error", "messages: bad"), CALL_BAD_REQUEST, 0},
	{"1.8 401", 401, ANTHROPIC("authentication_error", "invalid x-api-key"), CALL_AUTH, 0},
	{"1.8 402", 402, ANTHROPIC("billing_error", "pay"), CALL_QUOTA, 0},
	{"1.8 403", 403, ANTHROPIC("permission_error", "no"), CALL_AUTH, 0},
	{"1.8 404", 404, ANTHROPIC("not_found_error", "model: x"), CALL_BAD_REQUEST, 0},
	{"1.8 408", 408, "", CALL_OVERLOAD, 1},
	{"1.8 409", 409, ANTHROPIC("conflict_error", "again"), CALL_OVERLOAD, 1},
	{"1.8 413", 413, ANTHROPIC("request_too_large", "Request exceeds the maximum size"),
	 CALL_OVERFLOW, 0},
	{"1.8 413 by the CDN", 413, "<html><body>413</body></html>", CALL_OVERFLOW, 0},
	{"1.8 429", 429, ANTHROPIC("rate_limit_error", "slow down"), CALL_RATE_LIMIT, 1},
	{"1.8 429 acceleration", 429,
	 ANTHROPIC("rate_limit_error",
		   "This request would exceed your organization's acceleration limit"),
	 CALL_RATE_LIMIT, 1},
	{"1.8 429 spend limit", 429,
	 ANTHROPIC("rate_limit_error", "You have reached your monthly spend limit"), CALL_QUOTA, 0},
	{"1.8 400 spend limit", 400,
	 ANTHROPIC("invalid_request_error", "You have reached your specified API usage limits."),
	 CALL_QUOTA, 0},
	{"1.8 400 credit", 400,
	 ANTHROPIC("invalid_request_error", "Your credit balance is too low to access the API"),
	 CALL_QUOTA, 0},
	{"1.8 400 thinking", 400,
	 ANTHROPIC("invalid_request_error", "Invalid `signature` in `thinking` block."),
	 CALL_BAD_REQUEST, 0},
	{"1.8 500", 500, ANTHROPIC("api_error", "Internal server error"), CALL_OVERLOAD, 1},
	{"1.8 502 HTML", 502, "<html>Bad gateway</html>", CALL_OVERLOAD, 1},
	{"1.8 504", 504, ANTHROPIC("timeout_error", "late"), CALL_OVERLOAD, 1},
	{"1.8 529", 529, ANTHROPIC("overloaded_error", "Overloaded"), CALL_OVERLOAD, 1},
	{"1.2 in stream overloaded", 0, ANTHROPIC("overloaded_error", "Overloaded"), CALL_OVERLOAD,
	 1},
	{"1.2 in stream bad request", 0, ANTHROPIC("invalid_request_error", "bad"),
	 CALL_BAD_REQUEST, 0},
	{"1.2 in stream new type", 0, ANTHROPIC("brand_new_error", "?"), CALL_OVERLOAD, 1},
	{"1.10 row 1", 400,
	 ANTHROPIC("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum"),
	 CALL_OVERFLOW, 0, 215000, 200000},
	{"1.10 row 2", 400,
	 ANTHROPIC("invalid_request_error",
		   "input length and `max_tokens` exceed context limit: 190000 + 21000 > 200000, "
		   "decrease input length"),
	 CALL_OVERFLOW, 0, 211000, 200000},
	{"1.10 row 3", 413, ANTHROPIC("request_too_large", "Request exceeds the maximum size"),
	 CALL_OVERFLOW, 0},
	{"1.10 row 4 Bedrock", 400,
	 "{\"__type\":\"ValidationException\",\"message\":\"Input is too long for requested "
	 "model.\"}",
	 CALL_OVERFLOW, 0},
	{"1.10 row 5 Bedrock trap", 429,
	 "{\"__type\":\"ThrottlingException\",\"message\":\"Too many tokens, please wait before "
	 "trying "
	 "again.\"}",
	 CALL_RATE_LIMIT, 1},
	{"1.10 row 5 Bedrock trap as 400", 400,
	 "{\"__type\":\"ThrottlingException\",\"message\":\"Too many tokens, please wait before "
	 "trying "
	 "again.\"}",
	 CALL_RATE_LIMIT, 1},
};

static const struct row openai_rows[] = {
	{"row 1", 400,
	 OPENAI("context_length_exceeded",
		"This model's maximum context length is 8192 tokens. However, your messages "
		"resulted "
		"in 9000 tokens. Please reduce the length of the messages."),
	 CALL_OVERFLOW, 0, 9000, 8192},
	{"row 2", 400,
	 OPENAI("context_length_exceeded", "This model's maximum context length is 8192 tokens. "
					   "However, you requested 9200 tokens "
					   "(8000 in the messages, 1200 in the completion)."),
	 CALL_OVERFLOW, 0, 9200, 8192},
	{"row 3", 400,
	 PLAIN("Your request resulted in 9100 tokens (9000 in the messages, 100 in the "
	       "functions)."),
	 CALL_OVERFLOW, 0, 9100, 0},
	{"row 4", 400,
	 OPENAI("context_length_exceeded",
		"Input tokens exceed the configured limit of 272000 tokens. "
		"Your messages resulted in 280123 tokens."),
	 CALL_OVERFLOW, 0, 280123, 272000},
	{"row 5", 400, PLAIN("Your input exceeds the context window of this model."), CALL_OVERFLOW,
	 0},
	{"row 6", 429,
	 "{\"error\":{\"message\":\"Request too large for gpt-4o in organization x on tokens per "
	 "min "
	 "(TPM): Limit 30000, Requested "
	 "36278.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
	 CALL_OVERFLOW, 0, 36278, 30000},
	{"row 6, fits alone", 429,
	 "{\"error\":{\"message\":\"Request too large for gpt-4o on tokens per min (TPM): Limit "
	 "30000, "
	 "Requested 20000.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
	 CALL_RATE_LIMIT, 1},
	{"row 7", 413,
	 PLAIN("Request too large for model `llama` on tokens per minute (TPM): Limit 6000, "
	       "Requested "
	       "10,500, please reduce your message size and try again."),
	 CALL_OVERFLOW, 0, 10500, 6000},
	{"row 8", 400, PLAIN("Please reduce the length of the messages or completion."),
	 CALL_OVERFLOW, 0},
	{"row 9", 400,
	 "{\"error\":{\"code\":400,\"message\":\"This endpoint's maximum context length is 131072 "
	 "tokens. "
	 "However, you requested about 139000 tokens (8000 of text input, 131000 in the output).\","
	 "\"metadata\":{\"provider_name\":null}}}",
	 CALL_OVERFLOW, 0, 139000, 131072},
	{"row 10", 400,
	 PLAIN("Input length 300000 exceeds the maximum allowed input length of 262,144 tokens."),
	 CALL_OVERFLOW, 0, 300000, 262144},
	{"row 11", 400,
	 "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\","
	 "\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":5000,\"n_ctx\":4096}}",
	 CALL_OVERFLOW, 0, 5000, 4096},
	{"row 11, early, code 500", 400,
	 "{\"error\":{\"code\":500,\"message\":\"the request exceeds the available context size\","
	 "\"type\":\"server_error\"}}",
	 CALL_OVERFLOW, 0},
	{"row 11, newer text", 400,
	 PLAIN("request (5001 tokens) exceeds the available context size (4096 tokens), try "
	       "increasing "
	       "it"),
	 CALL_OVERFLOW, 0, 5001, 4096},
	{"row 11, in a 200", 200,
	 "{\"error\":{\"code\":400,\"message\":\"request (5001 tokens) exceeds the available "
	 "context "
	 "size (4096 tokens)\",\"type\":\"exceed_context_size_error\"}}",
	 CALL_OVERFLOW, 0, 5001, 4096},
	{"row 12", 500,
	 "{\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":"
	 "\"server_error\"}}",
	 CALL_OVERFLOW, 1},
	{"row 13", 0,
	 "{\"code\":400,\"message\":\"the request exceeds the available context size\",\"type\":"
	 "\"exceed_context_size_error\",\"n_prompt_tokens\":5000,\"n_ctx\":4096}",
	 CALL_OVERFLOW, 0, 5000, 4096},
	{"row 14", 400,
	 "{\"error\":\"The number of tokens to keep from the initial prompt is greater than the "
	 "context "
	 "length (n_keep: 8200>= n_ctx: 4096). Try to load the model with a larger one.\"}",
	 CALL_OVERFLOW, 0, 8200, 4096},
	{"row 14, in-band", 0,
	 "{\"error\":\"tokens to keep from the initial prompt is greater than the context "
	 "length\"}",
	 CALL_OVERFLOW, 0},
	{"row 15", 400,
	 "{\"error\":\"Trying to keep the first 6000 tokens when context the overflows. However, "
	 "the "
	 "model is loaded with context length of only 4096 tokens\"}",
	 CALL_OVERFLOW, 0, 6000, 4096},
	{"row 17", 400,
	 "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. "
	 "However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).\","
	 "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
	 CALL_OVERFLOW, 0, 5000, 4096},
	{"row 18", 400,
	 "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, "
	 "your "
	 "request has 5000 input tokens.\",\"type\":\"BadRequestError\",\"param\":\"input_tokens\","
	 "\"code\":400}}",
	 CALL_OVERFLOW, 0, 5000, 4096},
	{"row 19", 400,
	 PLAIN("'max_tokens' is too large: 1000. This request has 4000 input tokens plus 1000 "
	       "'max_tokens' which is above the limit"),
	 CALL_OVERFLOW, 0, 5000, 0},
	{"row 20", 400,
	 PLAIN("This model's maximum context length is 32768 tokens. However, you requested 2000 "
	       "output "
	       "tokens and your prompt contains at least 31000 input tokens, for a total of at "
	       "least "
	       "33000 tokens."),
	 CALL_OVERFLOW, 0, 33000, 32768},
	{"row 21", 400,
	 PLAIN("You passed 32001 input tokens and requested 1000 output tokens. However, the "
	       "model's "
	       "context length is only 32768 tokens, resulting in a maximum input length of "
	       "31768."),
	 CALL_OVERFLOW, 0, 33001, 32768},
	{"row 22", 400, PLAIN("max_tokens must be at least 1, got -1234."), CALL_OVERFLOW, 0, 0, 0,
	 1234},
	{"row 23", 422,
	 "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
	 "Given: "
	 "4000 `inputs` tokens and 200 `max_new_tokens`\",\"error_type\":\"validation\"}",
	 CALL_OVERFLOW, 0, 4200, 4096},
	{"row 24", 400,
	 "{\"error\":{\"message\":\"the prompt is longer than the context length currently "
	 "available\","
	 "\"type\":\"invalid_request_error\"}}",
	 CALL_OVERFLOW, 0},
	{"row 25", 400, PLAIN("prompt too long; exceeded max context length by 77 tokens"),
	 CALL_OVERFLOW, 0, 0, 0, 77},
	{"row 25, without numbers", 400, PLAIN("prompt too long; exceeded context length"),
	 CALL_OVERFLOW, 0},
	{"row 27", 500, PLAIN("no user query found in messages"), CALL_OVERFLOW, 0},
	{"row 28", 400,
	 "{\"error\":{\"message\":\"This model's maximum context length is 65536 tokens. However, "
	 "you "
	 "requested 70000 tokens (66000 in the messages, 4000 in the completion).\",\"type\":"
	 "\"invalid_request_error\"}}",
	 CALL_OVERFLOW, 0, 70000, 65536},
	{"row 29, native", 400,
	 "{\"error\":{\"code\":400,\"message\":\"The input token count (1100000) exceeds the "
	 "maximum "
	 "number of tokens allowed (1048576).\",\"status\":\"INVALID_ARGUMENT\"}}",
	 CALL_OVERFLOW, 0, 1100000, 1048576},
	{"row 29, array", 400,
	 "[{\"error\":{\"code\":400,\"message\":\"The input token count (1100000) exceeds the "
	 "maximum "
	 "number of tokens allowed (1048576).\",\"status\":\"INVALID_ARGUMENT\"}}]",
	 CALL_OVERFLOW, 0, 1100000, 1048576},
	{"row 30", 400,
	 PLAIN("This model's maximum prompt length is 131072 but the request contains 140000 "
	       "tokens."),
	 CALL_OVERFLOW, 0, 140000, 131072},
	{"row 31", 400,
	 PLAIN("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
	       "maximum "
	       "context length"),
	 CALL_OVERFLOW, 0, 40000, 32768},
	{"row 31, no body", 400, "", CALL_OVERFLOW, 0},
	{"row 32", 400,
	 PLAIN("The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
	 CALL_OVERFLOW, 0, 9000, 8192},
	{"row 33", 400,
	 PLAIN("Invalid request: Your request exceeded model token limit: 262144 (requested: "
	       "270000)"),
	 CALL_OVERFLOW, 0, 270000, 262144},
	{"row 34", 400, PLAIN("invalid params, context window exceeds limit (2013)"), CALL_OVERFLOW,
	 0},
	{"row 35", 400, PLAIN("Current length is 9000 while limit is 8192"), CALL_OVERFLOW, 0, 9000,
	 8192},
	{"row 35, 413 without body", 413, "", CALL_OVERFLOW, 0},
	{"row 36", 400, PLAIN("prompt token count of 130000 exceeds the limit of 128000"),
	 CALL_OVERFLOW, 0, 130000, 128000},
	{"row 37", 400,
	 PLAIN("litellm.ContextWindowExceededError: the prompt exceeds the model's maximum context "
	       "length "
	       "of 128,000 tokens"),
	 CALL_OVERFLOW, 0, 0, 128000},
	{"row 38", 400, PLAIN("Input length (9000) exceeds model's maximum context length (8192)."),
	 CALL_OVERFLOW, 0, 9000, 8192},
	{"row 39, as an error", 0,
	 "{\"error\":{\"code\":\"model_context_window_exceeded\",\"message\":\"full\"}}",
	 CALL_OVERFLOW, 0},
	{"row 41", 400, OPENAI("context_length_exceeded", "too much"), CALL_OVERFLOW, 0},
	{"row 42", 400,
	 PLAIN("[] is too long - '$.messages' is too long. Maximum length is 2048, but got 2050 "
	       "items."),
	 CALL_OVERFLOW, 0, 0, 0},
	{"row 43", 413, "<html><h1>413 Request Entity Too Large</h1></html>", CALL_OVERFLOW, 0},
	{"row 1 behind OpenRouter", 400,
	 "{\"error\":{\"code\":400,\"message\":\"Provider returned error\",\"metadata\":{\"raw\":"
	 "\"{\\\"error\\\":{\\\"message\\\":\\\"prompt is too long: 215000 tokens > 200000 "
	 "maximum\\\"}}"
	 "\"}}}",
	 CALL_OVERFLOW, 0, 215000, 200000},
};

static const struct row other_rows[] = {
	{"2.3 insufficient_quota", 429,
	 "{\"error\":{\"message\":\"You exceeded your current quota, please check your "
	 "plan\",\"type\":"
	 "\"insufficient_quota\",\"code\":\"insufficient_quota\"}}",
	 CALL_QUOTA, 0},
	{"2.3 rate_limit_exceeded", 429,
	 "{\"error\":{\"message\":\"Rate limit reached for gpt-5. Please try again in "
	 "4.77s.\",\"code\":"
	 "\"rate_limit_exceeded\"}}",
	 CALL_RATE_LIMIT, 1},
	{"Gemini per-minute quota", 429,
	 "[{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota\",\"status\":"
	 "\"RESOURCE_EXHAUSTED\"}}]",
	 CALL_RATE_LIMIT, 1},
	{"Gemini key", 400,
	 "[{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API "
	 "key.\","
	 "\"status\":\"INVALID_ARGUMENT\"}}]",
	 CALL_AUTH, 0},
	{"4 OpenRouter 502 in-band", 0,
	 "{\"error\":{\"code\":502,\"message\":\"Provider "
	 "disconnected\"},\"choices\":[{\"finish_reason\":"
	 "\"error\"}]}",
	 CALL_OVERLOAD, 1},
	{"4 OpenRouter 402", 402, "{\"error\":{\"code\":402,\"message\":\"Insufficient credits\"}}",
	 CALL_QUOTA, 0},
	{"4 OpenRouter moderation", 403,
	 "{\"error\":{\"code\":403,\"message\":\"openai/x requires moderation on OpenInference\"}}",
	 CALL_REFUSED, 0},
	{"4 DeepSeek 422", 422, PLAIN("Invalid parameters"), CALL_BAD_REQUEST, 0},
	{"4 DeepSeek 503", 503, PLAIN("Service unavailable"), CALL_OVERLOAD, 1},
	{"Azure content filter", 400,
	 "{\"error\":{\"code\":\"content_filter\",\"message\":\"The response was filtered due to "
	 "the "
	 "prompt\"}}",
	 CALL_REFUSED, 0},
	{"false friend: string_above_max_length", 400,
	 OPENAI("string_above_max_length", "Invalid 'messages[1].content': string too long. "
					   "Expected maximum length 10, but got 12; "
					   "please reduce the length of the messages"),
	 CALL_BAD_REQUEST, 0},
	{"false friend: Invalid 'user'", 400, PLAIN("Invalid 'user': string too long"),
	 CALL_BAD_REQUEST, 0},
	{"veto: rate-limit words beside an overflow text", 400,
	 PLAIN("rate limit: too many requests, reduce the length of the messages"),
	 CALL_BAD_REQUEST, 0},
	{"veto holds for 429", 429,
	 PLAIN("maximum context length is 8192 tokens. However, your messages "
	       "resulted in 9000 tokens"),
	 CALL_RATE_LIMIT, 1},
	{"trap 74", 400,
	 ANTHROPIC("invalid_request_error", "unexpected text: 'I saw 429 tokens and a 529 today'"),
	 CALL_BAD_REQUEST, 0},
	{"trap 74, words", 400,
	 ANTHROPIC("invalid_request_error", "bad block near 'we hit a rate limit'"),
	 CALL_BAD_REQUEST, 0},
	{"trap 11: bare 500", 500, "{\"error\":{\"message\":\"Internal Server Error\"}}",
	 CALL_OVERLOAD, 1},
	{"407", 407, "", CALL_AUTH, 0},
	{"truncated JSON", 500, "{\"error\":{\"mess", CALL_OVERLOAD, 1},
	{"string detail", 400, "{\"detail\":\"nope\"}", CALL_BAD_REQUEST, 0},
};

static void check(const struct row *r)
{
	struct verdict v;
	classify_error(r->status, r->body, strlen(r->body), &v);
	if (v.class != r->class || v.retryable != r->retryable || v.used != r->used ||
	    v.limit != r->limit || v.excess != r->excess)
		fail_msg("%s: class %s, retryable %d, used %lld, limit %lld, excess %lld (%s)",
			 r->name, call_class_name(v.class), v.retryable, (long long)v.used,
			 (long long)v.limit, (long long)v.excess, v.message);
	assert_non_null(v.message);
	assert_true(*v.message != '\0');
	verdict_release(&v);
}

static void test_anthropic_rows_1_8_and_1_10(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(anthropic_rows); i++)
		check(&anthropic_rows[i]);
}

static void test_openai_rows_of_section_3(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(openai_rows); i++)
		check(&openai_rows[i]);
}

static void test_section_2_3_and_4_and_false_friends(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_rows); i++)
		check(&other_rows[i]);
}

/* Row 12: a pool of slots that is full now may have room later, but not for ever. */
static void test_row_12_is_retried_a_few_times(void **state)
{
	struct verdict v;
	const char *body = PLAIN("Context size has been exceeded");
	classify_error(500, body, strlen(body), &v);
	assert_int_equal(v.max_retries, 2);
	assert_true(v.congestion);
	verdict_release(&v);
}

/* I12: a hostile text cannot reach a terminal or grow without bound. */
static void test_messages_are_bounded_and_sanitised(void **state)
{
	AUTO_BUF struct buf body = BUF_INIT;
	buf_adds(&body, "{\"error\":{\"message\":\"\\u001b[31mred\\u0000\\u0007");
	for (int i = 0; i < 20000; i++)
		buf_adds(&body, "\xc3\xa9");
	buf_adds(&body, "\"}}");
	struct verdict v;
	classify_error(400, body.data, body.len, &v);
	assert_true(strlen(v.message) <= CLASSIFY_MESSAGE_MAX);
	assert_true(strlen(v.message) > CLASSIFY_MESSAGE_MAX / 2);
	assert_null(strchr(v.message, '\x1b'));
	assert_null(strchr(v.message, '\x07'));
	assert_true(text_is_utf8(v.message, strlen(v.message)));
	verdict_release(&v);
}

static void test_errors_in_a_200_are_told_from_answers(void **state)
{
	static const char *const errors[] = {"{\"error\":{\"message\":\"x\"}}",
					     "[{\"error\":{\"code\":400}}]", "{\"error\":\"text\"}",
					     "{\"object\":\"error\",\"message\":\"x\"}",
					     "{\"detail\":\"x\"}"};
	static const char *const answers[] = {"{\"choices\":[]}", "[]",
					      "{\"error\":null,\"id\":\"1\"}", "<html></html>", ""};
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		assert_true(classify_is_error(errors[i], strlen(errors[i])));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		assert_false(classify_is_error(answers[i], strlen(answers[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anthropic_rows_1_8_and_1_10),
		cmocka_unit_test(test_openai_rows_of_section_3),
		cmocka_unit_test(test_section_2_3_and_4_and_false_friends),
		cmocka_unit_test(test_row_12_is_retried_a_few_times),
		cmocka_unit_test(test_messages_are_bounded_and_sanitised),
		cmocka_unit_test(test_errors_in_a_200_are_told_from_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
